"""NumericResources: from a pod's numeric claims to what is taken of a node's instances."""

from collections.abc import Callable, Hashable, Iterable, Mapping

from allot.allocation import Explanation, taken_by
from allot.base import Ids
from allot.numeric import Found, Undecided

from ...framework import Checks, CycleState, Event, LongWork, Rejection, Sentence
from ...node import NodeInfo
from ...snapshot import Snapshot
from ...writes import AllocateClaim, Write
from ..claims import claims_in
from .allocating import allocation
from .asking import NAME, OFF, Asking, NumericAsk
from .checking import UNDECIDED, NumericCheck
from .telling import tell

TAKEN = Rejection(NAME, "node(s) with too little free of what numeric claims ask for", resolvable=True)


class NumericResources:
    name = NAME
    events = frozenset(
        {
            Event.NODE_ADDED,
            Event.NODE_CHANGED,
            Event.POD_CHANGED,
            Event.CLAIM_ADDED,
            Event.CLAIM_CHANGED,
            Event.DEVICES_FREED,
            Event.USERS_LEFT,
            Event.CLASS_CHANGED,
            Event.CAPACITY_CHANGED,
            Event.PARAMETERS_CHANGED,
        }
    )

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self.asking = Asking()

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable | Rejection | LongWork:
        claims = claims_in(state).numeric
        if not claims:
            return ()
        revision = snapshot.resource_classes.revision
        names = [one.view.spec.resource_class_name for one in claims]
        state.classes |= {f"resourceclasses/{name}": revision(name) for name in names}
        if not snapshot.heeds_numeric:
            return OFF
        ask = self.asking.read(claims, snapshot)
        if isinstance(ask, Rejection | LongWork):
            return ask
        state.read[NAME] = ask
        return ask.signature

    def pre_filter(self, state: CycleState, snapshot: Snapshot) -> Checks | None:
        ask: NumericAsk | None = state.read.get(NAME)
        if ask is None:
            return None
        classes = [one.resource_class for one in ask.claims]
        check = state.made[NAME] = NumericCheck(ask.wants, classes, snapshot)
        return Checks(check)

    def reserve(self, state: CycleState, node: NodeInfo, snapshot: Snapshot) -> tuple[Write, ...] | Rejection:
        """Choose and hold in one step: between the two nobody else may decide anything (D1)."""
        ask: NumericAsk | None = state.read.get(NAME)
        if ask is None:
            return ()
        check: NumericCheck = state.made[NAME]
        answer = check.answer(node.name)
        if not isinstance(answer, Found):
            return UNDECIDED if isinstance(answer, Undecided) else TAKEN
        writes: list[Write] = []
        for asked, choice in zip(ask.claims, answer.choices, strict=True):
            made = allocation(asked, choice, node.name, self._ids, self.asking.copies)
            if isinstance(made, Rejection) or snapshot.ledger.fly(asked.claim.uid, taken_by(made)):
                self.unreserve(state, snapshot)
                return made if isinstance(made, Rejection) else TAKEN
            writes.append(AllocateClaim(asked.claim, made))
        return tuple(writes)

    def unreserve(self, state: CycleState, snapshot: Snapshot) -> None:
        """Give up what is still in flight. What the server has accepted stays (LEDGER3)."""
        ask: NumericAsk | None = state.read.get(NAME)
        for asked in ask.claims if ask is not None else ():
            snapshot.ledger.cancel(asked.claim.uid)

    def tell(self, state: CycleState, rejections: Iterable[tuple[str, Rejection]]) -> Sentence | None:
        check: NumericCheck | None = state.made.get(NAME)
        return tell(check, rejections) if check is not None else None

    def explain(
        self,
        state: CycleState,
        snapshot: Snapshot,
        rejections: Iterable[tuple[str, Rejection]],
        named: Callable[[str], str],
    ) -> Mapping[str, Explanation]:
        return {}
