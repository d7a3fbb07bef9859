"""How many pods may be disturbed: PodDisruptionBudgets, asked about a set of victims."""

from collections.abc import Iterable, Mapping, Sequence

from allot.api import core
from allot.informers import Key

from .pod import PodInfo

Known = Mapping[Key, core.PodDisruptionBudget]


class Budgets:
    def __init__(self, known: Known, charges: Iterable[PodInfo] = ()) -> None:
        """`charges` are pods that were told to go and that nobody may have counted yet. One that has been
        counted is charged twice for a moment: rather that than a budget that is overdrawn."""
        self._by_namespace: dict[str, list[tuple[Key, core.PodDisruptionBudget]]] = {}
        for key, budget in known.items():
            self._by_namespace.setdefault(key.namespace, []).append((key, budget))
        self._known: dict[str, tuple[Key, ...]] = {}  # by pod uid
        self._allowed = {key: budget.status.disruptions_allowed for key, budget in known.items()}
        for pod in charges:
            for key in self.covering(pod):
                self._allowed[key] -= 1

    def violations(self, pods: Sequence[PodInfo]) -> int:
        return len(self.violating(pods))

    def violating(self, pods: Iterable[PodInfo]) -> list[PodInfo]:
        """Those for whom nothing is left in a budget, the earlier ones having used it first."""
        left: dict[Key, int] = {}
        found = []
        for pod in pods:
            covering = self.covering(pod)
            for key in covering:
                left[key] = left.get(key, self._allowed[key]) - 1
            if any(left[key] < 0 for key in covering):
                found.append(pod)
        return found

    def covering(self, pod: PodInfo) -> tuple[Key, ...]:
        """The budgets that an eviction would count against; not those that count it already."""
        if pod.uid not in self._known:
            self._known[pod.uid] = tuple(
                key
                for key, budget in self._by_namespace.get(pod.key.namespace, ())
                if pod.key.name not in budget.status.disrupted_pods and budget.covers(pod.labels)
            )
        return self._known[pod.uid]
