"""Environment variables of a container, and where their values come from."""

from collections.abc import Mapping, Sequence
from typing import Any

from ... import names
from ...field import FieldError, Path, invalid, required, unsupported
from .volumes import validate_field_ref

FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_RESOURCES = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory",
    "requests.cpu", "requests.ephemeral-storage", "requests.memory",
)  # fmt: skip


def validate_env(variables: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for index, variable in enumerate(variables):
        at, name = path[index], variable.get("name") or ""
        if not name:
            found.append(required(at / "name"))
        else:
            found += [invalid(at / "name", name, wrong) for wrong in names.env_name(name)]
        if variable.get("valueFrom") is not None:
            found += _validate_source(variable, at / "valueFrom")
    return found


def _validate_source(variable: Mapping[str, Any], path: Path) -> list[FieldError]:
    source = variable["valueFrom"]
    said = [name for name in _SOURCES if source.get(name) is not None]
    if not said:
        listed = ", ".join(f"`{name}`" for name in _SOURCES[:-1])
        return [invalid(path, "", f"must specify one of: {listed} or `{_SOURCES[-1]}`")]
    found: list[FieldError] = []
    if variable.get("value"):
        found.append(invalid(path, "", "may not be specified when `value` is not empty"))
    if len(said) > 1:
        found.append(invalid(path, "", "may not have more than one field specified at a time"))
    for name in said:
        found += _validate_one_source(name, source[name], path / name)
    return found


def _validate_one_source(name: str, source: Mapping[str, Any], path: Path) -> list[FieldError]:
    if name == "fieldRef":
        return validate_field_ref(source, FIELDS, path)
    if name == "resourceFieldRef":
        return _validate_resource(source, path)
    needed = ("volumeName", "path", "key") if name == "fileKeyRef" else ("name", "key")
    found = [required(path / field) for field in needed if not source.get(field)]
    if source.get("key") and name != "fileKeyRef":
        found += [invalid(path / "key", source["key"], wrong) for wrong in names.config_key(source["key"])]
    return found


def _validate_resource(source: Mapping[str, Any], path: Path) -> list[FieldError]:
    resource = source.get("resource") or ""
    if not resource:
        return [required(path / "resource")]
    if resource in _RESOURCES or resource.startswith(("limits.hugepages-", "requests.hugepages-")):
        return []
    return [unsupported(path / "resource", resource, _RESOURCES)]


def validate_env_from(sources: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for index, source in enumerate(sources):
        at = path[index]
        if source.get("prefix"):
            found += [
                invalid(at / "prefix", source["prefix"], wrong) for wrong in names.env_name(source["prefix"])
            ]
        said = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        if not said:
            found.append(invalid(at, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(said) > 1:
            found.append(invalid(at, "", "may not have more than one field specified at a time"))
        found += [required(at / name / "name") for name in said if not source[name].get("name")]
    return found
