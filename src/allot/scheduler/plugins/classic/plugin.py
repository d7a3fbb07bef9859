"""ClassicResources: from a pod's classic claims to what their drivers are asked."""

import random
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence

from allot.allocation import BadNodeSelector, Explanation, selects
from allot.api import classic

from ...framework import Checks, CycleState, Event, Rejection, Sentence, Veto
from ...negotiating import NODES_MAX, Ask, Asked, Choose, refusals, state_of, step
from ...node import NodeInfo
from ...snapshot import Snapshot
from ...writes import AskDrivers, AwaitDrivers, EndTalk, Negotiate, Remedy, Write
from ..claims import claims_in
from .asking import NAME, ClassicAsk, read_ask
from .telling import UNANSWERED, UNASKED, refused, tell

UNSUITABLE = Rejection(NAME, "node(s) are not among those of the resource class")


class ClassicResources:
    name = NAME
    events = frozenset(
        {
            Event.NODE_ADDED,
            Event.NODE_CHANGED,
            Event.POD_CHANGED,
            Event.CLAIM_ADDED,
            Event.CLAIM_CHANGED,
            Event.CLASS_CHANGED,
            Event.DRIVER_ANSWERED,
        }
    )

    # -- where the classes let it go ------------------------------------------------------------

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable | Rejection:
        claims = claims_in(state).classic
        if not claims:
            return ()
        names = tuple([one.view.spec.resource_class_name for one in claims])
        revision = snapshot.resource_classes.revision
        state.classes |= {f"resourceclasses/{name}": revision(name) for name in names}
        ask = read_ask(state.pod, claims, snapshot)
        if isinstance(ask, Rejection):
            return ask
        state.read[NAME] = ask
        return names

    def pre_filter(self, state: CycleState, snapshot: Snapshot) -> Checks | None:
        ask: ClassicAsk | None = state.read.get(NAME)
        if ask is None:
            return None
        narrowing = [one for one in ask.classes if one.suitable_nodes is not None]

        def check(node: NodeInfo) -> Rejection | None:
            return None if all(_suits(one, node) for one in narrowing) else UNSUITABLE

        return Checks(check) if narrowing else None

    # -- what drivers said ----------------------------------------------------------------------

    def veto(self, state: CycleState, snapshot: Snapshot) -> Veto | None:
        ask: ClassicAsk | None = state.read.get(NAME)
        if ask is None:
            return None
        if not ask.is_answered:
            return Veto(lambda name: UNANSWERED)
        said = {name: refused(want) for name, want in refusals(ask.talk, ask.wants).items()}
        first = ask.talk.selected if ask.talk is not None else ""
        if len(ask.wants) == 1:
            return Veto(said.get, first)
        known = state_of(ask.talk, state.pod.uid)
        nodes = known.nodes if isinstance(known, Asked) else frozenset[str]()
        return Veto(lambda name: said.get(name) if name in nodes else UNASKED, first)

    # -- what they are asked --------------------------------------------------------------------

    def reserve(self, state: CycleState, node: NodeInfo, snapshot: Snapshot) -> tuple[Write, ...] | Rejection:
        ask: ClassicAsk | None = state.read.get(NAME)
        if ask is None:  # what was said before, when there was something to be allocated
            talk = snapshot.talk_of(state.pod) if claims_in(state).allocated else None
            return (EndTalk(talk),) if talk is not None else ()
        fitting = [one.node for one in state.fitting if one.node != node.name]
        offered = _some(fitting, ask, state.seed)
        told = ask.told(state.pod, best=node.name, offered=offered)
        _, deed = step(state_of(ask.talk, state.pod.uid), told)
        if not isinstance(deed, Choose):  # a simulation asks without a veto (P6)
            return UNANSWERED
        for want in ask.wants:
            snapshot.ledger.fly(want.claim.uid, ())  # others wait for what becomes of it
        return (Negotiate(ask.wants, node.place, deed.nodes, ask.talk),)

    def unreserve(self, state: CycleState, snapshot: Snapshot) -> None:
        ask: ClassicAsk | None = state.read.get(NAME)
        for want in ask.wants if ask is not None else ():
            snapshot.ledger.cancel(want.claim.uid)

    def post_filter(
        self, state: CycleState, snapshot: Snapshot, rejections: Sequence[tuple[str, Rejection]]
    ) -> Generator[None, None, Remedy | None]:
        """Nodes fit, and nobody has said whether they do: ask, or wait for what was asked."""
        yield
        ask: ClassicAsk | None = state.read.get(NAME)
        if ask is None:
            return None
        open_to_question = [name for name, why in rejections if why.unanswered]
        if not open_to_question and not any(why.plugin == NAME for _, why in rejections):
            return None
        told = ask.told(state.pod, offered=_some(open_to_question, ask, state.seed))
        _, deed = step(state_of(ask.talk, state.pod.uid), told)
        if isinstance(deed, Ask):
            return AskDrivers(deed.nodes, ask.talk)
        return AwaitDrivers() if open_to_question else None

    # -- why ------------------------------------------------------------------------------------

    def tell(self, state: CycleState, rejections: Iterable[tuple[str, Rejection]]) -> Sentence | None:
        ask: ClassicAsk | None = state.read.get(NAME)
        return tell(ask, rejections) if ask is not None else None

    def explain(
        self,
        state: CycleState,
        snapshot: Snapshot,
        rejections: Iterable[tuple[str, Rejection]],
        named: Callable[[str], str],
    ) -> Mapping[str, Explanation]:
        return {}


def _some(names: Sequence[str], ask: ClassicAsk, seed: int) -> tuple[str, ...]:
    """Of the nodes that nobody refuses, where there are many by chance (O-11): every one gets its turn
    (PSCHED-07)."""
    said = refusals(ask.talk, ask.wants)
    left = [name for name in names if name not in said]
    return tuple(left if len(left) < NODES_MAX else random.Random(seed).sample(left, NODES_MAX))


def _suits(resource_class: classic.ResourceClass, node: NodeInfo) -> bool:
    try:
        return resource_class.suitable_nodes is None or selects(resource_class.suitable_nodes, node.place)
    except BadNodeSelector:
        return False
