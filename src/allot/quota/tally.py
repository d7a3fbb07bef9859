"""A sum over objects that come, change and go.

Each object is remembered with what it added, so a change costs what that object costs and not
what the namespace holds (QUOTA1).
"""

from collections.abc import Hashable, Iterable, Mapping

from allot.api import Quantity

from .amounts import ZERO, Usage, add, subtract


class Tally:
    def __init__(self) -> None:
        self._shares: dict[Hashable, Usage] = {}
        self._total: Usage = {}

    def put(self, key: Hashable, share: Mapping[str, Quantity]) -> bool:
        """An object adds `share`, and whatever it added before no more. True if that changes the sum."""
        before = self._shares.get(key, {})
        now = {name: amount for name, amount in share.items() if amount}
        if before == now:
            return False
        self._total = {
            name: amount for name, amount in add(subtract(self._total, before), now).items() if amount
        }
        if now:
            self._shares[key] = now
        else:
            self._shares.pop(key, None)
        return True

    def remove(self, key: Hashable) -> bool:
        return self.put(key, {})

    def total(self, names: Iterable[str]) -> Usage:
        """The sum under each of these names."""
        return {name: self._total.get(name, ZERO) for name in names}

    def __len__(self) -> int:
        return len(self._shares)
