"""Does an object have the shape of its kind?

The answer for nearly every object is `FINE`, from one pass in C (`compile`); the
others are walked again in Python to say what is wrong (`walk`).
"""

from dataclasses import dataclass
from typing import Any, Final

from .compile import fits
from .defaults import apply_defaults
from .node import Schema
from .walk import Malformed, Mistyped, Walk


@dataclass(frozen=True, slots=True)
class Problems:
    """What does not fit. `malformed` is a 400 whatever the client asked for; unknown fields are
    kept, and refused or warned about as the client asked (fieldValidation); `mistyped` fields of
    a custom resource are a 422."""

    malformed: str = ""
    unknown: tuple[str, ...] = ()
    mistyped: tuple[Mistyped, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.malformed or self.unknown or self.mistyped)


FINE: Final = Problems()


def check(
    fields: dict[str, Any], schema: Schema, *, defaults: bool = False, drop_nulls: bool = True
) -> Problems:
    """Compare an object with its shape, and put it into its usual form in place (see `walk`).

    With `defaults` also fill in what the schema assumes. `drop_nulls=False` leaves nulls
    for a validator that has rules of its own about them.
    """
    problems = FINE if fits(fields, schema) else _look(fields, schema, drop_nulls)
    if defaults and not problems.malformed and not problems.mistyped:
        apply_defaults(fields, schema)
    return problems


def _look(fields: dict[str, Any], schema: Schema, drop_nulls: bool) -> Problems:
    walk = Walk(drop_nulls)
    try:
        walk.visit(fields, schema)
    except Malformed as error:
        return Problems(str(error), tuple(walk.unknown))
    return Problems("", tuple(walk.unknown), tuple(walk.mistyped)) or FINE
