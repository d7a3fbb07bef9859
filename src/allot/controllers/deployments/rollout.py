"""How large each replica set should be next. Pure: sizes in, sizes out.

Promises, at every step, whatever the order in which pods become ready
    ROLL1  There are never more pods wanted than replicas + maxSurge.
    ROLL2  Of pods that are available, at least replicas - maxUnavailable are left alone.
    ROLL3  If pods become available, the rollout ends with all pods in the newest set.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .views import Deployment

Sizes = dict[str, int]
"""Name of a replica set -> how large it is to be. What is not named stays."""


@dataclass(frozen=True, slots=True)
class Set:
    """A replica set as sizes."""

    name: str
    created: str
    replicas: int
    available: int = 0
    desired: int | None = None  # what the deployment wanted when this was last sized
    most: int | None = None  # likewise, with the surge


def first_size(wish: Deployment, old: Sequence[Set]) -> int:
    """How large the newest set begins."""
    return _new_size(wish, 0, sum(one.replicas for one in old))


def roll(wish: Deployment, new: Set, old: Sequence[Set]) -> Sizes:
    """One step of a rolling update: first the newest set grows, then the old ones shrink."""
    total = new.replicas + sum(one.replicas for one in old)
    wanted = _new_size(wish, new.replicas, total)
    if wanted != new.replicas:
        return {new.name: wanted}
    return _shrink(wish, new, [one for one in old if one.replicas], total)


def _new_size(wish: Deployment, size: int, total: int) -> int:
    wanted = wish.spec.replicas
    if wish.is_recreated or size >= wanted:
        return wanted
    room = wanted + wish.surge - total
    return size + min(max(0, room), wanted - size)


def _shrink(wish: Deployment, new: Set, old: Sequence[Set], total: int) -> Sizes:
    """Pods that are not available go first, the oldest sets' before others'; then as many of the
    available ones as may be missing."""
    least = wish.spec.replicas - wish.unavailable
    may_go = total - least - (new.replicas - new.available)
    if may_go <= 0:
        return {}
    sizes = {one.name: one.replicas for one in old}
    in_order = sorted(old, key=lambda one: (one.created, one.name))
    for one in in_order:
        unhealthy = min(may_go, max(0, one.replicas - one.available))
        sizes[one.name] -= unhealthy
        may_go -= unhealthy
    spare = new.available + sum(min(one.available, sizes[one.name]) for one in old) - least
    for one in in_order:
        leaves = min(max(0, min(spare, may_go)), sizes[one.name])
        sizes[one.name] -= leaves
        spare -= leaves
        may_go -= leaves
    return {one.name: sizes[one.name] for one in old if sizes[one.name] != one.replicas}


def is_resized(wish: Deployment, sets: Sequence[Set]) -> bool:
    """The number of replicas has changed since the sets were sized."""
    return any(one.replicas and one.desired is not None and one.desired != wish.spec.replicas for one in sets)


def resize(wish: Deployment, new: Set | None, old: Sequence[Set]) -> Sizes:
    """A new number of replicas. In the middle of a rollout every set gets its share of the change."""
    wanted = wish.spec.replicas
    everyone = [*old] if new is None else [new, *old]
    active = [one for one in everyone if one.replicas]
    if len(active) <= 1:
        alone = (
            active[0] if active else new or max(old, key=lambda one: (one.created, one.name), default=None)
        )
        return {} if alone is None else {alone.name: wanted}
    if new is not None and _is_saturated(wish, new):
        return {one.name: 0 for one in old if one.replicas}
    return {} if wish.is_recreated else _shares(wish, active)


def _is_saturated(wish: Deployment, new: Set) -> bool:
    return new.replicas == new.desired == new.available == wish.spec.replicas


def _shares(wish: Deployment, active: Sequence[Set]) -> Sizes:
    """Each set changes in proportion to its size; what rounding leaves over the first one gets.

    The largest are first; of equals, the youngest when there is to be more, the oldest when less."""
    allowed = wish.spec.replicas + wish.surge if wish.spec.replicas else 0
    change = allowed - sum(one.replicas for one in active)
    in_order = sorted(active, key=lambda one: (one.created, one.name), reverse=change > 0)
    in_order.sort(key=lambda one: -one.replicas)
    sizes = {one.name: one.replicas for one in active}
    left = change
    for one in in_order:
        share = _share(one, wish)
        share = min(max(0, share), left) if change > 0 else max(min(0, share), left)
        sizes[one.name] += share
        left -= share
    first = in_order[0].name
    sizes[first] = max(0, sizes[first] + left)
    return sizes


def _share(one: Set, wish: Deployment) -> int:
    if not wish.spec.replicas:
        return -one.replicas
    before = one.most or max(1, wish.status.replicas)
    most = wish.spec.replicas + wish.surge
    return round(one.replicas * most / before) - one.replicas
