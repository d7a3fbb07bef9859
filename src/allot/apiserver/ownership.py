"""Who owns which field: `metadata.managedFields`, kept on every write.

The arithmetic is in `apply`; here is what it needs to know of a request: which
version it speaks, and how the object looks in the versions of earlier writers.
"""

import copy

from allot.api import Fields, schema

from .apply import Author, Convert, track_update
from .call import Call
from .metadata import timestamp
from .occasion import WriteOccasion
from .registry import Registry, Served


class Ownership:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def record(self, call: Call, old: Fields | None, new: Fields, occasion: WriteOccasion) -> None:
        """Write down who owns what of `new`, which replaces `old`; both in the hub form."""
        served = call.served
        author = Author(call.manager, served.api_version, call.target.subresource)
        managed = track_update(
            None if old is None else shown_in(old, served),
            shown_in(new, served),
            author,
            timestamp(occasion.now),
            served.version.shape(),
            self.converter(served),
        )
        if managed:
            new["metadata"]["managedFields"] = managed
        else:
            new["metadata"].pop("managedFields", None)

    def converter(self, served: Served) -> Convert:
        """How an object of `served` looks in another version of its kind."""

        def convert(fields: Fields, api_version: str) -> tuple[Fields, schema.Schema] | None:
            group, _, version = api_version.rpartition("/")
            other = self._registry.served(group, version, served.kind.plural)
            if other is None or group != served.kind.group:
                return None
            if other is served:
                return fields, served.version.shape()
            hub = copy.deepcopy(fields) if served.is_hub else served.version.to_hub(copy.deepcopy(fields))
            return shown_in(hub, other), other.version.shape()

        return convert


def shown_in(hub: Fields, served: Served) -> Fields:
    """A hub form in the version that a client speaks; the argument stays as it is."""
    if served.is_hub:
        return hub
    fields = served.version.from_hub(copy.deepcopy(hub))
    fields["apiVersion"] = served.api_version
    fields["kind"] = served.kind.kind
    return fields
