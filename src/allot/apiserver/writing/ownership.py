"""Who owns which field: `metadata.managedFields`, kept on every write.

The arithmetic is in `apply`; here is what it needs to know of a request: which
version it speaks, and how the object looks in the versions of earlier writers.
"""

import hashlib
from typing import cast

import msgspec

from allot.api import Fields, age, encode, schema

from ..apply import Author, FieldSet, Versions, configured, created, track_update, union
from ..deciding.context import ServerWriteContext
from ..registry import Registry, Served
from ..requests.call import Call

ALIKE_MAX = 1024
ALIKE_BYTES_MAX = 4096
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

_WHOSE = ("generateName", "ownerReferences")
"""What differs between objects that are alike, and that somebody owns: a claim names its pod."""

_decode = msgspec.json.Decoder().decode


class Ownership:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._alike: dict[tuple[str, bytes], FieldSet] = {}  # version, what it says -> the fields that it has

    def record(
        self, call: Call, old: Fields | None, new: Fields, context: ServerWriteContext, subresource: str
    ) -> None:
        """Write down who owns what of `new`, which replaces `old`; both in the hub form."""
        is_plain = old is None and not new["metadata"].get("managedFields")
        # The shape of a custom kind may change while its version keeps its name.
        if is_plain and call.served.version.custom is None:
            managed = self._of_new(call, new, context)
            if managed:
                new["metadata"]["managedFields"] = managed
        else:
            self._track(call, old, new, context, subresource)

    def record_applied(
        self, served: Served, new: Fields, said: Fields, manager: str, context: ServerWriteContext
    ) -> None:
        """Write down that `manager` owns the status that it `said`, as if it had applied it."""
        entry = {
            "manager": manager,
            "operation": "Apply",
            "apiVersion": served.api_version,
            "time": age.timestamp(context.now),
            "fieldsType": "FieldsV1",
            "fieldsV1": configured(said, served.version.shape()),
            "subresource": "status",
        }
        metadata = new["metadata"]
        metadata["managedFields"] = [entry, *(metadata.get("managedFields") or ())]  # appliers come first

    def _of_new(self, call: Call, new: Fields, context: ServerWriteContext) -> list[Fields]:
        """The record of a new object. Those made from one template have the same fields, but for
        what says whose they are."""
        shape = call.served.version.shape()
        alike, own = _taken_apart(new)
        key = (call.served.api_version, _short(encode(alike)))
        fields = self._alike.get(key)
        if fields is None:
            fields = self._alike[key] = created(shown_in(alike, call.served), shape)
            if len(self._alike) > ALIKE_MAX:
                del self._alike[next(iter(self._alike))]
        if own["metadata"]:
            fields = union(fields, created(own, shape))
        return [_entry(call, fields, context)] if fields else []

    def _track(
        self, call: Call, old: Fields | None, new: Fields, context: ServerWriteContext, subresource: str
    ) -> None:
        served = call.served
        author = Author(call.manager, served.api_version, subresource)
        managed = track_update(
            None if old is None else shown_in(old, served),
            shown_in(new, served),
            author,
            age.timestamp(context.now),
            served.version.shape(),
            self.versions(served),
        )
        if managed:
            new["metadata"]["managedFields"] = managed
        else:
            new["metadata"].pop("managedFields", None)

    def versions(self, served: Served) -> Versions:
        """How an object of `served` looks in other versions of its kind."""
        return _Versions(self._registry, served)


class _Versions:
    __slots__ = ("_registry", "_served")

    def __init__(self, registry: Registry, served: Served) -> None:
        self._registry = registry
        self._served = served

    def convert(self, fields: Fields, api_version: str) -> tuple[Fields, schema.Schema] | None:
        served, other = self._served, self._other(api_version)
        if other is None:
            return None
        if other is served:
            return fields, served.version.shape()
        hub = fields if served.is_hub else served.version.to_hub(_copied(fields))
        return shown_in(hub, other), other.version.shape()

    def keep_parts(self, api_version: str) -> bool:
        other = self._other(api_version)
        return other is not None and other.version.converts_by_part and self._served.version.converts_by_part

    def _other(self, api_version: str) -> Served | None:
        group, _, version = api_version.rpartition("/")
        kind = self._served.kind
        return self._registry.served(group, version, kind.plural) if group == kind.group else None


def _taken_apart(new: Fields) -> tuple[Fields, Fields]:
    """What objects of one template have in common, and what of metadata each of them has for itself."""
    metadata = new["metadata"]
    common = {name: metadata[name] for name in metadata if name not in _NOT_OWNED and name not in _WHOSE}
    own = {name: metadata[name] for name in _WHOSE if name in metadata}
    return {**new, "metadata": common}, {"metadata": own}


def _short(said: bytes) -> bytes:
    """Something of its own for whatever is said. Most of it is short enough to be kept as it is."""
    return said if len(said) <= ALIKE_BYTES_MAX else hashlib.blake2b(said, digest_size=16).digest()


def _entry(call: Call, fields: FieldSet, context: ServerWriteContext) -> Fields:
    return {
        "manager": call.manager,
        "operation": "Update",
        "apiVersion": call.served.api_version,
        "time": age.timestamp(context.now),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def shown_in(hub: Fields, served: Served) -> Fields:
    """A hub form in the version that a client speaks; the argument stays as it is."""
    if served.is_hub:
        return hub
    fields = served.version.from_hub(_copied(hub))
    fields["apiVersion"] = served.api_version
    fields["kind"] = served.kind.kind
    return fields


def _copied(fields: Fields) -> Fields:
    """Written and read again: the quickest way to copy JSON."""
    return cast(Fields, _decode(encode(fields)))
