"""One pod's talk with the drivers of its classic claims, step by step. Pure.

Where it sits
    Drivers are asked in the pod's PodScheduling and answer there and in the claims. The plugin
    of classic claims takes a step in a cycle, when it has found what fits; the binding takes
    one whenever it hears something. What a step says is to be written, `negotiation_writes` writes.

    state     what is told                                        deed             then
    ───────── ─────────────────────────────────────────────────── ──────────────── ────────
    any       the object is of a pod that had the name before     Drop             Nothing
    any       no claim is to be allocated any more                Done             the same
    Nothing   one claim, a node that takes the pod                Choose it        Chosen
    Nothing   several claims, nodes that take the pod             Ask              Asked
    Asked     somebody has not answered, the nodes are the same   Wait             Asked
    Asked     all have answered, one of the nodes asked about     Choose it        Chosen
              takes the pod and nobody refuses it
    Asked     all have answered, and only other nodes are left    Ask about those  Asked
    Asked     none is left at all, and one is still selected      Ask again        Asked
    Chosen    in a cycle: the talk begins again with what is known, as from Asked
    Chosen    every claim is allocated for the node, and the pod  Done             Chosen
              may have it
    Chosen    a driver refuses the node; a claim is going, went   GiveUp           Asked
              to somebody else or cannot be used on the node
    Chosen    late                                                GiveUp           Asked
    Chosen    the object is gone or another, and what several     GiveUp           Asked
              drivers have answered with it
    Chosen    the object is gone, or names another node           Choose again     Chosen
    Chosen    anything else                                       Wait             Chosen

What it promises
    P5  An object of another pod is never read.
    P6  With several claims to be allocated a node is chosen only when there is an answer for each,
        and only one that drivers were asked about (O-13).
    TALK1  A chosen node is kept until every driver has answered or one is late.
    TALK2  Nodes are written anew only where those that stand there do not serve: the chosen one is
           not among them, or nobody is left of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, assert_never

from allot.allocation import Node
from allot.api import classic

from .claim import ClaimInfo
from .reach import is_reachable
from .settings import DRIVER_TIMEOUT_S
from .talk import Talk

NODES_MAX = classic.limits.NODES_PROPOSED_MAX


# -- states ---------------------------------------------------------------------------------------


class Nothing(NamedTuple):
    """Nobody was asked anything."""


class Asked(NamedTuple):
    """Drivers say which of these nodes will not do."""

    nodes: frozenset[str]


class Chosen(NamedTuple):
    """Drivers allocate for this node, which the pod's room is held on."""

    node: Node
    nodes: tuple[str, ...]
    since_s: float


State = Nothing | Asked | Chosen


# -- what is told ---------------------------------------------------------------------------------


class Want(NamedTuple):
    """A claim that its driver is to allocate for the pod."""

    entry: str  # of the pod's spec: answers are given by it
    claim: ClaimInfo
    driver: str


class Stand(NamedTuple):
    """How such a claim is now; None: it is gone."""

    want: Want
    claim: ClaimInfo | None

    @property
    def is_pending(self) -> bool:
        return self.claim is None or self.claim.allocation is None


@dataclass(frozen=True, slots=True)
class Told:
    pod: str  # its uid
    talk: Talk | None  # as last heard
    claims: tuple[Stand, ...]
    now_s: float = 0.0
    late_s: float = DRIVER_TIMEOUT_S  # how long a driver may take to allocate (O-22)
    best: str = ""  # in a cycle: the node that takes the pod, if there is one that may be chosen
    offered: tuple[str, ...] = ()  # in a cycle: others that take the pod and nobody refuses, by chance (O-11)

    @property
    def pending(self) -> tuple[Want, ...]:
        return tuple(one.want for one in self.claims if one.is_pending)


# -- deeds ----------------------------------------------------------------------------------------


class Ask(NamedTuple):
    """Which of these nodes will not do? No node is selected."""

    nodes: tuple[str, ...]


class Choose(NamedTuple):
    """Allocate for this one."""

    node: str
    nodes: tuple[str, ...]


class Wait(NamedTuple):
    """For an answer about these."""

    wants: tuple[Want, ...]


class Done(NamedTuple):
    """There is nothing left to talk about."""


class GiveUp(NamedTuple):
    why: str
    is_late: bool = False  # nobody said no: trying again at once would be no use


class Drop(NamedTuple):
    """The object is another pod's: it goes, unread (P5)."""


Deed = Ask | Choose | Wait | Done | GiveUp | Drop


def state_of(talk: Talk | None, pod: str) -> State:
    """How the talk stands by what the object says alone, as after a restart. A node that stands in it as
    selected is one that was asked about: it is chosen anew, or not."""
    if talk is None or talk.pod != pod:
        return Nothing()
    return Asked(frozenset(talk.nodes) | ({talk.selected} if talk.selected else frozenset()))


def step(state: State, told: Told) -> tuple[State, Deed]:
    if told.talk is not None and told.talk.pod != told.pod:
        return Nothing(), Drop()
    if isinstance(state, Chosen):
        return _while_chosen(state, told)
    if not told.pending:
        return state, Done()
    match state:
        case Nothing():
            return _begin(told)
        case Asked():
            return _while_asked(state, told)
        case _:
            assert_never(state)


def _begin(told: Told) -> tuple[State, Deed]:
    if len(told.pending) == 1 and told.best:
        return _choose(told)
    return _ask(told)


def _while_asked(state: Asked, told: Told) -> tuple[State, Deed]:
    if len(told.pending) == 1 and told.best:
        return _choose(told)
    silent = unanswered(told.talk, told.pending)
    if silent:
        return (state, Wait(silent)) if _is_worth_waiting(state, told) else _ask(told)
    if told.best in state.nodes:
        return _choose(told)
    if told.best or set(told.offered) - state.nodes:
        return _ask(told)
    if told.talk is not None and told.talk.selected:
        return _ask(told)  # drivers look again only while nothing is selected
    return state, Wait(told.pending)


def _is_worth_waiting(state: Asked, told: Told) -> bool:
    """Whether any of the nodes that drivers think about would take the pod, or none does anyway."""
    fitting = {*told.offered, *((told.best,) if told.best else ())}
    is_selected = told.talk is not None and bool(told.talk.selected)
    return not is_selected and (not fitting or bool(fitting & state.nodes))


def _ask(told: Told) -> tuple[State, Deed]:
    """About those that stand there already where no others are left: what was refused may be free again."""
    nodes = _listed(told) or (told.talk.nodes if told.talk is not None else ())
    return Asked(frozenset(nodes)), Ask(nodes)


def _choose(told: Told) -> tuple[State, Deed]:
    posted = told.talk.nodes if told.talk is not None else ()
    nodes = posted if told.best in posted else _listed(told)
    return Asked(frozenset(nodes)), Choose(told.best, nodes)


def _listed(told: Told) -> tuple[str, ...]:
    best = (told.best,) if told.best else ()
    return tuple(dict.fromkeys((*best, *told.offered)))[:NODES_MAX]


# -- while drivers allocate -----------------------------------------------------------------------


def _while_chosen(state: Chosen, told: Told) -> tuple[State, Deed]:
    node, asked = state.node.name, Asked(frozenset(state.nodes))
    for one in told.claims:
        if lost := _lost(one, told.pod, state.node):
            return asked, GiveUp(lost)
    waiting = told.pending
    if not waiting:
        return state, Done()
    if no := refusals(told.talk, waiting).get(node):
        return asked, GiveUp(f"driver {no.driver} refused node {node} for claim {no.claim.key.name}")
    if told.now_s - state.since_s >= told.late_s:
        return asked, GiveUp(f"{overdue(waiting, told.now_s - state.since_s)}", is_late=True)
    if told.talk is None or told.talk.selected != node:
        if len(waiting) > 1 and unanswered(told.talk, waiting):
            return asked, GiveUp("what drivers have answered is gone: they are asked again")
        return state, Choose(node, state.nodes)
    return state, Wait(waiting)


def _lost(stand: Stand, pod: str, node: Node) -> str:
    """Why the pod cannot have a claim that was to be allocated for it, if so."""
    want, claim = stand
    name = f"claim {want.claim.key.name}"
    if claim is None or claim.uid != want.claim.uid:
        return f"{name} is gone"
    if claim.is_deleting:
        return f"{name} is being deleted"
    if claim.is_to_be_deallocated:
        return f"{name} is being deallocated"
    if claim.allocation is None:
        return ""
    if claim.is_closed_to(pod):
        return f"{name} went to {', '.join(claim.users_besides(pod))}"
    return "" if is_reachable(claim, node) else f"{name} was allocated, and not for node {node.name}"


# -- what drivers have said -----------------------------------------------------------------------


def refusals(talk: Talk | None, wants: Sequence[Want]) -> Mapping[str, Want]:
    """The nodes that will not do, each with the first claim that it will not do for."""
    found: dict[str, Want] = {}
    for want in wants if talk is not None else ():
        assert talk is not None
        for node in talk.answers.get(want.entry, ()):
            found.setdefault(node, want)
    return found


def unanswered(talk: Talk | None, wants: Sequence[Want]) -> tuple[Want, ...]:
    """An entry is an answer, with an empty list too (PSCHED-13)."""
    answers = talk.answers if talk is not None else {}
    return tuple(one for one in wants if one.entry not in answers)


def overdue(wants: Sequence[Want], seconds: float) -> str:
    """Who is waited for, in words."""
    by_driver: dict[str, list[str]] = {}
    for one in wants:
        by_driver.setdefault(one.driver, []).append(one.claim.key.name)
    return "; ".join(
        f"driver {driver} has not answered for claim{'s' if len(names) > 1 else ''} {', '.join(names)} "
        f"since {seconds:.0f} s"
        for driver, names in sorted(by_driver.items())
    )
