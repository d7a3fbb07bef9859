"""Several writes in one request: a transaction of our server, which no other Kubernetes has."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

import msgspec

from allot.api import Object, errors, transaction

from .writes import Write

_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(transaction.Answer)


def document(writes: Sequence[Write]) -> bytes:
    """The transaction that these writes are."""
    members = [_member(write) for write in writes]
    return _encode(transaction.Sent(transaction.Spec(members)))


def results(body: bytes) -> list[Object]:
    """What became of each write: the object as it is then, or a Status."""
    return [Object(bytes(one.body)) for one in _decoder.decode(body).status.results]


def member_of(error: errors.ApiError) -> int | None:
    """Which of the writes was refused. None where the transaction itself was."""
    for cause in error.causes:
        if cause.reason == transaction.MEMBER:
            place = cause.field.partition("[")[2].rstrip("]")
            return int(place) if place.isdecimal() else None
    return None


def _member(write: Write) -> transaction.Member:
    body = msgspec.Raw(write.body) if write.body else transaction.NO_BODY
    target = _target(write.path, write.query)
    beside, expect = write.beside or None, write.expect or None
    return transaction.Member(write.method, target, write.content_type, body, beside, expect)


def _target(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path
