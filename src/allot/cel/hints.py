"""How large the parts of a device can be.

A path leads from the variable through fields, `@keys`, `@values` and `@items` to
a part; the API bounds that part, and so the estimate of everything computed from
it.
"""

from typing import Final

from .span import Span

DOMAIN_MAX: Final = 63
ID_MAX: Final = 32
VALUE_MAX: Final = 64
MAP_MAX: Final = 32
DRIVER_MAX: Final = 63
_UNBOUNDED: Final = 2**63 - 1

Path = tuple[str, ...]


def size_at(path: Path) -> Span | None:
    """The size of what lies at `path`, or None where nothing is known."""
    if not path or path[0] != "device":
        return None
    most = _most(path[1:])
    return None if most is None else Span(0, most)


def _most(path: Path) -> int | None:
    match path:
        case ("driver",):
            return DRIVER_MAX
        case ():
            return _UNBOUNDED
        case ("allowMultipleAllocations",):
            return 1
        case ("attributes" | "capacity",) | ("attributes" | "capacity", "@values"):
            return MAP_MAX
        case ("attributes" | "capacity", "@keys"):
            return DOMAIN_MAX
        case ("attributes" | "capacity", "@values", "@keys"):
            return ID_MAX
        case ("capacity", "@values", "@values"):
            return _UNBOUNDED
        case ("attributes", "@values", last) if last not in ("@items", "@indices"):
            return VALUE_MAX
    return None
