"""One attempt at one write: who, when, what else was read, and what else must be written.

A write is decided on what its attempt has read. Everything read joins the
transaction as a compare; if one of them moved, the attempt is thrown away and
the next one reads again. So a rule that looks at another object (the phase of a
namespace, its labels) is still true at the moment of the commit, with any number
of API servers on one store.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

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

from ..storing.repository import Found
from .expressions import Judging


class ServerWriteContext(msgspec.Struct):
    """What `allot.api.WriteContext` promises to the rules of a kind."""

    user: User
    verb: str
    now: datetime
    gates: Gates
    version: str
    authorizer: Callable[[User, Action], Decision]
    judging: Judging
    find_class: Callable[[str], Found]
    namespace_found: Found | None = None
    namespace_joined: bool = False
    warnings: list[str] = []  # each context its own: structs copy empty defaults
    compares: list[Compare] = []
    extra_writes: list[Change] = []

    def namespace(self) -> Fields | None:
        found = self.namespace_found
        if found is None or found.object is None:
            return None
        if not self.namespace_joined:  # several rules ask for it in each write
            self.join(found)
            self.namespace_joined = True
        return found.object.fields  # type: ignore[return-value]

    def resource_class(self, name: str) -> Fields | None:
        found = self.join(self.find_class(name))
        return found.fields if found is not None else None  # type: ignore[return-value]

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

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def authorize(self, action: Action) -> Decision:
        return self.authorizer(self.user, action)

    def check_rules(self, openapi: Mapping[str, Any], path: Path) -> list[FieldError]:
        return self.judging.rules(openapi, path)

    def judge(self, shape: schema.Schema, new: Fields, old: Fields | None) -> list[FieldError]:
        return self.judging.broken(shape, new, old)

    def check_selector(self, expression: str) -> FieldErrorText | None:
        return self.judging.selector(expression)

    def check_attribute(self, expression: str) -> FieldErrorText | int:
        return self.judging.attribute(expression)

    def check_template(self, text: str) -> FieldErrorText | None:
        return self.judging.template(text)
