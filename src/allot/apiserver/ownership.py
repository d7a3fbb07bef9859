"""Who owns which field: `metadata.managedFields`, kept on every write.

The arithmetic is in `apply`; here is what it needs to know of a request: which
version it speaks, and how the object looks in the versions of earlier writers.
"""

import copy
import hashlib

from allot.api import Fields, encode, schema

from .apply import Author, Convert, track_update
from .call import Call
from .metadata import timestamp
from .occasion import WriteOccasion
from .registry import Registry, Served

ALIKE_MAX = 1024
_NOT_OWNED = frozenset(
    [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "generation",
        "resourceVersion",
        "selfLink",
        "managedFields",
    ]
)
"""What differs between objects that are alike, and that nobody owns."""


class Ownership:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._alike: dict[bytes, Fields] = {}  # digest of a new object -> the fields that it has

    def record(self, call: Call, old: Fields | None, new: Fields, occasion: WriteOccasion) -> None:
        """Write down who owns what of `new`, which replaces `old`; both in the hub form."""
        is_plain = old is None and not new["metadata"].get("managedFields")
        # The shape of a custom kind may change while its version keeps its name.
        if is_plain and call.served.version.custom is None:
            managed = self._of_new(call, new, occasion)
            if managed:
                new["metadata"]["managedFields"] = managed
        else:
            self._track(call, old, new, occasion)

    def _of_new(self, call: Call, new: Fields, occasion: WriteOccasion) -> list[Fields]:
        """The record of a new object. Those made from one template have the same fields."""
        digest = _digest(call.served, new)
        fields = self._alike.get(digest)
        if fields is not None:
            return [_entry(call, fields, occasion)]
        self._track(call, None, new, occasion)
        managed: list[Fields] = new["metadata"].get("managedFields") or []
        if managed:
            self._alike[digest] = managed[0]["fieldsV1"]
            if len(self._alike) > ALIKE_MAX:
                del self._alike[next(iter(self._alike))]
        return managed

    def _track(self, call: Call, old: Fields | None, new: Fields, occasion: WriteOccasion) -> None:
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


def _digest(served: Served, new: Fields) -> bytes:
    metadata = {name: value for name, value in new["metadata"].items() if name not in _NOT_OWNED}
    said = encode({**new, "metadata": metadata})
    return hashlib.blake2b(said, digest_size=16).digest() + served.api_version.encode()


def _entry(call: Call, fields: Fields, occasion: WriteOccasion) -> Fields:
    return {
        "manager": call.manager,
        "operation": "Update",
        "apiVersion": call.served.api_version,
        "time": timestamp(occasion.now),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def shown_in(hub: Fields, served: Served) -> Fields:
    """A hub form in the version that a client speaks; the argument stays as it is."""
    if served.is_hub:
        return hub
    fields = served.version.from_hub(copy.deepcopy(hub))
    fields["apiVersion"] = served.api_version
    fields["kind"] = served.kind.kind
    return fields
