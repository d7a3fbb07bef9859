"""All that can be reached from a snapshot, as plain data: for comparing two of them."""

from collections import Counter
from datetime import datetime
from types import FunctionType
from typing import Any

import msgspec

from allot.api import Object
from allot.base import Journal, Overlay, Recent
from allot.numeric import Registry
from allot.numeric.models import COUNTER

CACHES = {
    *("kinds", "remembered", "_views", "_cel", "_parent", "__weakref__"),
    *("_matchings", "_belongs", "_belongs_at", "evaluations"),
}


def picture(it: object, *, journals: bool = True) -> Any:
    """A fork and a copy that say the same have equal pictures. Without `journals`, what moved before
    the fork was made does not count."""

    def of(it: object) -> object:
        match it:
            case None | str() | bytes() | int() | float() | datetime():
                return it
            case Recent():
                return list(map(of, it))
            case Journal() if not journals:
                return it.revision
            case Overlay():
                return {key: of(value) for key, value in it.items() if value != {}}
            case Counter() | dict():
                return {key: of(value) for key, value in it.items()}
            case set() | frozenset():
                return it
            case tuple() | list():
                return [of(one) for one in it]
            case _ if isinstance(it, FunctionType | Registry | type(COUNTER)):
                return None  # how something is read, not what is known
            case Object():
                return it.fields
            case msgspec.Struct():
                return {name: of(getattr(it, name)) for name in it.__struct_fields__}
            case _:
                names = {*getattr(it, "__dict__", ()), *_slots(type(it))} - CACHES
                assert names, f"{it!r} has no parts to compare"
                return {name: of(getattr(it, name)) for name in names}

    return of(it)


def _slots(of: type) -> set[str]:
    return {name for one in of.__mro__ for name in getattr(one, "__slots__", ())}
