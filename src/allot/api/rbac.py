"""Roles and bindings: rbac.authorization.k8s.io.

A role says what may be done, a binding says by whom. What a binding refers to
never changes; to bind another role, delete it and make a new one, so that nobody
who may edit the list of subjects can thereby hand out another role.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from . import names
from .field import FieldError, Path, invalid, required, unsupported
from .kind import Column, Fields, Kind, Rules, Version, WriteContext
from .kinds.labels import validate_selector

GROUP = "rbac.authorization.k8s.io"

_ROLE_REF = Path("roleRef")
_SELECTORS = Path("aggregationRule") / "clusterRoleSelectors"


def _validate_role(role: Fields) -> list[FieldError]:
    return _rule_errors(role, namespaced=True)


def _validate_cluster_role(role: Fields) -> list[FieldError]:
    found = _rule_errors(role, namespaced=False)
    if role.get("aggregationRule") is not None:
        selectors = role["aggregationRule"].get("clusterRoleSelectors") or ()
        if not selectors:
            text = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            found.append(required(_SELECTORS, text))
        for index, selector in enumerate(selectors):
            found += validate_selector(selector, _SELECTORS[index])
    return found


def _rule_errors(role: Fields, *, namespaced: bool) -> list[FieldError]:
    return [
        error
        for index, rule in enumerate(role.get("rules") or ())
        for error in _one_rule_errors(rule, Path("rules")[index], namespaced)
    ]


def _one_rule_errors(rule: Fields, path: Path, namespaced: bool) -> list[FieldError]:
    found = []
    if not rule.get("verbs"):
        found.append(required(path / "verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        where = path / "nonResourceURLs"
        if namespaced:
            found.append(invalid(where, urls, "namespaced rules cannot apply to non-resource URLs"))
        if any(rule.get(part) for part in ("apiGroups", "resources", "resourceNames")):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            found.append(invalid(where, urls, text))
        return found
    if not rule.get("apiGroups"):
        found.append(required(path / "apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        found.append(required(path / "resources", "resource rules must supply at least one resource"))
    return found


def _validate_role_binding(binding: Fields) -> list[FieldError]:
    return _binding_errors(binding, ("ClusterRole", "Role"), namespaced=True)


def _validate_cluster_role_binding(binding: Fields) -> list[FieldError]:
    return _binding_errors(binding, ("ClusterRole",), namespaced=False)


def _binding_errors(binding: Fields, roles: Sequence[str], *, namespaced: bool) -> list[FieldError]:
    ref = binding.get("roleRef") or {}
    found = []
    if ref.get("apiGroup", "") != GROUP:
        found.append(unsupported(_ROLE_REF / "apiGroup", ref.get("apiGroup", ""), [GROUP]))
    if ref.get("kind", "") not in roles:
        found.append(unsupported(_ROLE_REF / "kind", ref.get("kind", ""), roles))
    name = ref.get("name", "")
    if not name:
        found.append(required(_ROLE_REF / "name"))
    found += [invalid(_ROLE_REF / "name", name, wrong) for wrong in names.path_segment(name)]
    for index, subject in enumerate(binding.get("subjects") or ()):
        found += _subject_errors(subject, Path("subjects")[index], namespaced)
    return found


def _subject_errors(subject: Fields, path: Path, namespaced: bool) -> list[FieldError]:
    found = []
    name, group = subject.get("name", ""), subject.get("apiGroup") or ""
    if not name:
        found.append(required(path / "name"))
    match subject.get("kind"):
        case "ServiceAccount":
            if name:
                found += [invalid(path / "name", name, wrong) for wrong in names.subdomain(name)]
            if group:
                found.append(unsupported(path / "apiGroup", group, [""]))
            if not namespaced and not subject.get("namespace"):
                found.append(required(path / "namespace"))
        case "User" | "Group":
            if group != GROUP:
                found.append(unsupported(path / "apiGroup", group, [GROUP]))
        case kind:
            found.append(unsupported(path / "kind", kind or "", ["Group", "ServiceAccount", "User"]))
    return found


def _default_binding(binding: Fields, now: datetime) -> None:
    ref = binding.get("roleRef")
    if ref is not None and not ref.get("apiGroup"):
        ref["apiGroup"] = GROUP
    for subject in binding.get("subjects") or ():
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = GROUP


def _role_rules(validate: Callable[[Fields], list[FieldError]]) -> Rules:
    return Rules(
        validate_create=lambda new, context: validate(new),
        validate_update=lambda new, old, context: validate(new),
    )


def _binding_rules(validate: Callable[[Fields], list[FieldError]]) -> Rules:
    def update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
        found = validate(new)
        if new.get("roleRef") != old.get("roleRef"):
            found.append(invalid(_ROLE_REF, new.get("roleRef"), "cannot change roleRef"))
        return found

    return Rules(validate_create=lambda new, context: validate(new), validate_update=update)


_NAME = Column("Name", format="name", description="Name must be unique within a namespace.")

_ROLE_COLUMNS = (_NAME, Column("Created At", "date", description="When the object was created."))

_BINDING_COLUMNS = (
    _NAME,
    Column("Role", description="The role that is bound."),
    Column("Age", description="How long ago the object was created."),
    Column("Users", description="Users that the role is bound to.", priority=1),
    Column("Groups", description="Groups that the role is bound to.", priority=1),
    Column("ServiceAccounts", description="Service accounts that the role is bound to.", priority=1),
)


def _role_cells(role: Fields, age: str) -> list[Any]:
    return [role["metadata"]["name"], role["metadata"].get("creationTimestamp")]


def _binding_cells(binding: Fields, age: str) -> list[Any]:
    bound: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in binding.get("subjects") or ():
        name = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            name = f"{subject.get('namespace', '')}/{name}"
        bound.get(subject.get("kind", ""), []).append(name)
    ref = binding.get("roleRef") or {}
    role = f"{ref.get('kind', '')}/{ref.get('name', '')}"
    return [binding["metadata"]["name"], role, age, *(", ".join(listed) for listed in bound.values())]


ROLE = Kind(
    group=GROUP,
    kind="Role",
    plural="roles",
    singular="role",
    versions=(Version("v1", "io.k8s.api.rbac.v1.Role"),),
    hub="v1",
    name_rule="path",
    rules=_role_rules(_validate_role),
    columns=_ROLE_COLUMNS,
    cells=_role_cells,
)

CLUSTER_ROLE = Kind(
    group=GROUP,
    kind="ClusterRole",
    plural="clusterroles",
    singular="clusterrole",
    namespaced=False,
    versions=(Version("v1", "io.k8s.api.rbac.v1.ClusterRole"),),
    hub="v1",
    name_rule="path",
    rules=_role_rules(_validate_cluster_role),
    columns=_ROLE_COLUMNS,
    cells=_role_cells,
)

ROLE_BINDING = Kind(
    group=GROUP,
    kind="RoleBinding",
    plural="rolebindings",
    singular="rolebinding",
    versions=(Version("v1", "io.k8s.api.rbac.v1.RoleBinding", default=_default_binding),),
    hub="v1",
    name_rule="path",
    rules=_binding_rules(_validate_role_binding),
    columns=_BINDING_COLUMNS,
    cells=_binding_cells,
)

CLUSTER_ROLE_BINDING = Kind(
    group=GROUP,
    kind="ClusterRoleBinding",
    plural="clusterrolebindings",
    singular="clusterrolebinding",
    namespaced=False,
    versions=(Version("v1", "io.k8s.api.rbac.v1.ClusterRoleBinding", default=_default_binding),),
    hub="v1",
    name_rule="path",
    rules=_binding_rules(_validate_cluster_role_binding),
    columns=_BINDING_COLUMNS,
    cells=_binding_cells,
)

KINDS = (ROLE, ROLE_BINDING, CLUSTER_ROLE, CLUSTER_ROLE_BINDING)
