"""What a quota's status should say: pure functions over the quota and counts."""

from collections.abc import Iterable, Mapping
from typing import Any

from allot import quota
from allot.api import Fields


def hard_of(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    return (fields.get("spec") or {}).get("hard") or {}


def used_of(fields: Mapping[str, Any]) -> quota.Usage:
    return quota.parse((fields.get("status") or {}).get("used"))


def sources_of(fields: Mapping[str, Any]) -> dict[quota.Source, None]:
    """Whose objects a quota counts, each once, in order."""
    return {source: None for name in hard_of(fields) for source in quota.sources(name)}


def doubtful(fields: Mapping[str, Any], counted: quota.Usage) -> list[str]:
    """The names that must be counted anew: nobody has counted them, or a cache counts otherwise."""
    used = used_of(fields)
    return [name for name in hard_of(fields) if name not in used or used[name] != counted.get(name)]


def are_less(fields: Mapping[str, Any], names: Iterable[str], counted: quota.Usage) -> bool:
    """Whether under each of these names less was counted than is said to be used."""
    used = used_of(fields)
    return all(name in used and counted[name] < used[name] for name in names)


def is_short(fields: Mapping[str, Any], counted: quota.Usage) -> bool:
    """Whether less is said to be used than was counted, or nothing yet, or other limits are told."""
    used, told = used_of(fields), (fields.get("status") or {}).get("hard") or {}
    if quota.parse(told) != quota.parse(hard_of(fields)):
        return True
    return any(name not in used or used[name] < counted[name] for name in counted)


def status(fields: Mapping[str, Any], recounted: quota.Usage) -> Fields | None:
    """The status with these names counted anew, or None if it says so already."""
    hard, used = hard_of(fields), used_of(fields)
    wanted = {**quota.mask(used, hard), **recounted}
    told = (fields.get("status") or {}).get("hard") or {}
    if wanted == used and quota.parse(told) == quota.parse(hard):
        return None
    return {"hard": dict(hard), "used": quota.written(wanted)}
