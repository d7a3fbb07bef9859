"""Which slices the API should show, and what a server made of those that it was given. Pure.

A server may drop a field that it does not know, or whose feature is switched off. Compared with what
was wanted the slice would be wrong for ever, and written for ever; so what the server stored for a
wish is remembered, and is right until the wish changes. Whoever runs the driver is told what is lost.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from allot.api import Object

from .devices import Pool

Fields = dict[str, Any]


def wanted(driver: str, node: str, owner: Fields, pools: Iterable[Pool]) -> dict[str, list[Fields]]:
    """Slices by pool, owned by their node: they go with it."""
    return {
        pool.name: [
            {**slice, "metadata": {**slice["metadata"], "ownerReferences": [owner]}}
            for slice in pool.slices(driver, node)
        ]
        for pool in pools
    }


class Settled:
    """What the server stored for each slice that it was asked for."""

    def __init__(self) -> None:
        self._stored: dict[str, tuple[Fields, Fields]] = {}  # by name: the wish, and what became of it

    def adjusted(self, slice: Fields) -> Fields:
        """The slice as the server would store it, as far as that is known."""
        wish, stored = self._stored.get(slice["metadata"]["name"], ({}, {}))
        if wish != _content(slice["spec"]):
            return slice
        return {**slice, "spec": {**stored, "pool": slice["spec"]["pool"]}}

    def note(self, slice: Fields, stored: Object) -> tuple[str, ...]:
        """The fields that the server dropped, each once for a wish."""
        name, wish = slice["metadata"]["name"], _content(slice["spec"])
        known = self._stored.get(name)
        found = _content(stored.fields["spec"])
        if known is not None and known[1] == wish:
            return ()  # this is the adjusted form of an earlier wish
        self._stored[name] = (wish, found)
        return () if known is not None and known[0] == wish else tuple(dropped(wish, found))

    def forget(self, name: str) -> None:
        self._stored.pop(name, None)


def dropped(wished: Any, stored: Any, path: str = "spec") -> Iterator[str]:
    """The paths of what was wished for and is not there. What the server added is its own business."""
    match wished, stored:
        case Mapping(), Mapping():
            for name, value in wished.items():
                if name not in stored:
                    yield f"{path}.{name}"
                else:
                    yield from dropped(value, stored[name], f"{path}.{name}")
        case list(), list() if len(wished) == len(stored):
            for at, (value, found) in enumerate(zip(wished, stored, strict=True)):
                yield from dropped(value, found, f"{path}[{at}]")
        case list(), list():
            yield path


def _content(spec: Mapping[str, Any]) -> Fields:
    """Without the pool, whose generation follows from what is written."""
    return {name: value for name, value in spec.items() if name != "pool"}
