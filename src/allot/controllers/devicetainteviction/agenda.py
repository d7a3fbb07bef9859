"""Who must leave, and for which rules. Pure, owned by one term of leadership.

AGENDA1  What is pending for a rule are the pods whose eviction was put here and that name it.
AGENDA2  Whoever changes what is pending for a rule, or how many it has evicted, is told the rule.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from allot.informers import Key

from .plan import Eviction


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a rule has come."""

    pending: int = 0
    namespaces: int = 0  # of those that are pending
    evicted: int = 0


class Agenda:
    def __init__(self) -> None:
        self._evictions: dict[Key, Eviction] = {}
        self._pods: dict[str, dict[Key, None]] = {}  # by rule
        self._evicted: Counter[str] = Counter()  # by rule

    def __contains__(self, pod: Key) -> bool:
        return pod in self._evictions

    def put(self, pod: Key, eviction: Eviction | None) -> Iterable[str]:
        """Note when a pod must leave, or that it may stay. Returns the rules that this concerns."""
        before = self._evictions.pop(pod, None)
        if eviction is not None:
            self._evictions[pod] = eviction
        old = before.rules() if before is not None else ()
        new = eviction.rules() if eviction is not None else ()
        for rule in old:
            if rule not in new:
                self._leave(rule, pod)
        for rule in new:
            self._pods.setdefault(rule, {})[pod] = None
        return [rule for rule in dict.fromkeys((*old, *new)) if (rule in old) != (rule in new)]

    def evicted(self, pod: Key, now: datetime) -> Iterable[str]:
        """It was told to go. Every rule that wanted that by now has done it."""
        eviction = self._evictions.get(pod)
        if eviction is not None:
            self._evicted.update(eviction.rules(now))
        return self.put(pod, None)

    def pods(self, rule: str) -> tuple[Key, ...]:
        return tuple(self._pods.get(rule, ()))

    def progress(self, rule: str) -> Progress:
        pods = self._pods.get(rule, {})
        return Progress(len(pods), len({pod.namespace for pod in pods}), self._evicted[rule])

    def forget(self, rule: str) -> None:
        """The rule is gone; another one of its name begins at nothing."""
        self._evicted.pop(rule, None)

    def _leave(self, rule: str, pod: Key) -> None:
        pods = self._pods[rule]
        del pods[pod]
        if not pods:
            del self._pods[rule]
