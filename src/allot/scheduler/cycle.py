"""One pod, one decision: the whole story on one page.

    sign       what decides where the pod fits; a plugin may say at once that it cannot
    board      what is known of every node for that signature, brought up to date
    choose     the best node that nobody vetoes for this pod, on which `reserve` then holds what it needs
    or else    `post_filter`: what would make room; and why every node said no

A cycle is a generator: it yields wherever others may have their turn on the event
loop, or work that takes long, and returns its outcome. It awaits nothing, and nothing
may change in the snapshot while it pauses. What it decides is in the snapshot when it
returns (SNAP1); what must be written is in the outcome.
"""

from collections import Counter
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from allot.allocation import Explanation

from .board import Board, Boards, first_rejection
from .framework import (
    Check,
    Checks,
    CycleState,
    FilterPlugin,
    LongWork,
    Plugin,
    PostFilterPlugin,
    PreEnqueuePlugin,
    Rate,
    Rejection,
    ReservePlugin,
    ScorePlugin,
    Sentence,
    Signature,
    SignPlugin,
    TellPlugin,
    Tier,
    Veto,
    VetoPlugin,
    offering,
)
from .node import NodeInfo
from .pod import PodInfo
from .snapshot import Snapshot
from .timing import Stopped, Stopwatch
from .writes import Remedy, Write, as_placed


@dataclass(frozen=True, slots=True)
class Placed:
    """The pod goes to a node, once these writes are made."""

    state: CycleState
    node: str
    writes: tuple[Write, ...]


@dataclass(frozen=True, slots=True)
class Unplaced:
    """No node takes the pod now."""

    state: CycleState
    group: Hashable  # equal for pods that fit in the same places, whatever classes stand for
    nodes: int  # in the cluster
    reasons: Counter[Rejection] = field(default_factory=Counter)  # by number of nodes; one of 0: the pod's
    remedy: Remedy | None = None
    sentences: tuple[Sentence, ...] = ()  # what plugins have to say about it

    @property
    def rejected_by(self) -> frozenset[str]:
        return frozenset(one.plugin for one in self.reasons)


Outcome = Placed | Unplaced
NOBODY: Mapping[str, Rejection] = {}
Aside = Callable[[], None]
"""Work that takes long and changes nothing: it may be done in another thread while the cycle pauses."""


class Cycle:
    def __init__(self, plugins: Sequence[Plugin], watch: Stopwatch | None = None) -> None:
        self._gates = offering(plugins, PreEnqueuePlugin)
        self._signs = offering(plugins, SignPlugin)
        self._filters = offering(plugins, FilterPlugin)
        self._scores = offering(plugins, ScorePlugin)
        self._vetoes = offering(plugins, VetoPlugin)
        self._rescues = offering(plugins, PostFilterPlugin)
        self._reserves = offering(plugins, ReservePlugin)
        self._tells = offering(plugins, TellPlugin)
        self._boards = Boards()
        self._watch = watch if watch is not None else Stopped()

    def gate(self, pod: PodInfo, snapshot: Snapshot) -> str | None:
        """PreEnqueue: why the pod cannot be tried yet."""
        return next((why for one in self._gates if (why := one.pre_enqueue(pod, snapshot))), None)

    def schedule_one(self, state: CycleState, snapshot: Snapshot) -> Generator[Aside | None, None, Outcome]:
        self._watch.begin_cycle()
        while isinstance(signature := self._sign(state, snapshot), LongWork):
            yield signature
        if isinstance(signature, Rejection):
            alike = (signature.plugin, signature.reason)
            return (yield from self._unplaced(state, alike, snapshot, Counter({signature: 0})))
        board = self._board(state, signature, snapshot)
        yield from board.refresh(snapshot, self._watch)
        state.fitting = board.order
        veto = self.veto(state, snapshot)
        refused: dict[str, Rejection] = {}
        if veto is not None and board.takes(veto.first) and veto.refuses(veto.first) is None:
            placed = self._try(state, board, veto.first, snapshot)
            if placed is not None:
                return placed
        at = 0
        while at < len(board.order):
            name = board.order[at].node
            if veto is not None and (why := veto.refuses(name)) is not None:
                refused[name] = why  # it stays on the board: others were not refused (PLUGIN5)
                at += 1
                continue
            placed = self._try(state, board, name, snapshot)
            if placed is not None:
                return placed
            yield None
        placed = yield from self._look_harder(state, board, snapshot, veto)
        if placed is not None:
            return placed
        reasons = Counter(board.reasons)
        group: Hashable = signature.parts
        if refused:
            reasons.update(refused.values())
            group = (signature.parts, state.pod.uid)
        return (yield from self._unplaced(state, group, snapshot, reasons, board, refused, veto))

    def fitting(self, pod: PodInfo, now: datetime, snapshot: Snapshot) -> Sequence[str]:
        """The nodes that would take the pod, best first; what its board knows already costs nothing."""
        board = self.judged(pod, now, snapshot)
        return [] if isinstance(board, Rejection) else [rank.node for rank in board.order]

    def judged(self, pod: PodInfo, now: datetime, snapshot: Snapshot) -> Board | Rejection:
        """What every node says to the pod, or why it cannot even be asked."""
        state = CycleState(pod, now)
        signature = self.sign(state, snapshot)
        if isinstance(signature, Rejection):
            return signature
        board = self._board(state, signature, snapshot)
        for _ in board.refresh(snapshot, self._watch):
            pass
        return board

    def _try(self, state: CycleState, board: Board, name: str, snapshot: Snapshot) -> Placed | None:
        node = snapshot.node(name)
        assert node is not None  # the board is up to date
        held = self.reserve(state, node, snapshot)
        if isinstance(held, Rejection):
            board.reject(name, held)
            return None
        snapshot.place(as_placed(state.pod, held), name)
        return Placed(state, name, held)

    def veto(self, state: CycleState, snapshot: Snapshot) -> Veto | None:
        """What was said about a signed pod alone (PLUGIN5); the first plugin that has heard of something."""
        for plugin in self._vetoes:
            said = plugin.veto(state, snapshot)
            if said is not None:
                return said
        return None

    def _look_harder(
        self, state: CycleState, board: Board, snapshot: Snapshot, veto: Veto | None
    ) -> Generator[Aside | None, None, Placed | None]:
        """Nothing fits for certain: some nodes that were too hard to decide get more time (P2)."""
        undecided = [
            name
            for name, why in board.rejections.items()
            if why.undecided and (veto is None or veto.refuses(name) is None)
        ]
        if not undecided:
            return None
        closer = CycleState(state.pod, state.now, state.read, thorough=True, seed=state.seed)
        checks, _ = self.checks(closer, snapshot)
        for name in islice(undecided, UNDECIDED_MAX):
            node = snapshot.node(name)
            assert node is not None  # the board is up to date
            look = _Look(checks, node)
            yield look
            if look.rejection is not None:
                continue
            held = self.reserve(closer, node, snapshot)
            if not isinstance(held, Rejection):
                snapshot.place(as_placed(state.pod, held), name)
                return Placed(closer, name, held)
        return None

    def sign(self, state: CycleState, snapshot: Snapshot) -> Signature | Rejection:
        """However long that takes."""
        while isinstance(signed := self._sign(state, snapshot), LongWork):
            signed()
        return signed

    def _sign(self, state: CycleState, snapshot: Snapshot) -> Signature | Rejection | LongWork:
        parts: list[Hashable] = []
        for plugin in self._signs:
            part = self._watch.ask(plugin.name, "PreFilter", plugin.sign, state, snapshot)
            if isinstance(part, Rejection | LongWork):
                return part
            parts.append(part)
        return Signature(tuple(parts), tuple(sorted(state.classes.items())))

    def reserve(self, state: CycleState, node: NodeInfo, snapshot: Snapshot) -> tuple[Write, ...] | Rejection:
        """Hold what the pod needs on the node: all of it or nothing."""
        writes: tuple[Write, ...] = ()
        for count, plugin in enumerate(self._reserves):
            held = self._watch.ask(plugin.name, "Reserve", plugin.reserve, state, node, snapshot)
            if isinstance(held, Rejection):
                for earlier in reversed(self._reserves[:count]):
                    earlier.unreserve(state, snapshot)
                return held
            writes += held
        return writes

    def unreserve(self, state: CycleState, snapshot: Snapshot) -> None:
        """The binding failed: give back what was held and not written (P1)."""
        for plugin in reversed(self._reserves):
            plugin.unreserve(state, snapshot)
        placed = snapshot.pod(state.pod.uid)
        if placed is not None and not placed.spec.node_name:  # else somebody has bound it meanwhile
            snapshot.remove(state.pod.uid)

    def _board(self, state: CycleState, signature: Signature, snapshot: Snapshot) -> Board:
        board = self._boards.get(signature)
        if board is None:
            made = self._made(state, snapshot)
            only = _common([checks for _, checks in made])
            rates: dict[Tier, list[Rate]] = {}
            for plugin in self._scores:
                rate = self._watch.ask(plugin.name, "PreScore", plugin.pre_score, state, snapshot)
                if rate is not None:
                    rates.setdefault(plugin.tier, []).append(rate)
            names, checks = [name for name, _ in made], [one.check for _, one in made]
            board = Board(checks, rates, only, state.made, names)
            if only is None:  # what is narrowed to a few nodes is cheap, and seldom asked twice
                self._boards.keep(signature, board)
        state.made = board.made
        return board

    def checks(self, state: CycleState, snapshot: Snapshot) -> tuple[list[Check], frozenset[str] | None]:
        """PreFilter: the checks of a signed pod, and the nodes that they leave."""
        made = [checks for _, checks in self._made(state, snapshot)]
        return [one.check for one in made], _common(made)

    def _made(self, state: CycleState, snapshot: Snapshot) -> list[tuple[str, Checks]]:
        """With the names of the plugins; those that have nothing to check are not there."""
        made: list[tuple[str, Checks]] = []
        for plugin in self._filters:
            checks = self._watch.ask(plugin.name, "PreFilter", plugin.pre_filter, state, snapshot)
            if checks is not None:
                made.append((plugin.name, checks))
        return made

    def _unplaced(
        self,
        state: CycleState,
        group: Hashable,
        snapshot: Snapshot,
        reasons: Counter[Rejection],
        board: Board | None = None,
        refused: Mapping[str, Rejection] = NOBODY,
        veto: Veto | None = None,
    ) -> Generator[None, None, Unplaced]:
        nodes = sum(1 for _ in snapshot.node_names())
        if board is not None and nodes > board.looked_at:  # the rest is not where its claims are, or the pod
            reasons[NOT_ASKED] = nodes - board.looked_at
        rejections = tuple(board.rejections.items()) if board is not None else ()
        if veto is not None:  # a node that is refused is no place to make room on
            rejections = tuple((name, _last_word(veto, name, why)) for name, why in rejections)
            rejections += tuple(refused.items())
        remedy: Remedy | None = None
        for plugin in self._rescues:
            asking = plugin.post_filter(state, snapshot, rejections)
            remedy = yield from self._watch.ask_in_turns(plugin.name, "PostFilter", asking)
            if remedy is not None:
                break
        return Unplaced(state, group, nodes, reasons, remedy, self.tell(state, rejections))

    def tell(self, state: CycleState, rejections: Sequence[tuple[str, Rejection]]) -> tuple[Sentence, ...]:
        """What the plugins have to say about nodes that turned a signed pod down."""
        return tuple(said for one in self._tells if (said := one.tell(state, rejections)) is not None)

    def explain(
        self,
        state: CycleState,
        snapshot: Snapshot,
        rejections: Sequence[tuple[str, Rejection]],
        named: Callable[[str], str],
    ) -> Mapping[str, Explanation]:
        """The same in full, by node."""
        found: dict[str, Explanation] = {}
        for one in self._tells:
            found.update(one.explain(state, snapshot, rejections, named))
        return found


class _Look:
    """A look at a node that takes its time."""

    def __init__(self, checks: Sequence[Check], node: NodeInfo) -> None:
        self._checks = checks
        self._node = node
        self.rejection: Rejection | None = None

    def __call__(self) -> None:
        self.rejection = first_rejection(self._checks, self._node)


UNDECIDED_MAX = 4
NOT_ASKED = Rejection("", "node(s) are not where the pod or its claims can be")


def _last_word(veto: Veto, name: str, why: Rejection) -> Rejection:
    said = veto.refuses(name)
    return why if said is None or said.unanswered else said


def said(sentences: Sequence[Sentence], snapshot: Snapshot) -> str:
    return " ".join(words for one in sentences if (words := one(snapshot)))


def _common(made: Sequence[Checks]) -> frozenset[str] | None:
    """The nodes that every plugin leaves."""
    narrowed = [one.nodes for one in made if one.nodes is not None]
    return frozenset.intersection(*narrowed) if narrowed else None
