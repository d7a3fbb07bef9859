"""Whether claims fit on a node, worked out without any of what decides it: every way is tried."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

Free = Mapping[str, int]


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    for key, value in ((selector or {}).get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for one in (selector or {}).get("matchExpressions") or ():
        has = labels.get(one["key"])
        holds = {
            "In": has in one.get("values", ()),
            "NotIn": has not in one.get("values", ()),
            "Exists": has is not None,
            "DoesNotExist": has is None,
        }
        if not holds[one["operator"]]:
            return False
    return True


def ways(model: str, asked: Mapping[str, Any], capacity: Mapping[str, Any], free: Free) -> Iterator[Free]:
    """Everything that the claim might take of an instance."""
    if not selects(asked.get("selector"), capacity["metadata"]["labels"]):
        return
    if model == "counter":
        yield {"counter.dra.config.k8s.io/count": asked["required"]}
    elif model == "partition":
        profile = capacity["profiles"][asked["profile"]]
        for start in profile.get("starts", range(capacity["slots"])):
            if start + profile["slots"] <= capacity["slots"]:
                taken = range(start, start + profile["slots"])
                yield {f"partition.dra.config.k8s.io/slot{number}": 1 for number in taken}
    else:
        names = sorted(free)
        for amounts in product(*(range(free[name] + 1) for name in names)):
            if sum(amounts) != asked["required"]:
                continue
            if asked["alignment"] == "SingleZone" and sum(1 for one in amounts if one) > 1:
                continue
            yield dict(zip(names, amounts, strict=True))


def fits(model: str, asked: Sequence[Mapping[str, Any]], shelf: Sequence[tuple[Any, Free]]) -> bool:
    """`shelf` has the capacity of each instance, as written, and what is free of it."""
    if not asked:
        return True
    for at, (capacity, free) in enumerate(shelf):
        for takes in ways(model, asked[0], capacity, free):
            left = {name: amount - takes.get(name, 0) for name, amount in free.items()}
            if min(left.values(), default=0) >= 0 and fits(
                model, asked[1:], [*shelf[:at], (capacity, left), *shelf[at + 1 :]]
            ):
                return True
    return False
