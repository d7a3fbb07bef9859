"""Text with `{{ expression }}` in it, to values: how parameters of a vendor's kind become those of a model.

    template = compile_template("kind: Parameters\napiVersion: v1\nrequired: {{object.spec.count}}")
    template.expand({"spec": {"count": 3}})     # {"kind": "Parameters", "apiVersion": "v1", "required": 3}

Where it sits
    The API server compiles the templates of a class to accept or refuse them; whoever allocates compiles
    what is stored and expands it with the claim's parameter object, once for each version of that object.

How it works
    `holes` takes the placeholders out and leaves marks; what is left is YAML (or JSON, which is YAML too) and
    is read once (`skeleton`). So the structure is fixed before any value is known, and to expand is to put
    values where the marks are. A placeholder that is a whole plain value keeps its expression's type; one
    inside quotes, a block or a longer text becomes text there. Lists and maps are values like all others.

What it promises
    TEMPLATE1  Whatever the text, the answer is a Template or a CompileError, soon.
    TEMPLATE2  `expand` answers with plain JSON values or raises EvaluationError; an error names its
               placeholder.
    TEMPLATE3  No value changes the structure: quotes, line breaks, braces and colons in it are data.
    TEMPLATE4  Expanding spends COST_LIMIT at most, over all placeholders together, and the result has at
               most EXPANDED_MAX characters and values.
    TEMPLATE5  The same template and object give the same result: no other variable, no clock, no chance.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from .errors import CompileError, CostExceeded, EvaluationError
from .hints import Path
from .holes import Hole, cut
from .meter import COST_LIMIT, Meter
from .rule import Declared, Rule, compile_rule
from .selector import LENGTH_MAX
from .skeleton import Filling, Member, Named, TooLarge, Whole, read
from .span import Span
from .types import DYN

EXPANDED_MAX: Final = 64 * 1024
"""Characters, and values, that an expansion may have."""

PART_MAX: Final = 16 * 1024
"""How long a text, a list or a map of a parameter object is taken to be, for the estimate.

A claim keeps its parameter object, within 256 KiB, so of anything that takes 16 bytes there is no more; what
is longer costs what it costs and is counted. With this a few loops over parts of the object are cheap enough,
and loops inside loops are not."""

_SAID: Final = ("kind", "apiVersion")


def _size_at(path: Path) -> Span | None:
    return Span(0, PART_MAX) if path and path[0] == "object" else None


_DECLARED: Final = Declared({"object": DYN}, size_at=_size_at)


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """Makes parameters from objects. Compile once, expand for each version of an object."""

    text: str
    cost: int  # the most that its placeholders can cost together
    _holes: tuple[Hole, ...]
    _rules: tuple[Rule, ...]
    _root: Member

    def expand(self, object: Mapping[str, Any], most: int = COST_LIMIT) -> dict[str, Any]:
        """The parameters, with `kind` and `apiVersion`. Raises EvaluationError; CostExceeded, where it
        would cost more than `most` and perhaps not more than any template may."""
        meter = Meter(most)
        try:
            values = [
                _run(hole, rule, object, meter) for hole, rule in zip(self._holes, self._rules, strict=True)
            ]
        except EvaluationError:
            if meter.left < 0 and most < COST_LIMIT:
                raise CostExceeded from None
            raise
        try:
            made = self._root.filled(Filling(values, self._holes, EXPANDED_MAX))
        except TooLarge:
            raise EvaluationError(
                f"the expansion has more than {EXPANDED_MAX} characters and values"
            ) from None
        return _complete(made)


def compile_template(text: str, *, stored: bool = False) -> Template:
    """A template from its text. New text must be short and cheap; what is stored was, once.

    Raises CompileError.
    """
    if not stored and len(text.encode(errors="surrogatepass")) > LENGTH_MAX:
        raise CompileError(f"may not be more than {LENGTH_MAX} bytes", "too_long")
    pieces = cut(text)
    holes = pieces.holes
    rules = tuple(_rule(hole) for hole in holes)
    root = read(pieces)
    _demand_complete(root)
    cost = sum(rule.cost for rule in rules)
    if not stored and cost > COST_LIMIT:
        dearest = max(zip(holes, rules, strict=True), key=lambda one: one[1].cost)[0]
        raise CompileError(f"too complex, exceeds cost limit; most of all {dearest}", "forbidden")
    return Template(text, cost, holes, rules, root)


def _rule(hole: Hole) -> Rule:
    try:
        return compile_rule(hole.expression, _DECLARED)
    except CompileError as wrong:
        raise CompileError(f"{hole}: {wrong.message}", wrong.kind) from None


def _run(hole: Hole, rule: Rule, object: Mapping[str, Any], meter: Meter) -> Any:
    try:
        return rule.run({"object": object}, meter)
    except EvaluationError as wrong:
        raise EvaluationError(f"{hole}: {wrong}") from None


def _demand_complete(root: Member) -> None:
    """As much of `_complete` as is known before there are values."""
    if isinstance(root, Whole):
        return
    if not isinstance(root, Named):
        raise CompileError("must be a YAML mapping")
    for name in _SAID:
        if name not in root.members:
            raise CompileError(f"must say {name}")


def _complete(made: Any) -> dict[str, Any]:
    if not isinstance(made, dict):
        raise EvaluationError("the expansion is not a mapping")
    for name in _SAID:
        said = made.get(name)
        if said is None or said == "":
            raise EvaluationError(f"the expansion has no {name}")
        if not isinstance(said, str):
            raise EvaluationError(f"{name} of the expansion is not text")
    return made
