"""CustomResourceDefinition, apiextensions.k8s.io/v1.

Names are accepted and the kind is established with the write that creates the
definition: the server that serves the kind is the one that stores it.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from .. import names as shapes
from ..field import FieldError, Path, duplicate, forbidden, invalid, required, unsupported
from ..kind import Column, Fields, Kind, Rules, Version, WriteContext
from .printing import is_path
from .structure import check_structural

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that keeps a definition until its objects are gone."""

_SPEC = Path("spec")
_SCOPES = ("Cluster", "Namespaced")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_VERSION_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def _default(fields: Fields, now: datetime) -> None:
    spec = fields.get("spec")
    if not isinstance(spec, dict):
        return
    names = spec.setdefault("names", {})
    kind = names.get("kind") or ""
    names.setdefault("singular", kind.lower())
    names.setdefault("listKind", f"{kind}List" if kind else "")
    spec.setdefault("conversion", {"strategy": "None"})


def _prepare_create(new: Fields, context: WriteContext) -> None:
    now = context.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    finalizers = new["metadata"].setdefault("finalizers", [])
    if CLEANUP not in finalizers:
        finalizers.append(CLEANUP)
    spec = new.get("spec") or {}
    new["status"] = {
        "acceptedNames": spec.get("names") or {},
        "conditions": [
            {
                "type": "NamesAccepted",
                "status": "True",
                "lastTransitionTime": now,
                "reason": "NoConflicts",
                "message": "no conflicts found",
            },
            {
                "type": "Established",
                "status": "True",
                "lastTransitionTime": now,
                "reason": "InitialNamesAccepted",
                "message": "the initial names have been accepted",
            },
        ],
        "storedVersions": _stored(spec),
    }


def _prepare_update(new: Fields, old: Fields, context: WriteContext) -> None:
    status = dict(new.get("status") or {})
    known = list(status.get("storedVersions") or [])
    status["storedVersions"] = known + [name for name in _stored(new.get("spec") or {}) if name not in known]
    status["acceptedNames"] = (new.get("spec") or {}).get("names") or {}
    new["status"] = status


def _stored(spec: Mapping[str, Any]) -> list[str]:
    return [version.get("name", "") for version in spec.get("versions") or () if version.get("storage")]


def _validate_create(new: Fields, context: WriteContext) -> list[FieldError]:
    return _validate(new, {}, context)


def _validate(new: Fields, before: Mapping[str, Any], context: WriteContext) -> list[FieldError]:
    """`before` is the spec that this one replaces."""
    spec = new.get("spec") or {}
    metadata = new["metadata"]
    problems = _check_names(spec, metadata.get("name", ""), metadata.get("annotations") or {})
    if spec.get("scope") not in _SCOPES:
        problems.append(
            unsupported(_SPEC / "scope", spec["scope"], _SCOPES)
            if spec.get("scope")
            else required(_SPEC / "scope")
        )
    problems += _check_versions(spec) or _check_rules(spec, before, context)
    conversion = spec.get("conversion") or {}
    if conversion.get("strategy") != "None":
        path = _SPEC / "conversion" / "strategy"
        problems.append(unsupported(path, conversion.get("strategy"), ("None",)))
    return problems


def _validate_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    after, before = new.get("spec") or {}, old.get("spec") or {}
    problems = _validate(new, before, context)
    for path, left, right in (
        (_SPEC / "group", after.get("group"), before.get("group")),
        (_SPEC / "scope", after.get("scope"), before.get("scope")),
        (_SPEC / "names" / "plural", _name(after, "plural"), _name(before, "plural")),
        (_SPEC / "names" / "kind", _name(after, "kind"), _name(before, "kind")),
    ):
        if left != right:
            problems.append(invalid(path, left, "field is immutable"))
    kept = [version.get("name") for version in after.get("versions") or ()]
    for at, name in enumerate((old.get("status") or {}).get("storedVersions") or ()):
        if name not in kept:
            text = "missing from spec.versions; objects may still be stored in it"
            problems.append(invalid((Path("status") / "storedVersions")[at], name, text))
    return problems


def _name(spec: Mapping[str, Any], name: str) -> Any:
    return (spec.get("names") or {}).get(name)


_PROTECTED = ("k8s.io", "kubernetes.io")
_APPROVAL = "api-approved.kubernetes.io"


def _check_approval(group: str, annotations: Mapping[str, str]) -> list[FieldError]:
    """Groups of Kubernetes itself are for those who say where the API was approved."""
    ours = any(group == domain or group.endswith(f".{domain}") for domain in _PROTECTED)
    if not ours or annotations.get(_APPROVAL):
        return []
    path = (Path("metadata") / "annotations")[_APPROVAL]
    return [required(path, "protected groups must have an approval annotation")]


def _check_names(spec: Mapping[str, Any], name: str, annotations: Mapping[str, str]) -> list[FieldError]:
    group, names = spec.get("group") or "", spec.get("names") or {}
    problems = []
    if not group:
        problems.append(required(_SPEC / "group"))
    elif "." not in group:
        problems.append(invalid(_SPEC / "group", group, "should be a domain with at least one dot"))
    else:
        problems += [invalid(_SPEC / "group", group, text) for text in shapes.subdomain(group)]
    path = _SPEC / "names"
    for field, low in (("plural", False), ("singular", False), ("kind", True), ("listKind", True)):
        value = names.get(field) or ""
        if not value:
            problems.append(required(path / field))
        else:
            problems += [
                invalid(path / field, value, t) for t in shapes.label_1035(value.lower() if low else value)
            ]
    for at, short in enumerate(names.get("shortNames") or ()):
        problems += [invalid((path / "shortNames")[at], short, text) for text in shapes.label_1035(short)]
    problems += _check_approval(group, annotations)
    wanted = f"{names.get('plural') or ''}.{group}"
    if name != wanted:
        text = 'must be spec.names.plural+"."+spec.group'
        problems.append(invalid(Path("metadata") / "name", name, text))
    return problems


def _check_versions(spec: Mapping[str, Any]) -> list[FieldError]:
    path, versions = _SPEC / "versions", spec.get("versions") or []
    if not versions:
        return [required(path, "must have at least one version")]
    problems: list[FieldError] = []
    seen: set[str] = set()
    for at, version in enumerate(versions):
        name = version.get("name") or ""
        if not _VERSION_NAME.fullmatch(name) or len(name) > shapes.LABEL_MAX:
            problems.append(invalid(path[at] / "name", name, "must be a DNS label, such as v1"))
        if name in seen:
            problems.append(duplicate(path[at] / "name", name))
        seen.add(name)
        problems += _check_version(version, path[at])
    if len(_stored(spec)) != 1:
        problems.append(
            invalid(path, _stored(spec), "must have exactly one version marked as storage version")
        )
    return problems


def _check_version(version: Mapping[str, Any], path: Path) -> list[FieldError]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        return [required(path / "schema" / "openAPIV3Schema", "schemas are required")]
    problems = check_structural(schema, path / "schema" / "openAPIV3Schema")
    for at, column in enumerate(version.get("additionalPrinterColumns") or ()):
        where = (path / "additionalPrinterColumns")[at]
        if not column.get("name"):
            problems.append(required(where / "name"))
        if column.get("type") not in _COLUMN_TYPES:
            problems.append(unsupported(where / "type", column.get("type") or "", _COLUMN_TYPES))
        if not is_path(column.get("jsonPath") or ""):
            problems.append(invalid(where / "jsonPath", column.get("jsonPath") or "", "must be a JSON path"))
    scale = (version.get("subresources") or {}).get("scale")
    for name in ("specReplicasPath", "statusReplicasPath") if scale is not None else ():
        value = (scale or {}).get(name) or ""
        root = ".spec." if name == "specReplicasPath" else ".status."
        if not value.startswith(root):
            text = f"should be a json path under {root.rstrip('.')}"
            problems.append(invalid(path / "subresources" / "scale" / name, value, text))
    if version.get("deprecationWarning") and not version.get("deprecated"):
        problems.append(forbidden(path / "deprecationWarning", "only for deprecated versions"))
    return problems


def _check_rules(
    spec: Mapping[str, Any], before: Mapping[str, Any], context: WriteContext
) -> list[FieldError]:
    """Of schemas that are new: what was accepted once stays, also if it would be too dear today."""
    known = [(version.get("schema") or {}).get("openAPIV3Schema") for version in before.get("versions") or ()]
    problems: list[FieldError] = []
    for at, version in enumerate(spec.get("versions") or ()):
        openapi = (version.get("schema") or {}).get("openAPIV3Schema")
        if openapi and openapi not in known:
            path = (_SPEC / "versions")[at] / "schema" / "openAPIV3Schema"
            problems += context.check_rules(openapi, path)
    return problems


DEFINITION = Kind(
    group="apiextensions.k8s.io",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    singular="customresourcedefinition",
    versions=(
        Version(
            "v1",
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
            default=_default,
        ),
    ),
    hub="v1",
    namespaced=False,
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    has_status=True,
    counts_generation=True,
    rules=Rules(
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        validate_create=_validate_create,
        validate_update=_validate_update,
    ),
    columns=(
        Column("Name", format="name", description="The plural name and the group."),
        Column("Created At", description="When the definition was created."),
    ),
    cells=lambda fields, age: [fields["metadata"]["name"], fields["metadata"].get("creationTimestamp")],
)

KINDS = (DEFINITION,)
