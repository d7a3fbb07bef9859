"""Small random selectors whose meaning is known without any of our own code.

A node of this little language prints itself as CEL and computes itself in plain
Python, with every failure as the value FAILED. What CEL says about failures (a
side that decides wins over a side that fails) is therefore written down twice:
here, and in the engine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from allot.cel import CelDevice

DRIVER = "gpu.example.com"
BASE = f'device.attributes["{DRIVER}"]'
ATTRIBUTES = {
    "small": {"int": 1},
    "zero": {"int": 0},
    "large": {"int": 2**62},
    "yes": {"bool": True},
    "no": {"bool": False},
    "word": {"string": "fish"},
    "list": {"ints": [0, 1, 2]},
    "firmware": {"version": "1.2.3"},
}


@dataclass(frozen=True)
class Version:
    text: str


VALUES = {
    name: Version(value) if kind == "version" else value
    for name, written in ATTRIBUTES.items()
    for kind, value in written.items()
}
DEVICE = CelDevice.of(DRIVER, ATTRIBUTES)

Scope = dict[str, Any]


class Failed:
    """What an evaluation that cannot go on comes to."""

    def __repr__(self) -> str:
        return "FAILED"


FAILED = Failed()


@dataclass(frozen=True)
class Expr:
    text: str
    value: Callable[[Scope], Any]  # a Python value, or FAILED


def is_number(value: Any) -> bool:
    return type(value) is int


def same(left: Any, right: Any) -> Any:
    """CEL's equality, on the values this world has: a version on the left wants one on the right."""
    if isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            return False
        found = [same(a, b) for a, b in zip(left, right, strict=True)]
        return next((one for one in found if one is not True), True)  # in order, as they are compared
    if isinstance(left, Version) and not isinstance(right, Version):
        return FAILED
    return type(left) is type(right) and left == right


def literal(value: Any) -> Expr:
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return Expr(text, lambda scope: value)


def attribute(name: str, style: int) -> Expr:
    text = [f"{BASE}.{name}", f'{BASE}["{name}"]', f'{BASE}[dyn("{name}")]'][style]
    return Expr(text, lambda scope: VALUES.get(name, FAILED))


def variable(name: str) -> Expr:
    return Expr(name, lambda scope: scope[name])


def dynamic(inner: Expr) -> Expr:
    return Expr(f"dyn({inner.text})", inner.value)


def negation(inner: Expr) -> Expr:
    def value(scope: Scope) -> Any:
        found = inner.value(scope)
        return not found if isinstance(found, bool) else FAILED

    return Expr(f"!({inner.text})", value)


def logical(left: Expr, operator: str, right: Expr) -> Expr:
    decisive = operator == "||"

    def value(scope: Scope) -> Any:
        return until(decisive, [left.value(scope), right.value(scope)])

    return Expr(f"({left.text}) {operator} ({right.text})", value)


def until(decisive: bool, answers: list[Any]) -> Any:
    if any(answer is decisive for answer in answers):
        return decisive
    return (
        (not decisive)
        if all(answer is not decisive and isinstance(answer, bool) for answer in answers)
        else FAILED
    )


def conditional(test: Expr, then: Expr, otherwise: Expr) -> Expr:
    def value(scope: Scope) -> Any:
        asked = test.value(scope)
        if not isinstance(asked, bool):
            return FAILED
        return (then if asked else otherwise).value(scope)

    return Expr(f"({test.text}) ? dyn({then.text}) : dyn({otherwise.text})", value)


def arithmetic(left: Expr, operator: str, right: Expr) -> Expr:
    def value(scope: Scope) -> Any:
        a, b = left.value(scope), right.value(scope)
        if operator == "+" and type(a) is type(b) and isinstance(a, str | list):
            return a + b
        if not (is_number(a) and is_number(b)) or (operator in "/%" and b == 0):
            return FAILED
        whole = abs(a) // abs(b) if operator in "/%" else 0
        truncated = whole if (a < 0) == (b < 0) else -whole
        found = {
            "+": lambda: a + b,
            "-": lambda: a - b,
            "*": lambda: a * b,
            "/": lambda: truncated,
            "%": lambda: a - b * truncated,
        }[operator]()
        return found if -(2**63) <= found < 2**63 else FAILED

    return Expr(f"({left.text}) {operator} ({right.text})", value)


def order(left: Expr, operator: str, right: Expr) -> Expr:
    def value(scope: Scope) -> Any:
        a, b = left.value(scope), right.value(scope)
        if a is FAILED or b is FAILED or type(a) is not type(b) or isinstance(a, list | Version):
            return FAILED
        return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator]

    return Expr(f"({left.text}) {operator} ({right.text})", value)


def equality(left: Expr, operator: str, right: Expr) -> Expr:
    def value(scope: Scope) -> Any:
        a, b = left.value(scope), right.value(scope)
        if a is FAILED or b is FAILED:
            return FAILED
        found = same(a, b)
        return found if operator == "==" else found is not True

    return Expr(f"({left.text}) {operator} ({right.text})", value)


def membership(item: Expr, others: list[int]) -> Expr:
    def value(scope: Scope) -> Any:
        found = item.value(scope) if others else None  # in an empty list nobody looks
        return FAILED if found is FAILED else any(same(found, other) is True for other in others)

    return Expr(f"({item.text}) in {others}", value)


def published(name: str) -> Expr:
    return Expr(f'"{name}" in {BASE} && has({BASE}.{name})', lambda scope: name in VALUES)


def optional(name: str, other: Expr) -> Expr:
    return Expr(
        f"{BASE}.?{name}.orValue({other.text})",
        lambda scope: VALUES[name] if name in VALUES else other.value(scope),
    )


def bound(name: str, value: Expr, body: Expr) -> Expr:
    """Binding is lazy: a value that fails is no failure until somebody uses it."""
    return Expr(
        f"cel.bind({name}, {value.text}, {body.text})",
        lambda scope: body.value({**scope, name: value.value(scope)}),
    )


def quantified(items: list[int] | None, macro: str, name: str, body: Expr) -> Expr:
    """`all` and `exists` over a literal list, or over the names the device publishes."""

    def value(scope: Scope) -> Any:
        elements = list(VALUES) if items is None else items
        answers = [body.value({**scope, name: element}) for element in elements]
        if macro == "exists_one":
            return answers.count(True) == 1 if all(isinstance(a, bool) for a in answers) else FAILED
        return until(macro == "exists", answers)

    source = BASE if items is None else str(items)
    return Expr(f"{source}.{macro}({name}, {body.text})", value)


def mapped(items: list[int], name: str, where: Expr, body: Expr, wanted: list[int]) -> Expr:
    def value(scope: Scope) -> Any:
        found = []
        for item in items:
            inner = {**scope, name: item}
            kept = where.value(inner)
            if not isinstance(kept, bool):
                return FAILED
            if kept:
                made = body.value(inner)
                if made is FAILED:
                    return FAILED
                found.append(made)
        return same(found, wanted)

    text = f"{items}.map({name}, {where.text}, dyn({body.text})) == dyn({wanted})"
    return Expr(text, value)


NUMBERS = [0, 1, 2, -3, 2**63 - 1]
NAMES = [*ATTRIBUTES, "missing"]


@st.composite
def scalars(draw: st.DrawFn, scope: tuple[str, ...], depth: int) -> Expr:
    """Something that is probably a number, and now and then something else."""
    choices = ["literal", "attribute", "attribute"] + ["variable"] * bool(scope) * 2
    if depth > 0:
        choices += ["arithmetic", "arithmetic", "conditional", "optional", "bound"]
    match draw(st.sampled_from(choices)):
        case "literal":
            return dynamic(literal(draw(st.sampled_from([*NUMBERS, True, "fish"]))))
        case "attribute":
            return attribute(draw(st.sampled_from(NAMES)), draw(st.integers(0, 2)))
        case "variable":
            return dynamic(variable(draw(st.sampled_from(scope))))
        case "arithmetic":
            left, right = draw(scalars(scope, depth - 1)), draw(scalars(scope, depth - 1))
            return dynamic(arithmetic(dynamic(left), draw(st.sampled_from("+-*/%")), dynamic(right)))
        case "conditional":
            parts = (
                draw(conditions(scope, depth - 1)),
                draw(scalars(scope, depth - 1)),
                draw(scalars(scope, depth - 1)),
            )
            return conditional(*parts)
        case "optional":
            return optional(draw(st.sampled_from(NAMES)), draw(scalars(scope, depth - 1)))
    name = f"b{depth}"
    return bound(name, draw(scalars(scope, depth - 1)), draw(scalars((*scope, name), depth - 1)))


@st.composite
def conditions(draw: st.DrawFn, scope: tuple[str, ...] = (), depth: int = 3) -> Expr:
    """Something that is probably true or false."""
    choices = ["attribute", "equality", "order", "membership", "published"]
    if depth > 0:
        choices += ["logical"] * 4 + ["negation", "quantified", "quantified", "mapped", "bound"]
    match draw(st.sampled_from(choices)):
        case "attribute":
            return attribute(draw(st.sampled_from(["yes", "no", "word", "missing"])), draw(st.integers(0, 2)))
        case "equality":
            left, right = draw(scalars(scope, depth - 1)), draw(scalars(scope, depth - 1))
            return equality(left, draw(st.sampled_from(["==", "!="])), right)
        case "order":
            left, right = draw(scalars(scope, depth - 1)), draw(scalars(scope, depth - 1))
            return order(dynamic(left), draw(st.sampled_from(["<", "<=", ">", ">="])), right)
        case "membership":
            return membership(
                draw(scalars(scope, depth - 1)), draw(st.lists(st.sampled_from(NUMBERS), max_size=3))
            )
        case "published":
            return published(draw(st.sampled_from(NAMES)))
        case "logical":
            left, right = draw(conditions(scope, depth - 1)), draw(conditions(scope, depth - 1))
            return logical(left, draw(st.sampled_from(["&&", "||"])), right)
        case "negation":
            return negation(draw(conditions(scope, depth - 1)))
        case "bound":
            name = f"b{depth}"
            return bound(name, draw(scalars(scope, depth - 1)), draw(conditions((*scope, name), depth - 1)))
        case "quantified":
            name = f"q{depth}"
            items = draw(st.none() | st.lists(st.sampled_from(NUMBERS), max_size=3))
            macro = draw(st.sampled_from(["all", "exists", "exists_one"]))
            return quantified(items, macro, name, draw(conditions((*scope, name), depth - 1)))
    name = f"m{depth}"
    items = draw(st.lists(st.sampled_from(NUMBERS), max_size=3))
    where, body = draw(conditions((*scope, name), depth - 1)), draw(scalars((*scope, name), depth - 1))
    return mapped(items, name, where, body, draw(st.lists(st.sampled_from(NUMBERS), max_size=3)))
