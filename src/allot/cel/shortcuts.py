"""Calls that Python can do in one instruction.

Each rule looks at a call and its emitted operands and either knows better code
than calling the library, or declines. A rule may rely on trusted types and on
constants; where an operand is `dyn` its code must raise for every value the rule
was not made for.
"""

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from allot.api import Quantity, Semver

from .emitting import Emitted, attribute, call, compare, constant
from .library import patterns
from .runtime import int_only, open_to_all, precedence, searcher
from .tree import Call, ListNode, Literal, is_empty_list
from .types import BOOL, BYTES, DOUBLE, DURATION, INT, QUANTITY, SEMVER, STRING, TIMESTAMP, Kind
from .values import equal, particular

if TYPE_CHECKING:
    from .generate import Generator

Rule = Callable[["Generator", Call, list[Emitted]], ast.expr | Emitted | None]

_ORDERS: Final[dict[str, type[ast.cmpop]]] = {"_<_": ast.Lt, "_<=_": ast.LtE, "_>_": ast.Gt, "_>=_": ast.GtE}
_METHODS: Final[dict[str, type[ast.cmpop]]] = {"isGreaterThan": ast.Gt, "isLessThan": ast.Lt}
_COMPARABLE: Final = frozenset({INT, DOUBLE, STRING, BYTES, BOOL, TIMESTAMP, DURATION})
_AMBIGUOUS: Final = (0, 1)  # Python's bools are these too


def shortcut(generator: "Generator", node: Call, args: list[Emitted]) -> Emitted | None:
    rule = _RULES.get(node.function)
    found = None if rule is None else rule(generator, node, args)
    if found is None or not isinstance(found, ast.expr):
        return found
    return Emitted(found, BOOL)


def _equality(generator: "Generator", node: Call, args: list[Emitted]) -> ast.expr | None:
    left, right = args
    same = node.function == "_==_"
    if same and left.type != right.type and any(type(one.value) in particular for one in args):
        return generator.helper(equal, left.code, right.code)
    if left.is_constant:
        left, right = right, left
    elif same and left.type.is_dynamic and right.is_constant:
        left = Emitted(generator.helper(open_to_all, left.code))
    if right.is_constant and type(right.value) is bool:
        return compare(left.code, ast.Is() if same else ast.IsNot(), right.code)
    if left.type == right.type == QUANTITY:
        left_code, right_code = _nano(left), _nano(right)
    elif (left.type == right.type and left.type in _COMPARABLE) or _is_plain_constant(right):
        left_code, right_code = left.code, right.code
    else:
        return None
    return compare(left_code, ast.Eq() if same else ast.NotEq(), right_code)


def _is_plain_constant(emitted: Emitted) -> bool:
    """A constant that no value of another type equals in Python but not in CEL."""
    if not emitted.is_constant:
        return False
    kind = type(emitted.value)
    return kind in (str, Semver, Quantity) or (kind is int and emitted.value not in _AMBIGUOUS)


def _nano(emitted: Emitted) -> ast.expr:
    return constant(emitted.value.nano) if emitted.is_constant else attribute(emitted.code, "nano")


def _order(generator: "Generator", node: Call, args: list[Emitted]) -> ast.expr | None:
    left, right = args
    order = _ORDERS[node.function]()
    compared = _compared_quantities(generator, node, right)
    if compared is not None:
        return compare(_nano(compared[0]), order, _nano(compared[1]))
    if left.type == right.type and left.type in _COMPARABLE:
        return compare(left.code, order, right.code)
    for index, (known, other) in enumerate(((right, left), (left, right))):
        if known.type == INT and other.type.is_dynamic:
            checked = generator.helper(int_only, other.code)
            pair = (checked, known.code) if index == 0 else (known.code, checked)
            return compare(pair[0], order, pair[1])
        if known.type == STRING and other.type.is_dynamic:
            return compare(left.code, order, right.code)  # Python orders strings with strings only
    return None


def _compared_quantities(
    generator: "Generator", node: Call, right: Emitted
) -> tuple[Emitted, Emitted] | None:
    """`a.compareTo(b) >= 0` is `a >= b`."""
    inner = node.args[0]
    if not (isinstance(inner, Call) and inner.function == "compareTo" and inner.target is not None):
        return None
    if not (right.is_constant and type(right.value) is int and right.value == 0):
        return None
    a, b = generator.emit(inner.target), generator.emit(inner.args[0])
    return (a, b) if a.type == b.type == QUANTITY else None


def _compare_method(generator: "Generator", node: Call, args: list[Emitted]) -> ast.expr | None:
    left, right = args
    order = _METHODS[node.function]()
    if left.type == right.type == QUANTITY:
        return compare(_nano(left), order, _nano(right))
    if right.type == SEMVER and right.is_constant:
        known = generator.pool.add(right.value.precedence)
        return compare(generator.helper(precedence, left.code), order, known)
    return None


def _in(generator: "Generator", node: Call, args: list[Emitted]) -> ast.expr | None:
    item, container = args
    written = node.args[1]
    if is_empty_list(written):
        return constant(False)
    if container.type.kind is Kind.MAP and item.is_constant and type(item.value) is str:
        return compare(item.code, ast.In(), container.code)
    if not isinstance(written, ListNode) or written.optional or not written.elements:
        return None
    values = [part.value for part in written.elements if isinstance(part, Literal)]
    if len(values) < len(written.elements):
        return None
    safe = all(type(value) is str for value in values) or (
        all(type(value) is int for value in values)
        and (item.type == INT or not set(values) & set(_AMBIGUOUS))
    )
    return compare(item.code, ast.In(), generator.pool.add(frozenset(values))) if safe else None


def _matches(generator: "Generator", node: Call, args: list[Emitted]) -> ast.expr | None:
    text, pattern = args
    if not pattern.is_constant or type(pattern.value) is not str:
        return None
    return generator.helper(searcher(patterns.pattern(pattern.value).search), text.code)


def _affix(generator: "Generator", node: Call, args: list[Emitted]) -> ast.expr | None:
    text, part = args
    if part.type != STRING:
        return None
    # Only strings have this method and take a string for it, so a `dyn` text proves itself.
    return call(attribute(text.code, node.function.lower()), part.code)


def _size(generator: "Generator", node: Call, args: list[Emitted]) -> Emitted | None:
    if args[0].type.kind not in (Kind.STRING, Kind.BYTES, Kind.LIST, Kind.MAP):
        return None
    return Emitted(generator.helper(len, args[0].code), INT)


def _index(generator: "Generator", node: Call, args: list[Emitted]) -> Emitted | None:
    container, key = args
    code = ast.Subscript(container.code, key.code, ast.Load())
    if container.type.kind is Kind.MAP and key.type == STRING:
        value = container.type.params[1]
        return Emitted(code) if value.is_dynamic else Emitted(code, value)
    if container.type.kind is Kind.LIST and key.is_constant and type(key.value) is int and key.value >= 0:
        return Emitted(code, container.type.params[0])
    return None


def _or_value(generator: "Generator", node: Call, args: list[Emitted]) -> Emitted | None:
    """`map.?name.orValue(x)` is `map.get(name, x)`, except for maps that answer for every key."""
    inner = node.target
    if not (isinstance(inner, Call) and inner.function in ("_?._", "_[?_]")):
        return None
    container, key = generator.emit(inner.args[0]), generator.emit(inner.args[1])
    if container.type.kind is not Kind.MAP or key.type != STRING or container.type.params[1].kind is Kind.MAP:
        return None
    return Emitted(call(attribute(container.code, "get"), key.code, args[1].code))


_RULES: Final[dict[str, Rule]] = {
    "_==_": _equality,
    "_!=_": _equality,
    **dict.fromkeys(_ORDERS, _order),
    **dict.fromkeys(_METHODS, _compare_method),
    "@in": _in,
    "matches": _matches,
    "startsWith": _affix,
    "endsWith": _affix,
    "size": _size,
    "_[_]": _index,
    "orValue": _or_value,
}
