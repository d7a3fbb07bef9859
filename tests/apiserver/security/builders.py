"""Roles and bindings as API objects, with defaults for everything."""

GROUP = "rbac.authorization.k8s.io"


def role(name, rules, namespace="", labels=None, gathers=None):
    fields = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Role" if namespace else "ClusterRole",
        "metadata": {"name": name, "labels": labels or {}},
        "rules": rules,
    }
    if namespace:
        fields["metadata"]["namespace"] = namespace
    if gathers:
        fields["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": gathers}]}
    return fields


def binding(name, role_kind, role_name, subjects, namespace=""):
    fields = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": role_kind, "name": role_name},
        "subjects": [subject(*parts) for parts in subjects],
    }
    if namespace:
        fields["metadata"]["namespace"] = namespace
    return fields


def subject(kind, name, namespace=""):
    if kind == "ServiceAccount":
        return {"kind": kind, "name": name, **({"namespace": namespace} if namespace else {})}
    return {"kind": kind, "name": name, "apiGroup": GROUP}
