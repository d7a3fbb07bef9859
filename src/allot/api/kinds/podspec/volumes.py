"""Volumes: each has a name and exactly one source."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ... import names
from ...field import FieldError, Path, duplicate, forbidden, invalid, required, unsupported
from ..amounts import parse
from ..reading import items, obj

HOST_PATH_TYPES = (
    "", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice",
)  # fmt: skip
MODE_TEXT = "must be a number between 0 and 0777 (octal), both inclusive"
TOKEN_EXPIRATION_S_MIN = 600
DOWNWARD_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace",
                   "metadata.uid")  # fmt: skip


def validate_volumes(volumes: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        at, name = path[index], volume.get("name") or ""
        if not name:
            found.append(required(at / "name"))
        elif name in seen:
            found.append(duplicate(at / "name", name))
        else:
            found += [invalid(at / "name", name, wrong) for wrong in names.label_name(name)]
        seen.add(name)
        found += _validate_source(volume, at)
    return found


def _validate_source(volume: Mapping[str, Any], path: Path) -> list[FieldError]:
    said = [name for name, value in volume.items() if name != "name" and value is not None]
    if not said:
        return [required(path, "must specify a volume type")]
    found = [forbidden(path / name, "may not specify more than 1 volume type") for name in said[1:]]
    check = _SOURCES.get(said[0])
    return found + (check(volume[said[0]], path / said[0]) if check else [])


def _empty_dir(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    limit = parse(source["sizeLimit"]) if source.get("sizeLimit") is not None else None
    if limit is not None and limit.sign < 0:
        return [forbidden(path / "sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _host_path(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    found = _no_backsteps(source.get("path") or "", path / "path")
    if not source.get("path"):
        found = [required(path / "path")]
    if (source.get("type") or "") not in HOST_PATH_TYPES:
        found.append(unsupported(path / "type", source["type"], HOST_PATH_TYPES))
    return found


def _secret(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    found = [] if source.get("secretName") else [required(path / "secretName")]
    return found + _mode(source, path / "defaultMode", "defaultMode") + _keys(source, path)


def _config_map(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    found = [] if source.get("name") else [required(path / "name")]
    return found + _mode(source, path / "defaultMode", "defaultMode") + _keys(source, path)


def _keys(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for index, item in enumerate(items(source, "items")):
        at = (path / "items")[index]
        if not item.get("key"):
            found.append(required(at / "key"))
        found += _local_path(item.get("path") or "", at / "path")
        found += _mode(item, at / "mode", "mode")
    return found


def _mode(source: Mapping[str, Any], path: Path, name: str) -> list[FieldError]:
    mode = source.get(name)
    return [] if mode is None or 0 <= mode <= 0o777 else [invalid(path, mode, MODE_TEXT)]


def _local_path(value: str, path: Path) -> list[FieldError]:
    if not value:
        return [required(path)]
    if value.startswith("/"):
        return [invalid(path, value, "must be a relative path")]
    if value.startswith("..") and len(value) > 2 and not value.startswith("../"):
        return [invalid(path, value, "must not start with '..'")]
    return _no_backsteps(value, path)


def _no_backsteps(value: str, path: Path) -> list[FieldError]:
    return [invalid(path, value, "must not contain '..'")] if ".." in value.split("/") else []


def _downward(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    found = _mode(source, path / "defaultMode", "defaultMode")
    for index, item in enumerate(items(source, "items")):
        at = (path / "items")[index]
        found += _local_path(item.get("path") or "", at / "path") + _mode(item, at / "mode", "mode")
        if item.get("fieldRef") is not None:
            if item.get("resourceFieldRef") is not None:
                text = "fieldRef and resourceFieldRef can not be specified simultaneously"
                found.append(invalid(at, "resource", text))
            found += validate_field_ref(item["fieldRef"], DOWNWARD_FIELDS, at / "fieldRef")
        elif item.get("resourceFieldRef") is None:
            found.append(required(at, "one of fieldRef and resourceFieldRef is required"))
        elif not item["resourceFieldRef"].get("containerName"):
            found.append(required(at / "resourceFieldRef" / "containerName"))
    return found


def validate_field_ref(ref: Mapping[str, Any], known: Sequence[str], path: Path) -> list[FieldError]:
    """A reference into the pod: one of `known`, or one label or annotation."""
    name = ref.get("fieldPath") or ""
    if not name:
        return [required(path / "fieldPath")]
    whole, bracket, key = name.partition("['")
    if bracket and whole in ("metadata.annotations", "metadata.labels") and key.endswith("']"):
        key = key.removesuffix("']")
        shown = key.lower() if whole == "metadata.annotations" else key
        return [invalid(path, key, wrong) for wrong in names.qualified(shown)]
    return [] if name in known else [unsupported(path / "fieldPath", name, known)]


_PROJECTIONS: Mapping[str, Callable[[Mapping[str, Any], Path], list[FieldError]]] = {
    "secret": lambda source, path: (
        ([] if source.get("name") else [required(path / "name")]) + _keys(source, path)
    ),
    "configMap": lambda source, path: (
        ([] if source.get("name") else [required(path / "name")]) + _keys(source, path)
    ),
    "downwardAPI": _downward,
    "serviceAccountToken": lambda source, path: _token(source, path),
}


def _token(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    found = [] if source.get("path") else [required(path / "path")]
    seconds = source.get("expirationSeconds")
    if seconds is not None and seconds < TOKEN_EXPIRATION_S_MIN:
        found.append(
            invalid(path / "expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
        )
    elif seconds is not None and seconds > 1 << 32:
        found.append(
            invalid(
                path / "expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds"
            )
        )
    return found


def _projected(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    found = _mode(source, path / "defaultMode", "defaultMode")
    for index, projection in enumerate(items(source, "sources")):
        at = (path / "sources")[index]
        said = [name for name, value in projection.items() if value is not None]
        found += [
            forbidden(at / name, "may not specify more than 1 volume type per source") for name in said[1:]
        ]
        if not said:
            found.append(required(at, "must specify a volume type"))
        elif said[0] in _PROJECTIONS:
            found += _PROJECTIONS[said[0]](projection[said[0]], at / said[0])
    return found


def _claim(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    return [] if source.get("claimName") else [required(path / "claimName")]


def _nfs(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    found = [required(path / name) for name in ("server", "path") if not source.get(name)]
    if source.get("path") and not source["path"].startswith("/"):
        found.append(invalid(path / "path", source["path"], "must be an absolute path"))
    return found


def _csi(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    return [] if source.get("driver") else [required(path / "driver")]


def _ephemeral(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [required(path / "volumeClaimTemplate")]
    at = path / "volumeClaimTemplate" / "spec"
    found = []
    if not items(template, "spec", "accessModes"):
        found.append(required(at / "accessModes", "at least 1 access mode is required"))
    if not obj(template, "spec", "resources", "requests").get("storage"):
        found.append(required((at / "resources")["storage"]))
    return found


def _image(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    return [] if source.get("reference") else [required(path / "reference")]


_SOURCES: Mapping[str, Callable[[Mapping[str, Any], Path], list[FieldError]]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "secret": _secret,
    "configMap": _config_map,
    "downwardAPI": _downward,
    "projected": _projected,
    "persistentVolumeClaim": _claim,
    "nfs": _nfs,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
