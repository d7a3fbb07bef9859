"""Which compute resources a selector selects: a function of the class and of the properties alone.

So the answer holds on every node that has a resource of the same name, and may be kept.
"""

from collections.abc import Mapping, Sequence

from . import numbers
from .types import ResourcePropertySelector, ResourceSelectorRequirement

Properties = Mapping[str, str]


def selects(selectors: Sequence[ResourcePropertySelector], properties: Properties) -> bool:
    """Whether one of the alternatives holds; without any there is no constraint."""
    return not selectors or any(
        all(holds(need, properties) for need in selector.match_expressions) for selector in selectors
    )


def holds(need: ResourceSelectorRequirement, properties: Properties) -> bool:
    value = properties.get(need.key)
    match need.operator:
        case "In":
            return value in need.values
        case "NotIn":
            return value not in need.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return value is not None and _compares(need, value)
        case _:
            return False


def _compares(need: ResourceSelectorRequirement, value: str) -> bool:
    found, wanted = numbers.parse(value), numbers.parse(need.values[0]) if need.values else None
    if found is None or wanted is None:
        return False
    return found.compare(wanted) == (1 if need.operator == "Gt" else -1)


def unmet(selectors: Sequence[ResourcePropertySelector], properties: Properties) -> str:
    """Why nothing is selected, by the first expression of the alternative that fails last."""
    failing = [
        next((at, need) for at, need in enumerate(one.match_expressions) if not holds(need, properties))
        for one in selectors
    ]
    return _told(max(failing, key=lambda pair: pair[0])[1], properties) if failing else ""


def _told(need: ResourceSelectorRequirement, properties: Properties) -> str:
    value = properties.get(need.key)
    wanted = " ".join(part for part in (need.key, need.operator, ",".join(need.values)) if part)
    if value is None:
        return f"{wanted}: no such property"
    if need.operator in ("Gt", "Lt"):
        found = numbers.parse(value)
        if found is None:
            return f"{wanted}: {value!r} is not a number"
        other = numbers.parse(need.values[0])
        if other is not None and found.compare(other) is None:
            return f"{wanted}: {value!r} has another unit"
    return f"{wanted}: it is {value!r}"
