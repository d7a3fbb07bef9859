"""DefaultPreemption: a pod of higher priority may have the room of others."""

from bisect import bisect_left
from collections.abc import Generator, Hashable, Sequence

from ...budgets import Budgets
from ...framework import Checks, CycleState, Event, Plugin, Rejection
from ...node import NodeInfo
from ...prospects import LeftOff, Prospects
from ...snapshot import Snapshot
from ...writes import Preempt, SearchOn
from ..devices import DynamicResources
from .choosing import Choice, choose
from .trial import Trial

NAME = "DefaultPreemption"
KEPT = Rejection(NAME, "node(s) are kept for a pod of higher priority")
CHECKS_MAX = 500
NODES_AT_ONCE = 32


class DefaultPreemption:
    name = NAME
    events = frozenset({Event.NODE_ADDED, Event.NODE_CHANGED, Event.POD_GONE, Event.POD_CHANGED})

    def __init__(self, plugins: Sequence[Plugin], *, checks_max: int = CHECKS_MAX) -> None:
        """`plugins` are the others: whoever else decides where a pod fits, and what it holds there.

        After about `checks_max` checks the best that was found is taken. Where nothing was, the search goes
        on a moment later where it stopped, until it has seen every node once.
        """
        self._plugins = tuple(plugins)
        self._checks_max = checks_max

    # -- room that is made stays for whom it is made ----------------------------------------------

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable:
        return state.pod.priority

    def pre_filter(self, state: CycleState, snapshot: Snapshot) -> Checks:
        priority, prospects = state.pod.priority, snapshot.prospects

        def check(node: NodeInfo) -> Rejection | None:
            nominees = prospects.nominees(node.name)
            return KEPT if nominees and any(one.priority > priority for one in nominees) else None

        return Checks(check)

    # -- making it ----------------------------------------------------------------------------------

    def post_filter(
        self, state: CycleState, snapshot: Snapshot, rejections: Sequence[tuple[str, Rejection]]
    ) -> Generator[None, None, Preempt | SearchOn | None]:
        pod, lowest, prospects = state.pod, snapshot.lowest_priority, snapshot.prospects
        nominated = prospects.nomination(pod.uid)
        may_evict = pod.may_preempt and lowest is not None and lowest < pod.priority
        if not may_evict and nominated is None:
            return None
        left_off = prospects.resumed(pod.uid, state.now)
        nodes = _in_turn(rejections, nominated, left_off.at if left_off is not None else prospects.looked_at)
        if not may_evict:  # room that was made for it may still be on its way
            nodes = [name for name in nodes if name == nominated]
        devices = DynamicResources.name
        for_devices = frozenset(name for name, rejection in rejections if rejection.plugin == devices)
        trial = Trial(state, snapshot, self._plugins)
        budgets = None
        if may_evict:
            budgets = Budgets(dict(prospects.budgets.items()), prospects.charges(state.now))
        found, seen = yield from self._search(trial, nodes, budgets, for_devices, prospects)
        if found is None:
            snapshot.unnominate(pod.uid)  # the room that was to come does not come
            left = (left_off.nodes if left_off is not None else len(nodes)) - seen
            if seen < len(nodes) and left > 0:
                prospects.leave_off(pod.uid, LeftOff(nodes[seen], left, state.now))
                return SearchOn()
            return None
        if not found.victims and found.node == nominated:
            return None  # it is only to be waited for
        prospects.evict(found.victims, state.now)
        snapshot.nominate(pod, found.node)
        return found

    def _search(
        self,
        trial: Trial,
        nodes: Sequence[str],
        budgets: Budgets | None,
        for_devices: frozenset[str],
        prospects: Prospects,
    ) -> Generator[None, None, tuple[Preempt | None, int]]:
        """The cheapest eviction, none at all where room is coming anyway; and how many nodes were seen.

        Without `budgets` nobody may be evicted. Nodes of `for_devices` have too few devices: who holds none
        is not worth a check there.
        """
        best: Choice | None = None
        paused_at = count = 0
        for count, name in enumerate(nodes):
            if trial.asked >= self._checks_max:
                break
            if count % NODES_AT_ONCE == 0 or trial.asked > paused_at:
                paused_at = trial.asked
                yield
            prospects.looked_at += 1
            if trial.prepare(name) and trial.fits(name):
                return Preempt(name, ()), count
            if budgets is not None and (name not in for_devices or trial.may_free_devices(name)):
                found = choose(trial, name, budgets, best.price if best is not None else None)
                best = found or best
            trial.reset()
        else:
            count = len(nodes)
        return (Preempt(best.node, best.victims) if best is not None else None), count


def _in_turn(
    rejections: Sequence[tuple[str, Rejection]], nominated: str | None, start: str | int
) -> list[str]:
    """Nodes where fewer pods could help: the one that was chosen before, then from where we stopped, which
    is a node or just a number."""
    names = sorted(name for name, rejection in rejections if rejection.resolvable)
    if not names:
        return []
    first = bisect_left(names, start) if isinstance(start, str) else start % len(names)
    names = names[first:] + names[:first]
    if nominated in names:
        names.remove(nominated)
        names.insert(0, nominated)
    return names
