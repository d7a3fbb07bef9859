"""What one call costs at most, by function and by overload.

Three sources, asked in this order: functions on whole lists, Kubernetes' own
libraries, and CEL's standard functions. What none of them names costs one. The
arguments' own costs are added by the caller.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from .span import MOST, ONE, UNKNOWN, Span, fixed
from .tree import Literal, Node
from .types import CIDR, IP, QUANTITY, SEMVER, URL, Kind, Type

PER_CHARACTER: Final = 0.1
PER_PATTERN_CHARACTER: Final = 0.25
FORMAT_PATTERN: Final = 128 * PER_PATTERN_CHARACTER
_LIST_CALL: Final = fixed(11)  # the call, and making a list


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument or target as the price list sees it: foreseen, or the real thing at run time."""

    node: Node | None
    type: Type
    size: Span | None
    element: Span | None = None  # the size of what a list holds

    def size_or_unknown(self) -> Span:
        return UNKNOWN if self.size is None else self.size

    def element_or_unknown(self) -> Span:
        return UNKNOWN if self.element is None else self.element


@dataclass(frozen=True, slots=True)
class CallCost:
    cost: Span
    size: Span | None = None  # of the result


Pricer = Callable[[str, Operand | None, Sequence[Operand]], CallCost | None]


def call_cost(function: str, id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost:
    for prices, key in ((_BY_LIST_OVERLOAD, id), (_BY_FUNCTION, function), (_BY_OVERLOAD, id)):
        price = prices.get(key)
        found = None if price is None else price(id, target, args)
        if found is not None:
            return found
    if id.endswith(("_string", "_bytes")) and id.startswith(("less", "greater")):
        return _compared(id, target, args)
    return CallCost(ONE)


# -- functions on whole lists
def _allocating(size: Span, factor: float = 1.0, work: Span | None = None) -> CallCost:
    return CallCost(
        (size if work is None else work).scaled(factor).plus(_LIST_CALL), size if work is None else work
    )


def _written_number(operand: Operand, default: int) -> int:
    """The number that is written out, none of which is less than zero here."""
    node = operand.node
    return max(0, node.value) if isinstance(node, Literal) and type(node.value) is int else default


def _slice(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    if target is None:
        return None
    start = _written_number(args[0], 0)
    end = _written_number(args[1], target.size_or_unknown().high)
    return _allocating(fixed((end - start) % (MOST + 1)))


def _range(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost:
    return _allocating(fixed(_written_number(args[0], MOST)))


def _reverse(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    return None if target is None else _allocating(target.size_or_unknown())


def _flatten(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    if target is None:
        return None
    depth = _written_number(args[0], MOST) if args else 1
    return _allocating(target.size_or_unknown(), float(depth))


def _squared(factor: float) -> Pricer:
    def price(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
        if target is None:
            return None
        size = target.size_or_unknown()
        return _allocating(size, factor, size.times(size))

    return price


def _sets(factor: float) -> Pricer:
    def price(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost:
        work = args[0].size_or_unknown().times(args[1].size_or_unknown())
        return CallCost(work.scaled(factor).plus(ONE))

    return price


_BY_LIST_OVERLOAD: Final[dict[str, Pricer]] = {
    "list_slice": _slice,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "list_distinct": _squared(2.0),
    **{
        f"list_{kind}_sort": _squared(2.0)
        for kind in ("int", "uint", "double", "bool", "duration", "timestamp")
    },
    **{f"list_{kind}_sort": _squared(2.0 + PER_CHARACTER) for kind in ("string", "bytes")},
    "list_sets_contains_list": _sets(1.0),
    "list_sets_intersects_list": _sets(1.0),
    "list_sets_equivalent_list": _sets(2.0),
}


# -- Kubernetes' libraries


def _one(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost:
    return CallCost(ONE)


def _scan(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    """isSorted, sum, min, max, indexOf, lastIndexOf: every element once, strings letter by letter."""
    if target is None:
        return None
    size = target.size_or_unknown()
    if not target.type.params:
        return CallCost(size.scaled(PER_CHARACTER))  # indexOf of a string
    each = ONE
    if target.type.params[0].kind in (Kind.STRING, Kind.BYTES):
        each = each.plus(target.element_or_unknown().scaled(PER_CHARACTER))
    return CallCost(size.times(each))


def _includes(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost:
    return CallCost(UNKNOWN if target is None else target.size_or_unknown())


def _read_target(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    if target is None:
        return None
    size = target.size_or_unknown()
    return CallCost(size.scaled(PER_CHARACTER), size)


def _read_url(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost:
    size = args[0].size_or_unknown()
    return CallCost(size.scaled(PER_CHARACTER), size)


def _read_text(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost:
    """`quantity("1Gi")`, `isQuantity("1Gi")` and the others read their text once."""
    if target is not None:
        return CallCost(ONE)  # `ip` as a method: the address of a range
    return CallCost(args[0].size_or_unknown().scaled(PER_CHARACTER))


def _read_twice(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost:
    return CallCost(args[0].size_or_unknown().scaled(2 * PER_CHARACTER))


def _replace(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    if target is None or len(args) < 2:
        return None
    size, old, new = (operand.size_or_unknown() for operand in (target, args[0], args[1]))
    most = _replaced(size.high, old.low, grows=new.high > old.low)
    least = _replaced(size.low, old.high, grows=new.low < old.high)
    result = Span(
        min(least[0] * new.low + least[1], MOST),
        min(most[0] * new.high + most[1], MOST),
    )
    return CallCost(size.scaled(2 * PER_CHARACTER), result)


def _replaced(size: int, old: int, grows: bool) -> tuple[int, int]:
    """How often something is replaced, and how much of the original stays."""
    if old == 0:
        return min(size + 1, MOST), size
    if not grows:
        return 0, size
    return min(ceil(float(size) / float(old)), MOST), 0


def _split(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    if target is None:
        return None
    size = target.size_or_unknown()
    most = size.high
    if len(args) > 1 and isinstance(args[1].node, Literal) and type(args[1].node.value) is int:
        most = args[1].node.value % (MOST + 1)
    return CallCost(size.scaled(2 * PER_CHARACTER), Span(0, most))


def _join(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    if target is None:
        return None
    count = target.size_or_unknown()
    total = Span(0, 0)
    if target.type.params:
        total = count.times(target.element_or_unknown())
    if args:
        gaps = Span(max(count.low - 1, 0), max(count.high - 1, 0))
        total = total.plus(args[0].size_or_unknown().times(gaps))
    return CallCost(total.scaled(PER_CHARACTER), total)


def _find(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    if target is None or not args:
        return None
    size = target.size_or_unknown()
    return CallCost(_pattern_cost(size, args[0].size_or_unknown()), Span(0, size.high))


def _pattern_cost(text: Span, pattern: Span) -> Span:
    return text.plus(ONE).scaled(PER_CHARACTER).times(pattern.scaled(PER_PATTERN_CHARACTER))


def _contains_address(extra: Span) -> Pricer:
    def price(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
        if target is None or not args:
            return None
        cost = Span(8, 32).scaled(PER_CHARACTER).plus(extra)
        if id.endswith("_string"):
            cost = cost.plus(args[0].size_or_unknown().scaled(PER_CHARACTER))
        return CallCost(cost)

    return price


def _validate(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    if target is None:
        return None
    return CallCost(args[0].size_or_unknown().scaled(PER_CHARACTER).scaled(FORMAT_PATTERN))


def _equals_kubernetes(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    left, right = args
    kinds = {one.type for one in args if not one.type.is_dynamic}
    if kinds and kinds <= {IP, CIDR, QUANTITY, SEMVER}:
        return CallCost(ONE)
    if left.type == right.type == URL:
        most = ONE.high if right.size is None else right.size.high
        return CallCost(Span(1, most).scaled(PER_CHARACTER))
    return None


_NOMINAL = (
    "serviceAccount path group resource subresource namespace name allowed reason error errored "
    "masked prefixLength family isUnspecified isLoopback "
    "isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast "
    "format.named sign asInteger isInteger asApproximateFloat isGreaterThan isLessThan compareTo add sub "
    "major minor patch getScheme getHostname getHost getPort getEscapedPath getQuery"
)

_BY_FUNCTION: Final[dict[str, Pricer]] = {
    **dict.fromkeys(_NOMINAL.split(), _one),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _scan),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _read_target),
    **dict.fromkeys(("find", "findAll"), _find),
    "includes": _includes,
    **dict.fromkeys(
        ("quantity", "isQuantity", "semver", "isSemver", "ip", "isIP", "cidr", "isCIDR"), _read_text
    ),
    "url": _read_url,
    "ip.isCanonical": _read_twice,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "containsIP": _contains_address(Span(0, 0)),
    "containsCIDR": _contains_address(Span(4, 16).scaled(PER_CHARACTER).plus(ONE)),
    "validate": _validate,
    "_==_": _equals_kubernetes,
}


# -- CEL's own


def _read_argument(widen: Callable[[Span], Span]) -> Pricer:
    def price(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
        if len(args) != 1:
            return None
        size = args[0].size_or_unknown()
        return CallCost(size.scaled(PER_CHARACTER), widen(size))

    return price


def _affix(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost:
    return CallCost(args[0].size_or_unknown().scaled(PER_CHARACTER))


def _format(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    return None if target is None else CallCost(target.size_or_unknown().scaled(PER_CHARACTER))


def _in_list(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost:
    return CallCost(args[1].size_or_unknown().scaled(1.0))


def _matches(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    if target is None:
        return None
    return CallCost(_pattern_cost(target.size_or_unknown(), args[0].size_or_unknown()))


def _contains(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    if target is None:
        return None
    text, part = target.size_or_unknown(), args[0].size_or_unknown()
    return CallCost(text.scaled(PER_CHARACTER).times(part.scaled(PER_CHARACTER)))


def _concatenated(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost:
    size = args[0].size_or_unknown().plus(args[1].size_or_unknown())
    return CallCost(ONE if id == "add_list" else size.scaled(PER_CHARACTER), size)


def _compared(id: str, target: Operand | None, args: Sequence[Operand]) -> CallCost:
    most = min(args[0].size_or_unknown().high, args[1].size_or_unknown().high)
    return CallCost(Span(1 if most else 0, most).scaled(PER_CHARACTER))


_BY_OVERLOAD: Final[dict[str, Pricer]] = {
    # Upstream multiplies in 64 bits, and what overflows comes round.
    "string_to_bytes": _read_argument(lambda size: Span(size.low, size.high * 4 & MOST)),
    "bytes_to_string": _read_argument(lambda size: Span(size.low // 4, size.high)),
    "strings_quote": _read_argument(lambda size: Span(size.low + 2, size.high * 2 + 2 & MOST)),
    "string_format": _format,
    "starts_with_string": _affix,
    "ends_with_string": _affix,
    "in_list": _in_list,
    "matches_string": _matches,
    "contains_string": _contains,
    "add_string": _concatenated,
    "add_bytes": _concatenated,
    "add_list": _concatenated,
    "equals": _compared,
    "not_equals": _compared,
}
