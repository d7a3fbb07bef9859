"""Which pods must go from one node: the cheapest set that lets the pod in.

First all that may go are gone, and if that is not enough nothing is. Then they come back one
by one, those that a budget protects first and the most important first; whoever keeps the
pod out is a victim. What is left is small, but not always the cheapest: one large pod may do
for two small ones. So cheaper sets are tried, as far as the number of checks allows.
"""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations

from ...budgets import Budgets
from ...pod import PodInfo
from .price import Price, cheapest, importance, price
from .trial import Trial

CHECKS_MAX = 32
SETS_MAX = 512


@dataclass(frozen=True, slots=True)
class Choice:
    node: str
    victims: tuple[PodInfo, ...]  # the most important first
    price: Price


def choose(trial: Trial, node: str, budgets: Budgets, than: Price | None = None) -> Choice | None:
    """The cheapest victims on a node that is prepared; None where none do, or none cheaper `than` that."""
    candidates = sorted(trial.candidates(node), key=importance)
    if not candidates or (than is not None and cheapest(candidates) >= than):
        return None
    for pod in candidates:
        trial.evict(pod)
    if not trial.fits(node):
        return None
    protected = budgets.violating(candidates)
    victims = _reprieved(trial, node, candidates, protected)
    if not victims:
        return None
    found = Choice(node, victims, price(victims, budgets))
    if len(victims) > 1 or protected:  # a single one, with no budgets in play, is the cheapest
        found = _cheaper(trial, candidates, budgets, found)
    return found if than is None or found.price < than else None


def _reprieved(
    trial: Trial, node: str, candidates: Sequence[PodInfo], protected: Sequence[PodInfo]
) -> tuple[PodInfo, ...]:
    """Of those that are out, the ones that cannot come back."""
    first = {pod.uid for pod in protected}
    victims = []
    for pod in sorted(candidates, key=lambda pod: pod.uid not in first):
        trial.restore(pod)
        if not trial.fits(node):
            trial.evict(pod)
            victims.append(pod)
    return tuple(sorted(victims, key=importance))


def _cheaper(trial: Trial, candidates: Sequence[PodInfo], budgets: Budgets, found: Choice) -> Choice:
    """Small sets first, and the least important pods first: of sets that are alike the first is the best."""
    out = {pod.uid: pod for pod in found.victims}
    sorts = _sorts(trial, candidates, budgets, found.node)
    seen: set[tuple[int, ...]] = set()
    checks_end = trial.asked + CHECKS_MAX
    sets = 0
    for count in range(1, len(candidates) + 1):
        if cheapest(candidates, count) >= found.price:
            break  # and larger sets cost more
        for chosen in combinations(reversed(candidates), count):
            sets += 1
            if sets > SETS_MAX or trial.asked >= checks_end:
                return found
            alike = tuple(sorted(sorts[pod.uid] for pod in chosen))
            if alike in seen:
                continue
            seen.add(alike)
            victims = chosen[::-1]
            cost = price(victims, budgets)
            if cost < found.price:
                out = _only(trial, victims, out)
                if trial.fits(found.node):
                    found = Choice(found.node, victims, cost)
    return found


def _sorts(trial: Trial, pods: Sequence[PodInfo], budgets: Budgets, node: str) -> dict[str, int]:
    """A number for each pod, equal for those that do and cost the same, age aside."""
    numbers: dict[Hashable, int] = {}
    found = {}
    for pod in pods:
        likeness = (trial.likeness(pod, node), pod.priority, budgets.covering(pod))
        found[pod.uid] = numbers.setdefault(likeness, len(numbers))
    return found


def _only(trial: Trial, victims: Collection[PodInfo], out: dict[str, PodInfo]) -> dict[str, PodInfo]:
    """These are out and no others. `out` says who is now."""
    wanted = {pod.uid: pod for pod in victims}
    for uid, pod in out.items():
        if uid not in wanted:
            trial.restore(pod)
    for uid, pod in wanted.items():
        if uid not in out:
            trial.evict(pod)
    return wanted
