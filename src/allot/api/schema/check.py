"""Does an object have the shape of its kind?

The answer for nearly every object is `FINE`, from one pass in C (`compile`); the
others are walked again in Python to say what is wrong (`walk`).
"""

from dataclasses import dataclass
from typing import Any, Final

from .compile import fits
from .node import Schema
from .walk import Malformed, Mistyped, Walk


@dataclass(frozen=True, slots=True)
class Problems:
    """What does not fit. `malformed` is a 400 whatever the client asked for; `unknown` fields have
    been taken out, and are warned about or a 400 as the client asked (fieldValidation); `mistyped`
    fields of a custom resource are a 422."""

    malformed: str = ""
    unknown: tuple[str, ...] = ()
    mistyped: tuple[Mistyped, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.malformed or self.unknown or self.mistyped)


FINE: Final = Problems()


def check(fields: dict[str, Any], schema: Schema, *, drop_nulls: bool = True) -> Problems:
    """Compare an object with its shape, and put it into its usual form in place (see `walk`).

    `drop_nulls=False` leaves nulls for a validator that has rules of its own about them.
    """
    if fits(fields, schema) or (drop_nulls and _drop_null_stamps(fields) and fits(fields, schema)):
        return FINE
    return _look(fields, schema, drop_nulls)


def _drop_null_stamps(fields: dict[str, Any]) -> bool:
    """Typed clients say `creationTimestamp: null` of all that they make; nothing else is wrong then."""
    found = False
    for holder in (fields, _inside(_inside(fields, "spec"), "template")):
        metadata = _inside(holder, "metadata")
        if type(metadata) is dict and metadata.get("creationTimestamp", "") is None:
            del metadata["creationTimestamp"]
            found = True
    return found


def _inside(fields: Any, name: str) -> Any:
    return fields.get(name) if type(fields) is dict else None


def _look(fields: dict[str, Any], schema: Schema, drop_nulls: bool) -> Problems:
    walk = Walk(drop_nulls)
    try:
        walk.visit(fields, schema)
    except Malformed as error:
        return Problems(str(error), tuple(walk.unknown))
    return Problems("", tuple(walk.unknown), tuple(walk.mistyped)) or FINE
