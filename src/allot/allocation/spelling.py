"""Keys that a problem has and nobody reads.

A misspelt `allocatedDevices` leaves every device free, and the answer to another problem looks
like the answer to this one. So an unknown key is an error, with the key that was probably meant:
of the problem itself, and of every object in it, as the API's own schema knows them.
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from allot.api import schema

PROBLEM_KEYS: Final = (
    "name",
    "features",
    "node",
    "slices",
    "classes",
    "claims",
    "allocatedDevices",
    "allocatedSharedDevices",
    "allocatedCapacity",
    "results",
    "error",
)
_KINDS: Final = {
    "node": "io.k8s.api.core.v1.Node",
    "slices": "io.k8s.api.resource.v1.ResourceSlice",
    "classes": "io.k8s.api.resource.v1.DeviceClass",
    "claims": "io.k8s.api.resource.v1.ResourceClaim",
}


def unknown_key(problem: Mapping[str, Any]) -> tuple[str, str] | None:
    """Where the first key is that nobody knows, and what is wrong with it."""
    for where, key, known in _unknown(problem):
        return where + key, _advice(key, known)
    return None


Found = tuple[str, str, Iterable[str]]  # where, the key, and the keys that are known there


def _unknown(problem: Mapping[str, Any]) -> Iterator[Found]:
    for key in problem:
        if key not in PROBLEM_KEYS:
            yield "", key, PROBLEM_KEYS
    for key, kind in _KINDS.items():
        value = problem.get(key)
        shape = schema.get(kind)
        if isinstance(value, list):
            for position, each in enumerate(value):
                yield from _within(each, shape, f"{key}[{position}]")
        else:
            yield from _within(value, shape, key)


def _within(value: Any, shape: schema.Schema | None, where: str) -> Iterator[Found]:
    """Keys that the shape does not have; what is of another type is for others to refuse."""
    if shape is None:
        return
    match value, shape.type:
        case dict(), schema.Type.OBJECT:
            for key, inner in value.items():
                field = shape.fields.get(key)
                if field is None:
                    yield f"{where}.", key, shape.fields
                else:
                    yield from _within(inner, field, f"{where}.{key}")
        case dict(), schema.Type.MAP:
            for key, inner in value.items():
                yield from _within(inner, shape.element, f"{where}[{key}]")
        case list(), schema.Type.LIST:
            for position, inner in enumerate(value):
                yield from _within(inner, shape.element, f"{where}[{position}]")


def _advice(key: str, known: Iterable[str]) -> str:
    near = get_close_matches(key, known, n=1, cutoff=0.5)
    meant = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(sorted(known))}"
    return f"unknown key; {meant}"
