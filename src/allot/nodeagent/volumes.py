"""What lies in a volume, as values: paths, bytes and modes. Pure.

A config map, a secret, fields of the pod and tokens each give files; a projected volume holds those of all
its sources, and of two with one path the later one. Without `items` every key is a file; with them those
that are named, under the paths that they say.
"""

from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from allot.api import Object, Quantity

from .fields import Around, UnknownField, file, resource
from .limits import limits_of
from .views import Container, FieldFile, Item, Volume

MODE = 0o644
TOKEN_AGE_MAX = timedelta(hours=24)
TOKEN_SHARE = 0.8
"""Of its time: then a token is asked for anew."""

MEMORY = "Memory"

KNOWN = ("config_map", "secret", "downward_api", "projected", "empty_dir", "host_path")


class File(NamedTuple):
    content: bytes
    mode: int = MODE


Content = Mapping[str, File]
"""By path, below the volume."""


class BadVolume(Exception):
    """The message says what is missing, or cannot be had here."""


def data_of(found: Mapping[str, Any], *, is_secret: bool) -> dict[str, bytes]:
    """The keys of a config map or a secret."""
    data = found.get("data") or {}
    if is_secret:
        return {key: b64decode(value) for key, value in data.items()}
    binary = {key: b64decode(value) for key, value in (found.get("binaryData") or {}).items()}
    return {**{key: value.encode() for key, value in data.items()}, **binary}


def keys(
    data: Mapping[str, bytes], items: Sequence[Item], mode: int, *, named: str, is_optional: bool = False
) -> Content:
    """Raises BadVolume where a key is named that is not there."""
    if not items:
        return {key: File(value, mode) for key, value in data.items()}
    missing = [one.key for one in items if one.key not in data]
    if missing and not is_optional:
        raise BadVolume(f"{named} references non-existent config key: {', '.join(missing)}")
    return {
        one.path: File(data[one.key], mode if one.mode is None else one.mode)
        for one in items
        if one.key in data
    }


def fields(
    pod: Object, containers: Sequence[Container], items: Iterable[FieldFile], mode: int, around: Around
) -> Content:
    """Raises BadVolume."""
    found = {}
    for one in items:
        try:
            if one.field_ref is not None:
                text = file(pod, one.field_ref.field_path, around)
            elif one.resource_field_ref is not None:
                text = resource(containers, "", one.resource_field_ref, around)
            else:
                raise UnknownField("its source is not known to this node")
        except UnknownField as unknown:
            raise BadVolume(f"file {one.path}: {unknown}") from None
        found[one.path] = File(text.encode(), mode if one.mode is None else one.mode)
    return found


def together(parts: Iterable[Content]) -> Content:
    found: dict[str, File] = {}
    for part in parts:
        found |= part
    return found


def links(content: Content) -> frozenset[str]:
    """What is seen at the top of a volume: the first part of each path."""
    return frozenset(path.partition("/")[0] for path in content)


def require_inside(path: str) -> None:
    """Nothing of a volume lies outside of it. Raises BadVolume."""
    parts = path.split("/")
    if not path or path.startswith("/") or ".." in parts or parts[0].startswith(".."):
        raise BadVolume(f"path {path!r} is not below the volume")


def require_known(volume: Volume) -> None:
    if all(getattr(volume, source) is None for source in KNOWN):
        raise BadVolume(
            f"volume {volume.name}: this node has config maps, secrets, the downward API, projected volumes, "
            "emptyDir and hostPath, and nothing else"
        )


def is_in_memory(volume: Volume) -> bool:
    """Raises BadVolume for a medium that is neither disk nor memory."""
    medium = volume.empty_dir.medium if volume.empty_dir is not None else ""
    if medium not in ("", MEMORY):
        raise BadVolume(f"this node has no medium {medium}")
    return medium == MEMORY


def size_limit(volume: Volume) -> int | None:
    """In bytes; None: it may grow."""
    wanted = volume.empty_dir.size_limit if volume.empty_dir is not None else None
    return Quantity.parse(str(wanted)).as_int() or None if wanted is not None else None


def memory_size(volume: Volume, containers: Sequence[Container]) -> int | None:
    """Of a volume in memory: what it may hold, and no more than all containers of its pod together."""
    limits = [limits_of(one.resources).memory_bytes for one in containers]
    known = [one for one in limits if one is not None]
    of_pod = sum(known) if known and len(known) == len(limits) else None
    return min((one for one in (size_limit(volume), of_pod) if one is not None), default=None)


def token_refresh_at(issued_at: float, expires_at: float) -> float:
    """When a token is asked for anew: after most of its time, and after a day in any case."""
    lasts_s = expires_at - issued_at
    return issued_at + min(lasts_s * TOKEN_SHARE, TOKEN_AGE_MAX.total_seconds())
