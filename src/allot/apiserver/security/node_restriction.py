"""What a node may write, once the content of the write is known.

`node_authorizer` has let the request line pass; here every write of a node is
held against the object: its own Node without the labels and taints that would
draw other people's pods to it, its own pods and nothing a pod refers to, its own
slices in pools of its own, prepared claims, lease and CSINode, tokens for its own pods.

`refuse_node` is asked after defaulting and before storing, for each object that
a write touches (also for each one of a deletecollection).
"""

from collections.abc import Collection, Mapping
from typing import Any

from allot.api import Action, User, errors

from . import pod_references
from .identities import node_of
from .node_authorizer import LEASE_NAMESPACE
from .node_graph import node_named_by
from .pod_references import MIRROR_ANNOTATION
from .tokens import Lookup

Fields = Mapping[str, Any]

_OPERATIONS = {"create": "CREATE", "update": "UPDATE", "patch": "UPDATE", "delete": "DELETE"}

_KUBELET_LABELS = frozenset(
    [
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
    ]
)
_KUBELET_LABEL_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")

_UNTOUCHED_STATUS = {
    "resourceClaimStatuses": "resource claim statuses",
    "extendedResourceClaimStatus": "extended resource claim status",
    "nodeAllocatableResourceClaimStatuses": "node allocatable resource claim statuses",
}
"""What the scheduler and the claim controller write on pods: field -> how we call it."""


class _No(Exception):
    """Why the write is refused."""


def refuse_node(
    user: User, action: Action, new: Fields | None, old: Fields | None, lookup: Lookup
) -> errors.ApiError | None:
    """Why this write of a node may not happen, or None. Users that are no nodes may pass.

    `new` is what would be stored (for a subresource such as token or eviction: what
    was posted); `old` is what is stored.
    """
    node = node_of(user)
    operation = _OPERATIONS.get("delete" if action.verb == "deletecollection" else action.verb)
    if node is None or operation is None:
        return None
    name = action.name or _metadata(new or old or {}).get("name", "")
    try:
        if not node:
            raise _No(f'could not determine node from user "{user.name}"')
        _check(node, action, operation, name, new or {}, old or {}, lookup)
    except _No as no:
        what = f"{action.resource}.{action.group}" if action.group else action.resource
        return errors.Forbidden(
            f'{what} "{name}" is forbidden: {no}', group=action.group, kind=action.resource, name=name
        )
    except errors.ApiError as error:
        return error
    return None


def _check(
    node: str, action: Action, operation: str, name: str, new: Fields, old: Fields, lookup: Lookup
) -> None:
    match action.group, action.resource, action.subresource:
        case "", "pods", "":
            _check_pod(node, operation, new, old, lookup)
        case "", "pods", "status":
            _check_pod_status(node, operation, new, old)
        case "", "pods", "eviction":
            _check_eviction(node, operation, _found(lookup, "pods", action.namespace, name))
        case "", "pods", subresource:
            raise _No(
                f"unexpected pod subresource \"{subresource}\", only 'status' and 'eviction' are allowed"
            )
        case "", "nodes", _:
            _check_node(node, operation, name, new, old)
        case "", "persistentvolumeclaims", subresource:
            _check_volume_claim(node, subresource, operation, new, old)
        case "", "serviceaccounts", "token":
            _check_token(node, action.namespace, new, lookup)
        case "coordination.k8s.io", "leases", _:
            if action.namespace != LEASE_NAMESPACE:
                raise _No(f'can only access leases in the "{LEASE_NAMESPACE}" system namespace')
            if name != node:
                raise _No("can only access node lease with the same name as the requesting node")
        case "storage.k8s.io", "csinodes", _:
            if name != node:
                raise _No("can only access CSINode with the same name as the requesting node")
        case "node.allot.dev", "preparedclaims", _:
            if name != node:
                raise _No("can only access PreparedClaims with the same name as the requesting node")
        case "resource.k8s.io", "resourceslices" | "noderesourcecapacities", _:
            _check_published(node, action.resource, operation, new, old)


def _check_pod(node: str, operation: str, new: Fields, old: Fields, lookup: Lookup) -> None:
    if operation == "CREATE":
        _check_mirror_pod(node, new, lookup)
    elif operation != "DELETE":
        raise _No(f'unexpected operation "{operation}", node "{node}" can only create and delete mirror pods')
    elif _spec(old).get("nodeName") != node:
        raise _No(f'node "{node}" can only delete pods with spec.nodeName set to itself')


def _check_mirror_pod(node: str, pod: Fields, lookup: Lookup) -> None:
    """A pod that a node makes up may use nothing that belongs to others."""
    if MIRROR_ANNOTATION not in (_metadata(pod).get("annotations") or {}):
        raise _No(
            f'pod does not have "{MIRROR_ANNOTATION}" annotation, node "{node}" can only create mirror pods'
        )
    if _spec(pod).get("nodeName") != node:
        raise _No(f'node "{node}" can only create pods with spec.nodeName set to itself')
    _check_owner(node, _metadata(pod).get("ownerReferences") or [], lookup)
    if pod_references.service_account(pod):
        raise _No(f'node "{node}" can not create pods that reference a service account')
    claims = (_spec(pod).get("resourceClaims"), *pod_references.resource_claims(pod))
    for named, what in (
        (any(pod_references.secrets(pod)), "secrets"),
        (any(pod_references.config_maps(pod)), "configmaps"),
        (pod_references.names_trust_bundles(pod), "clustertrustbundles"),
        (any(pod_references.volume_claims(pod)), "persistentvolumeclaims"),
        (any(claims), "resourceclaims"),
    ):
        if named:
            raise _No(f'node "{node}" can not create pods that reference {what}')


def _check_owner(node: str, owners: list[Fields], lookup: Lookup) -> None:
    itself = f'node "{node}" can only create pods with'
    if len(owners) > 1:
        raise _No(f"{itself} a single owner reference set to itself")
    owner = owners[0] if owners else {}
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
        raise _No(f"{itself} an owner reference set to itself")
    if not owner.get("controller"):
        raise _No(f"{itself} a controller owner reference set to itself")
    if owner.get("blockOwnerDeletion"):
        raise _No(f'node "{node}" must not set blockOwnerDeletion on an owner reference')
    uid = _metadata(_found(lookup, "nodes", "", node)).get("uid")
    if owner.get("uid") != uid:
        raise _No(f"node {node} UID mismatch: expected {owner.get('uid')} got {uid}")


def _check_pod_status(node: str, operation: str, new: Fields, old: Fields) -> None:
    if operation != "UPDATE":
        raise _No(f'unexpected operation "{operation}"')
    if _spec(old).get("nodeName") != node:
        raise _No(f'node "{node}" can only update pod status for pods with spec.nodeName set to itself')
    if (_metadata(old).get("labels") or {}) != (_metadata(new).get("labels") or {}):
        raise _No(f'node "{node}" cannot update labels through pod status')
    for part, called in _UNTOUCHED_STATUS.items():
        if (_status(old).get(part) or None) != (_status(new).get(part) or None):
            raise _No(f'node "{node}" cannot update {called}')


def _check_eviction(node: str, operation: str, pod: Fields) -> None:
    if operation != "CREATE":
        raise _No(f"unexpected operation {operation}")
    if _spec(pod).get("nodeName") != node:
        raise _No(f"node {node} can only evict pods with spec.nodeName set to itself")


def _check_node(node: str, operation: str, name: str, new: Fields, old: Fields) -> None:
    if name != node:
        raise _No(f'node "{node}" is not allowed to modify node "{name}"')
    if operation == "DELETE":
        return
    source = _spec(new).get("configSource")
    if operation == "CREATE":
        if source is not None:
            raise _No(f'node "{node}" is not allowed to create pods with a non-nil configSource')
        forbidden = _forbidden_labels(new, {})
        if forbidden:
            raise _No(f'node "{node}" is not allowed to set the following labels: {", ".join(forbidden)}')
        return
    if source is not None and source != _spec(old).get("configSource"):
        raise _No(f'node "{node}" is not allowed to update configSource to a new non-nil configSource')
    if (_spec(new).get("taints") or []) != (_spec(old).get("taints") or []):
        raise _No(f'node "{node}" is not allowed to modify taints')
    forbidden = _forbidden_labels(new, old)
    if forbidden:
        raise _No(f"is not allowed to modify labels: {', '.join(forbidden)}")
    if (_metadata(new).get("ownerReferences") or []) != (_metadata(old).get("ownerReferences") or []):
        # With an owner that does not exist the garbage collector would delete the node,
        # and the node could come back with other taints and labels.
        raise _No(f'node "{node}" is not allowed to modify ownerReferences')


def _forbidden_labels(new: Fields, old: Fields) -> list[str]:
    after, before = _metadata(new).get("labels") or {}, _metadata(old).get("labels") or {}
    changed = {key for key in {*after, *before} if after.get(key) != before.get(key)}
    return sorted(key for key in changed if not _may_set_label(key))


def _may_set_label(key: str) -> bool:
    """Anything outside Kubernetes' own domains, and there what an agent knows of itself. In
    particular nothing under node-restriction.kubernetes.io, which exists to be trusted.
    """
    domain = key.partition("/")[0] if "/" in key else ""
    if not (_is_within(domain, "kubernetes.io") or _is_within(domain, "k8s.io")):
        return True
    return key in _KUBELET_LABELS or any(_is_within(domain, known) for known in _KUBELET_LABEL_DOMAINS)


def _is_within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")


def _check_volume_claim(node: str, subresource: str, operation: str, new: Fields, old: Fields) -> None:
    if subresource != "status":
        raise _No("may only update PVC status")
    if operation != "UPDATE":
        raise _No(f'unexpected operation "{operation}"')
    if _without_resizing(new) != _without_resizing(old):
        raise _No(
            f'node "{node}" is not allowed to update fields other than status.capacity and status.conditions'
        )


def _without_resizing(claim: Fields) -> dict[str, Any]:
    resizing = ("capacity", "conditions", "allocatedResources", "allocatedResourceStatuses")
    server = ("resourceVersion", "managedFields")
    metadata = {key: value for key, value in _metadata(claim).items() if key not in server}
    status = {key: value for key, value in _status(claim).items() if key not in resizing}
    return {**claim, "metadata": metadata, "status": status}


def _check_token(node: str, namespace: str, request: Fields, lookup: Lookup) -> None:
    """Only for a pod of its own, and only for audiences that the pod mounts."""
    spec = _spec(request)
    ref = spec.get("boundObjectRef") or {}
    if (ref.get("apiVersion"), ref.get("kind")) != ("v1", "Pod") or not ref.get("name"):
        raise _No("node requested token not bound to a pod")
    if not ref.get("uid"):
        raise _No("node requested token with a pod binding without a uid")
    pod = _found(lookup, "pods", namespace, ref["name"])
    if ref["uid"] != _metadata(pod).get("uid"):
        raise _No(
            f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record."
            " The object might have been deleted and then recreated"
        )
    if _spec(pod).get("nodeName") != node:
        raise _No("node requested token bound to a pod scheduled on a different node")
    mounted = {"", *pod_references.token_audiences(pod)}
    for audience in spec.get("audiences") or ():
        if audience not in mounted:
            raise _No(f'audience "{audience}" not found in pod spec volume')


def _check_published(node: str, resource: str, operation: str, new: Fields, old: Fields) -> None:
    """Every side of a write that exists must be of this node, so that nothing moves in or out."""
    sides = {"CREATE": [new], "UPDATE": [new, old], "DELETE": [old]}[operation]
    if any(node_named_by(resource, side) != node for side in sides):
        verb = operation.lower()
        raise _No(f"can only {verb} ResourceSlice with the same NodeName as the requesting node")


def owner_of_pool(node: str, pool: str, publishers: Collection[str], lookup: Lookup) -> str | None:
    """Who keeps `node` from publishing in the pool, or None.

    A newer generation outdates every slice of its pool, so a node must not write into a pool of others.
    A pool that bears the name of a node (or begins with it and a slash) is that node's, so that nobody can
    be there before it. Any other is theirs whose slices make it up: nodes, or, for devices of the network,
    no node at all.
    """
    named = pool.partition("/")[0]
    if named == node:
        return None
    if lookup("nodes", "", named) is not None:
        return f'node "{named}"'
    others = sorted(set(publishers) - {node})
    if not others:
        return None
    return f'node "{others[-1]}"' if others[-1] else "a driver, and to no node"


def _found(lookup: Lookup, resource: str, namespace: str, name: str) -> Fields:
    found = lookup(resource, namespace, name)
    if found is None:
        raise errors.NotFound(f'{resource} "{name}" not found', kind=resource, name=name)
    return found


def _metadata(fields: Fields) -> Fields:
    return fields.get("metadata") or {}


def _spec(fields: Fields) -> Fields:
    return fields.get("spec") or {}


def _status(fields: Fields) -> Fields:
    return fields.get("status") or {}
