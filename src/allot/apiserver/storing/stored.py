"""From the bytes of the store to an object.

What this server writes has been held to the shape of its kind, and says so at its
end (`SEAL`): it is taken as it is. What an earlier version wrote may hold fields
that its kind does not have, and the code that reads objects relies on types; such
an object is rid of them whenever it is read, until somebody writes it anew (S3).

The shape of a custom resource may change after its objects were written, so these
are compared with it each time.
"""

import msgspec

from allot.api import SEAL, STORED_HEAD, Kind, Object, errors, schema, stored_form
from allot.store import Entry

_decode = msgspec.json.Decoder().decode


def object_of(entry: Entry, kind: Kind) -> Object:
    return read_stored(entry.key, entry.value, entry.revision, kind)


def readable(entry: Entry, kind: Kind) -> Object | None:
    """None for a record that is no object: who lists others goes on without it."""
    try:
        return object_of(entry, kind)
    except errors.Internal:
        return None


def read_stored(key: str, value: bytes, revision: int, kind: Kind) -> Object:
    """The object that lies under `key`. Raises `Internal` where that is no object at all."""
    if value.endswith(SEAL) and not kind.is_custom:
        return Object(value, revision)
    shape = kind.stored_shape()
    if value.startswith(STORED_HEAD) and schema.fits_encoded(value, shape):
        return Object(value, revision)  # most of what is old is as it should be
    return Object(_tidied(key, value, shape), revision)


def _tidied(key: str, value: bytes, shape: schema.Schema) -> bytes:
    try:
        fields = _decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(key, f"it is no JSON: {error}") from None
    if type(fields) is not dict or type(fields.get("metadata")) is not dict:
        raise _unreadable(key, "it is no object with metadata")
    schema.prune(fields, shape)
    return stored_form(fields)


def _unreadable(key: str, why: str) -> errors.Internal:
    return errors.Internal(f"the record {key} of the store cannot be read: {why}")
