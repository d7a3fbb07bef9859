"""Which form a client wants its answer in, and which form it sent.

JSON is the one encoding we write. A client that also accepts JSON gets JSON;
one that insists on protobuf is refused (406). Bodies may be JSON or YAML, and
protobuf for kinds whose field numbers we know; anything else is a 415.
"""

from functools import lru_cache
from typing import NamedTuple

from allot.api import Request, errors

JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
YAML = ("application/yaml", "application/x-yaml", "text/yaml")


class Form(NamedTuple):
    """Whole objects, or one of the shorter forms that servers may answer in."""

    shape: str = ""  # "", Table or PartialObjectMetadata
    version: str = "v1"  # of meta.k8s.io


WHOLE = Form()
_SHAPES = {"Table": "Table", "PartialObjectMetadata": "PartialObjectMetadata"}
_SHAPES["PartialObjectMetadataList"] = "PartialObjectMetadata"


def wanted_form(request: Request) -> Form:
    return _form(request.headers.get("accept", "") or "*/*")


@lru_cache(maxsize=256)  # clients say the same all the time
def _form(accept: str) -> Form:
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media not in (JSON, "*/*", "application/*", *YAML):
            continue
        options = dict(parameter.partition("=")[::2] for parameter in parameters)
        shape = options.get("as")
        if shape is None:
            return WHOLE
        if shape in _SHAPES and options.get("g", "meta.k8s.io") == "meta.k8s.io":
            version = options.get("v", "v1")
            if version in ("v1", "v1beta1"):
                return Form(_SHAPES[shape], version)
    raise errors.NotAcceptable(
        f"only {JSON} is served, and the client accepts only {accept[:200]!r}; add {JSON} to Accept"
    )


def body_type(request: Request) -> str:
    """The media type of the body, without parameters."""
    if request.headers.get("content-encoding", "identity") not in ("identity", ""):
        raise errors.UnsupportedMedia("compressed request bodies are not accepted")
    return _media(request.headers.get("content-type", JSON))


@lru_cache(maxsize=256)
def _media(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower() or JSON


def object_media(request: Request) -> str:
    """json, yaml or protobuf: how an object was sent. Anything else is refused."""
    media = body_type(request)
    if media == JSON:
        return "json"
    if media in YAML:
        return "yaml"
    if media == PROTOBUF:
        return "protobuf"
    raise errors.UnsupportedMedia(
        "the body of the request was in an unknown format - accepted media types include: "
        f"{JSON}, {YAML[0]}, {PROTOBUF}"
    )
