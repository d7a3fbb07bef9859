"""The tables as API objects, and how a stored one is brought up to date.

At every start the server creates what is missing and adds what an upgrade
brought, and takes nothing away that somebody added. The annotation `autoupdate`
set to "false" keeps an object as it is.
"""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from ..identities import CONTROLLER_MANAGER_NAME, SCHEDULER_NAME, SYSTEM_NAMESPACE
from ..rbac import GROUP, Subject
from ..rules import Rule, missing
from .controllers import CONTROLLERS
from .guests import GUEST_BINDINGS, GUEST_CONTROLLERS, GUEST_LOCALS, GUEST_ROLES
from .notation import COORDINATION, READ, may
from .roles import AGGREGATES, CLUSTER_BINDINGS, CLUSTER_ROLES, PARTS

_API_VERSION = f"{GROUP}/v1"
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"

_LEADERS = {
    "system::leader-locking-kube-controller-manager": ("kube-controller-manager", CONTROLLER_MANAGER_NAME),
    "system::leader-locking-kube-scheduler": ("kube-scheduler", SCHEDULER_NAME),
}
"""Role in kube-system -> the lock it is about, and who may hold it."""

Object = dict[str, Any]


def objects() -> list[Object]:
    """Every default role and binding; roles come before what binds them."""
    return [*_cluster_roles(), *_cluster_bindings(), *_leader_election(), *_locals()]


def reconciled(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> Object | None:
    """`stored` with everything of `wanted` that it lacks, or None if it lacks nothing.

    A binding whose roleRef is another one is left alone: the field is immutable,
    and whoever changed it made an object of their own.
    """
    metadata = stored["metadata"]
    if (metadata.get("annotations") or {}).get(_AUTOUPDATE, "true") != "true":
        return None
    if stored.get("roleRef") != wanted.get("roleRef"):
        return None
    updated: Object = {**deepcopy(dict(stored)), "metadata": deepcopy(dict(metadata))}
    for part in ("labels", "annotations"):
        updated["metadata"][part] = {**(wanted["metadata"].get(part) or {}), **(metadata.get(part) or {})}
    if "aggregationRule" in wanted:
        updated["aggregationRule"] = _with_selectors(stored, wanted)
    elif "rules" in wanted:
        updated["rules"] = _with_rules(stored, wanted)
    elif "roleRef" in wanted:
        had = stored.get("subjects") or []
        updated["subjects"] = [*had, *(s for s in wanted.get("subjects") or () if s not in had)]
    return None if _same(updated, stored) else updated


def _with_rules(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[Any]:
    had = stored.get("rules") or []
    held = [Rule.read(rule) for rule in had]
    return [*had, *(rule for rule in wanted["rules"] if missing(held, [Rule.read(rule)]))]


def _with_selectors(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> Object:
    had = (stored.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
    new = wanted["aggregationRule"]["clusterRoleSelectors"]
    return {"clusterRoleSelectors": [*had, *(selector for selector in new if selector not in had)]}


def _same(updated: Object, stored: Mapping[str, Any]) -> bool:
    """Apart from lists and maps that are empty in one and absent in the other."""
    absent = {key for key, value in updated.items() if not value and key not in stored}
    return {key: value for key, value in updated.items() if key not in absent} == stored


def _cluster_roles() -> Iterator[Object]:
    for name, part_of in AGGREGATES.items():
        role = _role(name, _gathered(name), labels=_gathered_by(part_of))
        role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": _gathered_by(name)}]}
        yield role
    for name, (part_of, rules) in PARTS.items():
        yield _role(name, rules, labels=_gathered_by(part_of))
    for name, rules in (*CLUSTER_ROLES.items(), *GUEST_ROLES.items()):
        yield _role(name, rules)
    for name, rules in (*CONTROLLERS.items(), *GUEST_CONTROLLERS.items()):
        yield _role(f"system:controller:{name}", rules)


def _cluster_bindings() -> Iterator[Object]:
    for name, (role, subjects) in (*CLUSTER_BINDINGS.items(), *GUEST_BINDINGS.items()):
        yield _binding(name, "ClusterRole", role, subjects)
    for name in (*CONTROLLERS, *GUEST_CONTROLLERS):
        role = f"system:controller:{name}"
        yield _binding(role, "ClusterRole", role, [Subject("ServiceAccount", name, SYSTEM_NAMESPACE)])


def _leader_election() -> Iterator[Object]:
    for name, (lock, holder) in _LEADERS.items():
        rules = (
            may("get watch", "configmaps"),
            may("get update", "configmaps", names=lock),
            may(f"create {READ}", "leases", COORDINATION),
            may("get update", "leases", COORDINATION, names=lock),
        )
        holders = [Subject("User", holder), Subject("ServiceAccount", lock, SYSTEM_NAMESPACE)]
        yield _role(name, rules, namespace=SYSTEM_NAMESPACE)
        yield _binding(name, "Role", name, holders, namespace=SYSTEM_NAMESPACE)


def _locals() -> Iterator[Object]:
    for one in GUEST_LOCALS:
        yield _role(one.name, one.rules, namespace=one.namespace)
        yield _binding(one.binding, "Role", one.name, one.subjects, namespace=one.namespace)


def _gathered(aggregate: str) -> list[Rule]:
    """What an aggregate holds at first, for people to read; the policy gathers anew (RBAC3)."""
    parts = {name: rules for name, (part_of, rules) in PARTS.items() if part_of == aggregate}
    inner = {name: tuple(_gathered(name)) for name, part_of in AGGREGATES.items() if part_of == aggregate}
    gathered = {**parts, **inner}
    return list(dict.fromkeys(rule for name in sorted(gathered) for rule in gathered[name]))


def _gathered_by(aggregate: str) -> dict[str, str]:
    return {f"rbac.authorization.k8s.io/aggregate-to-{aggregate}": "true"} if aggregate else {}


def _role(
    name: str, rules: Iterable[Rule], *, namespace: str = "", labels: Mapping[str, str] | None = None
) -> Object:
    return {
        "apiVersion": _API_VERSION,
        "kind": "Role" if namespace else "ClusterRole",
        "metadata": _metadata(name, namespace, labels or {}),
        "rules": [rule.fields() for rule in rules],
    }


def _binding(
    name: str, role_kind: str, role: str, subjects: Iterable[Subject], *, namespace: str = ""
) -> Object:
    binding: Object = {
        "apiVersion": _API_VERSION,
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": _metadata(name, namespace, {}),
        "roleRef": {"apiGroup": GROUP, "kind": role_kind, "name": role},
    }
    listed = [_subject(subject) for subject in subjects]
    return {**binding, "subjects": listed} if listed else binding


def _subject(subject: Subject) -> dict[str, str]:
    if subject.kind == "ServiceAccount":
        return {"kind": subject.kind, "name": subject.name, "namespace": subject.namespace}
    return {"apiGroup": GROUP, "kind": subject.kind, "name": subject.name}


def _metadata(name: str, namespace: str, labels: Mapping[str, str]) -> Object:
    metadata: Object = {"name": name, "labels": {**_LABELS, **labels}, "annotations": {_AUTOUPDATE: "true"}}
    return {**metadata, "namespace": namespace} if namespace else metadata
