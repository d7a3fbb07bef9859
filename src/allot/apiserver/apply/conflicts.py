"""What an apply would take from others, as the answer a client gets."""

from collections.abc import Sequence
from dataclasses import dataclass

from allot.api import errors

from .fieldset import FieldSet, paths
from .managed import UPDATE, Entry


@dataclass(frozen=True, slots=True)
class Conflict:
    owner: Entry
    fields: FieldSet

    @property
    def who(self) -> str:
        """How people read an owner: "kubectl" using apps/v1"""
        named = f'"{self.owner.manager}"'
        if self.owner.subresource:
            named += f' with subresource "{self.owner.subresource}"'
        return f"{named} using {self.owner.api_version}" if self.owner.operation == UPDATE else named


@dataclass(frozen=True, slots=True)
class Conflicts:
    """An answer, not an exception: nothing has changed, and every owner is named."""

    conflicts: Sequence[Conflict]

    def error(self) -> errors.Conflict:
        causes = [
            errors.Cause("FieldManagerConflict", f"conflict with {conflict.who}", path)
            for conflict in self.conflicts
            for path in paths(conflict.fields)
        ]
        return errors.Conflict(self._message(len(causes)), causes=causes)

    def _message(self, count: int) -> str:
        if count == 1:
            (conflict,) = self.conflicts
            (path,) = paths(conflict.fields)
            return f"Apply failed with 1 conflict: conflict with {conflict.who}: {path}"
        by_owner: dict[str, list[str]] = {}
        for conflict in self.conflicts:
            by_owner.setdefault(conflict.who, []).extend(paths(conflict.fields))
        lines = []
        for who in sorted(by_owner):
            lines.append(f"conflicts with {who}:")
            lines += [f"- {path}" for path in by_owner[who]]
        return f"Apply failed with {count} conflicts: " + "\n".join(lines)
