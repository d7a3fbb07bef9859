"""/openapi/v2: a document that names no types.

Clients read /openapi/v3. For a file with a `List` in it kubectl asks for the older form, to check what is
in the list before it sends it; of types that it does not find it leaves that to the server, which
checks everything anyhow. It insists on protobuf: the few bytes are written here by hand.
"""

from typing import Any

from allot.api import Response, encode

PATH = "/openapi/v2"
_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_ALSO = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"  # as clients ask, and cannot read it
_TITLE = "Kubernetes"
# Numbers of the fields in protobuf's Document and Info.
_SWAGGER, _INFO, _PATHS = 1, 2, 8
_INFO_TITLE, _INFO_VERSION = 1, 2


def answer(accept: str, version: str) -> Response:
    wanted = [part.split(";")[0].strip() for part in accept.split(",")]
    if _PROTOBUF in wanted or _ALSO in wanted:
        return Response(200, _protobuf(version), _PROTOBUF, (("Vary", "Accept"),))
    document: dict[str, Any] = {"swagger": "2.0", "info": {"title": _TITLE, "version": version}, "paths": {}}
    return Response(200, encode(document), headers=(("Vary", "Accept"),))


def _protobuf(version: str) -> bytes:
    info = _field(_INFO_TITLE, _TITLE.encode()) + _field(_INFO_VERSION, version.encode())
    return _field(_SWAGGER, b"2.0") + _field(_INFO, info) + _field(_PATHS, b"")


def _field(number: int, value: bytes) -> bytes:
    """Bytes, a text or a message, of fewer than 128 bytes."""
    return bytes((number << 3 | 2, len(value))) + value
