"""The rules of a container's `allocatedComputeResources`: which compute resources serve what it asks for.

It is written with the binding, or by the pod's author beforehand, and never changes once it is there. Clients
that do not know it leave it out when they write a pod; it stays all the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from .. import field
from ..field import FieldError, Path
from ..gates import Gates
from ..kind import Fields
from ..quantity import Quantity
from ..resource import gated
from . import limits, naming

RECORD = "allocatedComputeResources"
SORTS = ("initContainers", "containers")
_COUNT_MAX = 2**31 - 1
_GATED = gated.Table({limits.GATE: tuple(f"spec.{sort}.*.{RECORD}" for sort in SORTS)})


def drop_gated(new: Fields, old: Fields | None, gates: Gates) -> None:
    gated.drop(new, old, gates, _GATED)


def keep_unsaid(new: Fields, old: Fields) -> None:
    """For writes of pods by clients that know nothing of records."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if spec is before:
        return
    for sort in SORTS:
        kept = {one.get("name"): one[RECORD] for one in before.get(sort) or () if one.get(RECORD)}
        for container in (spec.get(sort) or ()) if kept else ():
            if container.get(RECORD) is None and container.get("name") in kept:
                container[RECORD] = kept[container.get("name")]


def spec_errors(spec: Fields, path: Path) -> list[FieldError]:
    """Of a pod or a pod template."""
    found: list[FieldError] = []
    for sort in SORTS:
        for at, container in enumerate(spec.get(sort) or ()):
            if record := container.get(RECORD):
                where = (path / sort)[at] / RECORD
                asked = (container.get("resources") or {}).get("limits") or {}
                found += record_errors(record, asked, where)
    return found


def annotation_errors(new: Fields, old: Fields, gates: Gates) -> list[FieldError]:
    """A record in an annotation is for servers without the field; here nobody would guard it."""
    now, was = (
        ((one.get("metadata") or {}).get("annotations") or {}).get(limits.RECORD_ANNOTATION)
        for one in (new, old)
    )
    if was == now or not gates[limits.GATE]:
        return []
    where = Path("metadata.annotations")[limits.RECORD_ANNOTATION]
    return [field.forbidden(where, f"write `{RECORD}` of the containers")]


def record_errors(record: Fields, asked: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Of a container that asks for this."""
    return [
        wrong
        for name, entries in record.items()
        for wrong in _name_errors(name, entries or (), asked, path[name])
    ]


def _name_errors(
    name: str, entries: Sequence[Fields], asked: Mapping[str, Any], path: Path
) -> list[FieldError]:
    amount = _amount(asked.get(name))
    if not amount or not (naming.class_of(name) or not naming.wrong_raw_name(name)):
        return [field.forbidden(path, "the container asks for nothing of this name that devices serve")]
    found: list[FieldError] = []
    seen: set[tuple[Any, Any]] = set()
    for at, entry in enumerate(entries):
        found += _entry_errors(entry, path[at])
        key = (entry.get("member"), entry.get("computeResourceName") or entry.get("resourceName"))
        if key in seen:
            found.append(field.duplicate(path[at] / "computeResourceName", key[1]))
        seen.add(key)
    return found or _sum_errors(entries, amount, path)


def _entry_errors(entry: Fields, path: Path) -> list[FieldError]:
    if entry.get("resourceName"):  # something native, in a group
        if entry.get("member") is not None and entry.get("amount") and not entry.get("computeResourceName"):
            return []
        return [field.forbidden(path / "resourceName", "is for an `amount` of a group's `member`")]
    found: list[FieldError] = []
    if not entry.get("computeResourceName"):
        found.append(field.required(path / "computeResourceName"))
    count = entry.get("count")
    if not isinstance(count, int) or not 1 <= count <= _COUNT_MAX:
        text = f"must be between 1 and {_COUNT_MAX}, inclusive"
        found.append(field.invalid(path / "count", count, text))
    return found


def _sum_errors(entries: Sequence[Fields], amount: int, path: Path) -> list[FieldError]:
    """Devices are as many as was asked for; of each member of a group, so many for each group."""
    by_member: dict[int | None, int] = {}
    for entry in entries:
        if not entry.get("resourceName"):
            by_member[entry.get("member")] = by_member.get(entry.get("member"), 0) + entry["count"]
    is_group = bool(by_member) and None not in by_member
    for total in by_member.values() or (0,):
        if total != amount and not (is_group and total % amount == 0):
            said = f"must add up to the {amount} that the container asks for"
            return [field.invalid(path, total, said)]
    return []


def _amount(written: Any) -> int:
    try:
        return Quantity.parse(written).as_int() if written is not None else 0
    except ValueError:
        return 0
