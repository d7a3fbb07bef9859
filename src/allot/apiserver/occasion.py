"""One attempt at one write: who, when, what else was read, and what else must be written.

A write is decided on what its attempt has read. Everything read joins the
transaction as a compare; if one of them moved, the attempt is thrown away and
the next one reads again. So a rule that looks at another object (the phase of a
namespace, its labels) is still true at the moment of the commit, with any number
of API servers on one store.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol, cast

import msgspec

from allot.api import (
    Action,
    Decision,
    FieldError,
    FieldErrorText,
    Fields,
    Gates,
    Object,
    Path,
    User,
    schema,
)
from allot.store import Change, Compare, Put

from .repository import Found


class Judged(msgspec.Struct):
    """Verdicts on expressions, found before the rules ask."""

    selectors: dict[str, FieldErrorText | None] = {}
    attributes: dict[str, FieldErrorText | int] = {}
    broken: list[FieldError] | None = None  # rules of its schema that a custom resource breaks
    complaints: dict[int, list[FieldError]] = {}  # about the rules in a schema, by its identity


class Expressions(Protocol):
    """Judges new CEL expressions; see `expressions`."""

    async def study(self, fields: Fields, judged: Judged) -> None: ...

    def check_selector(self, expression: str) -> FieldErrorText | None: ...

    def check_attribute(self, expression: str) -> FieldErrorText | int: ...

    async def study_rules(
        self, shape: schema.Schema, new: Fields, old: Fields | None
    ) -> list[FieldError]: ...

    def check_rules(self, openapi: Mapping[str, Any], path: Path) -> list[FieldError]: ...

    def judge(self, shape: schema.Schema, new: Fields, old: Fields | None) -> list[FieldError]: ...


class WriteOccasion(msgspec.Struct):
    """What `allot.api.Occasion` promises to the rules of a kind."""

    user: User
    verb: str
    now: datetime
    gates: Gates
    version: str
    authorizer: Callable[[User, Action], Decision]
    expressions: Expressions
    namespace_found: Found | None = None
    warnings: list[str] = []  # each occasion its own: structs copy empty defaults
    compares: list[Compare] = []
    extra_writes: list[Change] = []
    judged: Judged = msgspec.field(default_factory=Judged)

    def namespace(self) -> Fields | None:
        found = self.namespace_found
        if found is None or found.object is None:
            return None
        self.join(found)
        return cast(Fields, found.object.fields)

    def join(self, found: Found) -> Object | None:
        """Make what was read part of the transaction."""
        compare = found.compare
        if compare not in self.compares:
            self.compares.append(compare)
        return found.object

    def announce(self) -> None:
        """Write the namespace anew, unchanged: every other write that has read it starts over."""
        found = self.namespace_found
        if self.namespace() is not None and found is not None and found.object is not None:
            self.extra_writes.append(Put(found.key, found.object.stored))

    def authorize(self, action: Action) -> Decision:
        return self.authorizer(self.user, action)

    async def study_expressions(self, fields: Fields) -> None:
        await self.expressions.study(fields, self.judged)

    async def study_rules(self, shape: schema.Schema, new: Fields, old: Fields | None) -> None:
        self.judged.broken = await self.expressions.study_rules(shape, new, old)

    def check_rules(self, openapi: Mapping[str, Any], path: Path) -> list[FieldError]:
        known = self.judged.complaints.get(id(openapi))
        return self.expressions.check_rules(openapi, path) if known is None else known

    def judge(self, shape: schema.Schema, new: Fields, old: Fields | None) -> list[FieldError]:
        known = self.judged.broken
        return self.expressions.judge(shape, new, old) if known is None else known

    def check_selector(self, expression: str) -> FieldErrorText | None:
        if expression in self.judged.selectors:
            return self.judged.selectors[expression]
        return self.expressions.check_selector(expression)

    def check_attribute(self, expression: str) -> FieldErrorText | int:
        if expression in self.judged.attributes:
            return self.judged.attributes[expression]
        return self.expressions.check_attribute(expression)
