"""What the caches say that each quota's objects use, kept as objects come and go.

These sums tell when to look. They are as old as the caches, so they are written only where the
caches are known to have heard enough (`loop`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from allot import quota
from allot.api import Fields, Object
from allot.informers import Key

Found = tuple[quota.Source, Object]


@dataclass(slots=True)
class _Count:
    spec: Fields
    sources: Mapping[quota.Source, None]
    tally: quota.Tally = field(default_factory=quota.Tally)


class Counts:
    def __init__(self, context: Callable[[], quota.Context]) -> None:
        self._context = context
        self._counts: dict[str, dict[Key, _Count]] = {}  # by namespace

    def begin(
        self, key: Key, spec: Fields, sources: Mapping[quota.Source, None], objects: Iterable[Found]
    ) -> None:
        """Count for a quota from the beginning."""
        count = _Count(spec, sources)
        self._counts.setdefault(key.namespace, {})[key] = count
        context = self._context()
        for source, object in objects:
            self._put(count, source, object, context)

    def end(self, key: Key) -> None:
        there = self._counts.get(key.namespace, {})
        there.pop(key, None)
        if not there:
            self._counts.pop(key.namespace, None)

    def counts_in(self, namespace: str) -> bool:
        return namespace in self._counts

    def has(self, key: Key, spec: Mapping[str, Any]) -> bool:
        count = self._counts.get(key.namespace, {}).get(key)
        return count is not None and count.spec == spec

    def total(self, key: Key) -> quota.Usage:
        count = self._counts[key.namespace][key]
        return count.tally.total(count.spec.get("hard") or {})

    def put(self, source: quota.Source, object: Object) -> list[Key]:
        """An object that is there. Returns the quotas of which less is used now."""
        return self._change(source, object, lambda count: self._put(count, source, object, self._context()))

    def remove(self, source: quota.Source, object: Object) -> list[Key]:
        return self._change(source, object, lambda count: count.tally.remove((source, object.name)))

    def counting(self, source: quota.Source) -> list[Key]:
        """The quotas that count objects of a kind."""
        each = (there.items() for there in self._counts.values())
        return [key for there in each for key, count in there if source in count.sources]

    def _change(self, source: quota.Source, object: Object, change: Callable[[_Count], bool]) -> list[Key]:
        lower: list[Key] = []
        for key, count in self._counts.get(object.namespace, {}).items():
            if source not in count.sources:
                continue
            names = count.spec.get("hard") or {}
            before = count.tally.total(names)
            if change(count) and any(
                amount < before[name] for name, amount in count.tally.total(names).items()
            ):
                lower.append(key)
        return lower

    @staticmethod
    def _put(count: _Count, source: quota.Source, object: Object, context: quota.Context) -> bool:
        return count.tally.put((source, object.name), share(count.spec, source, object, context))


def share(spec: Fields, source: quota.Source, object: Object, context: quota.Context) -> quota.Usage:
    """What an object adds to a quota with this spec."""
    subject = quota.Subject(source, dict(object.fields))
    return quota.charge(spec, subject, quota.usage(subject, context))


def listed(
    spec: Fields, names: Iterable[str], objects: Iterable[Found], context: quota.Context
) -> quota.Usage:
    """The sum under `names`, counted once and for all."""
    tally = quota.Tally()
    for source, object in objects:
        tally.put((source, object.name), share(spec, source, object, context))
    return tally.total(names)
