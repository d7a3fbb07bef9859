"""One object type for all: the encoded JSON, and typed views made on first use.

Store, watch cache, informers and clients share an `Object` and never change it.
What it encodes is never narrowed: a view knows some fields, the object keeps all
that its kind has (S3). Who wants another object lays changes over this one.

Stored form
    The store keeps the JSON without `metadata.resourceVersion`, which is only
    known once the write has its revision, and with `metadata` first. So the
    version can be written in when an object leaves the server, without decoding
    it: an object that goes to a thousand watchers is encoded once.

    It ends with SEAL, a space, which says that the object was held to the shape of its
    kind when it was written. What was written before there was a seal may hold fields
    that its kind does not have (see `apiserver.storing.stored`). A change that takes fields away
    from shapes needs another seal.
"""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec

from .meta import read

View = TypeVar("View", bound=msgspec.Struct)

OBJECT_BYTES_MAX = 1536 * 1024 - 32 * 1024
"""How large the stored form may be: what etcd takes in one request, less room for the keys and the
other writes of the transaction. All stores have the same bound, so that objects can move."""

SEAL = b" "
STORED_HEAD = b'{"metadata":{'
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


class Metadata(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """What nearly every reader asks for, read without decoding the rest."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    deletion_timestamp: str | None = None
    creation_timestamp: str | None = None


class _Outline(msgspec.Struct, frozen=True, rename="camel", gc=False):
    metadata: Metadata = Metadata()
    kind: str = ""
    api_version: str = ""


_outline = msgspec.json.Decoder(_Outline)


class Object:
    __slots__ = ("__weakref__", "_fields", "_outline", "_revision", "_value", "_views")

    def __init__(self, value: bytes, revision: int = 0, fields: dict[str, Any] | None = None) -> None:
        """`value` is a whole JSON object; with a `revision` it is in the stored form.

        `fields` is what a client reads in it, where the caller knows; they are not changed any more.
        """
        self._value = value
        self._revision = revision
        self._fields = fields
        self._outline: _Outline | None = None
        self._views: dict[type, msgspec.Struct] | None = None

    @property
    def raw(self) -> bytes:
        """The object as a client reads it."""
        if not self._revision:
            return self._value
        return b'{"metadata":{"resourceVersion":"%d",%b' % (self._revision, self._value[len(STORED_HEAD) :])

    @property
    def stored(self) -> bytes:
        """The bytes that this object holds on to, as they lie in the store."""
        return self._value

    @property
    def fields(self) -> Mapping[str, Any]:
        """The object decoded. Shared: never change it."""
        if self._fields is None:
            self._fields = _decoder.decode(self.raw)
        return self._fields

    def forget_fields(self) -> None:
        """Keep the bytes only; whoever asks for the fields decodes them again."""
        self._fields = None

    def fresh(self) -> dict[str, Any]:
        """The object decoded anew, for a caller that will change it."""
        return cast(dict[str, Any], _decoder.decode(self.raw))

    def opened(self) -> dict[str, Any]:
        """The object decoded, for a caller that replaces members of it or of its metadata. Whatever
        lies below those is shared: never change it."""
        fields = self.fields
        return {**fields, "metadata": dict(fields["metadata"])}

    def view(self, kind: type[View]) -> View:
        """The fields that `kind` knows, as typed values."""
        if self._views is None:
            self._views = {}
        found = self._views.get(kind)
        if found is None:
            found = self._views[kind] = read(kind, self.raw)
        return cast(View, found)

    def changed(self, changes: Mapping[str, Any]) -> "Object":
        """This object with `changes` laid over it; None removes a field, lists are replaced."""
        return Object(_encoder.encode(_laid_over(self.fields, changes)))

    # What follows is asked for so often that a call less is felt.

    @property
    def metadata(self) -> Metadata:
        return (self._outline or self._read_outline()).metadata

    @property
    def kind(self) -> str:
        return self._read_outline().kind

    @property
    def api_version(self) -> str:
        return self._read_outline().api_version

    @property
    def name(self) -> str:
        return (self._outline or self._read_outline()).metadata.name

    @property
    def namespace(self) -> str:
        return (self._outline or self._read_outline()).metadata.namespace

    @property
    def uid(self) -> str:
        return (self._outline or self._read_outline()).metadata.uid

    @property
    def resource_version(self) -> str:
        return str(self._revision) if self._revision else self._read_outline().metadata.resource_version

    @property
    def revision(self) -> int:
        return self._revision

    def _read_outline(self) -> _Outline:
        if self._outline is None:
            fields = self._fields
            self._outline = _outline.decode(self._value) if fields is None else _outlined(fields)
        return self._outline

    def __repr__(self) -> str:
        return f"Object({self.kind} {self.namespace}/{self.name} @{self.resource_version})"


def _outlined(fields: Mapping[str, Any]) -> _Outline:
    """What the decoder would find, taken from what is decoded already: a third of the time."""
    get = fields["metadata"].get
    metadata = Metadata(
        get("name", ""),
        get("namespace", ""),
        get("uid", ""),
        get("resourceVersion", ""),
        get("generation", 0),
        get("labels"),
        get("annotations"),
        get("finalizers"),
        get("deletionTimestamp"),
        get("creationTimestamp"),
    )
    return _Outline(metadata, fields.get("kind", ""), fields.get("apiVersion", ""))


def encode(fields: Mapping[str, Any]) -> bytes:
    """Any object as JSON."""
    return _encoder.encode(fields)


def stored_form(fields: Mapping[str, Any]) -> bytes:
    """Encode for the store. The object must have metadata, and a name in it."""
    metadata = fields["metadata"]
    if "resourceVersion" in metadata:
        metadata = {key: value for key, value in metadata.items() if key != "resourceVersion"}
    ordered = {"metadata": metadata, **fields}
    ordered["metadata"] = metadata  # in the first place still
    return _encoder.encode(ordered) + SEAL


def _laid_over(below: Any, above: Any) -> Any:
    if not isinstance(above, Mapping):
        return above
    result = dict(below) if isinstance(below, Mapping) else {}
    for key, value in above.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _laid_over(result.get(key), value)
    return result
