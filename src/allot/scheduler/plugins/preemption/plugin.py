"""DefaultPreemption: a pod of higher priority may have the room of others."""

from collections.abc import Generator, Hashable, Sequence

from ...framework import Checks, CycleState, Event, Plugin, Rejection
from ...node import NodeInfo
from ...pod import PodInfo
from ...snapshot import Snapshot
from ...writes import Preempt
from .budgets import Budgets
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

        After about `checks_max` checks the best that was found is taken, and the next time it
        goes on where it stopped.
        """
        self._plugins = tuple(plugins)
        self._checks_max = checks_max
        self._turn = 0

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
    ) -> Generator[None, None, Preempt | None]:
        pod, lowest = state.pod, snapshot.lowest_priority
        if not pod.may_preempt or lowest is None or lowest >= pod.priority:
            return None
        nodes = self._in_turn(pod, snapshot, rejections)
        if not nodes:
            return None
        trial, budgets = Trial(state, snapshot, self._plugins), Budgets(snapshot.prospects.budgets)
        found = yield from self._search(trial, nodes, budgets)
        if found is None:
            snapshot.unnominate(pod.uid)  # the room that was to come does not come
            return None
        if not found.victims and found.node == _nomination(pod, snapshot):
            return None  # it is only to be waited for
        snapshot.prospects.evict((victim.uid for victim in found.victims), state.now)
        snapshot.nominate(pod, found.node)
        return found

    def _search(
        self, trial: Trial, nodes: Sequence[str], budgets: Budgets
    ) -> Generator[None, None, Preempt | None]:
        """The cheapest eviction; none at all where room is coming anyway."""
        best: Choice | None = None
        paused_at = 0
        for count, name in enumerate(nodes):
            if trial.asked >= self._checks_max:
                break
            if count % NODES_AT_ONCE == 0 or trial.asked > paused_at:
                paused_at = trial.asked
                yield
            self._turn += 1
            if trial.prepare(name) and trial.fits(name):
                return Preempt(name, ())
            found = choose(trial, name, budgets, best.price if best is not None else None)
            trial.reset()
            best = found or best
        return Preempt(best.node, best.victims) if best is not None else None

    def _in_turn(
        self, pod: PodInfo, snapshot: Snapshot, rejections: Sequence[tuple[str, Rejection]]
    ) -> list[str]:
        """Nodes where fewer pods could help: the one that was chosen before, then from where we stopped."""
        names = sorted(name for name, rejection in rejections if rejection.resolvable)
        start = self._turn % len(names) if names else 0
        names = names[start:] + names[:start]
        nominated = _nomination(pod, snapshot)
        if nominated in names:
            names.remove(nominated)
            names.insert(0, nominated)
        return names


def _nomination(pod: PodInfo, snapshot: Snapshot) -> str | None:
    return snapshot.prospects.nomination(pod.uid) or pod.status.nominated_node_name or None
