"""Which client certificates count no more.

The server tells of every CredentialRevocation that it knows (`observe`); whoever has to know of a new
one at once leaves a word (`when_revoked`). Asking costs a look into two tables, and nothing while
they are empty.
"""

from collections.abc import Callable, Mapping
from typing import Any

from .certificates import Certified


class Revocations:
    def __init__(self) -> None:
        self.when_revoked: Callable[[], object] | None = None
        self._by_name: dict[str, tuple[str, str]] = {}  # of the object: the user and the serial
        self._users: frozenset[str] = frozenset()
        self._serials: frozenset[str] = frozenset()

    def covers(self, certified: Certified) -> bool:
        return certified.user.name in self._users or certified.serial in self._serials

    def observe(self, name: str, fields: Mapping[str, Any] | None) -> None:
        """What an object says now; None once it is gone."""
        if fields is None:
            self._by_name.pop(name, None)
        else:
            spec = fields.get("spec") or {}
            self._by_name[name] = spec.get("user") or "", spec.get("serial") or ""
        self._users = frozenset(user for user, _ in self._by_name.values() if user)
        self._serials = frozenset(serial for _, serial in self._by_name.values() if serial)
        if fields is not None and self.when_revoked is not None:
            self.when_revoked()
