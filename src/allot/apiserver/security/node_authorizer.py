"""What a node may do: reach what its own pods need, and keep its own objects.

Two halves keep a node to itself. This one looks at the request line alone: verb,
resource, name, field selector. What depends on the body of a write (whose pod,
which labels, which slice) is refused by `node_restriction`, so a yes here to a
create or a status update is only half a yes.
"""

from collections.abc import Callable, Mapping
from typing import Any

from allot.api import Action, Decision, User

from .bootstrap import NODE_RULES
from .identities import node_of
from .narrowing import wanted_value
from .node_graph import NodeGraph
from .pod_references import Ref

LEASE_NAMESPACE = "kube-node-lease"

_YES = Decision(True)
_NO = Decision(False)
_OWN_VERBS = frozenset(["get", "create", "update", "patch", "delete"])


def _no(reason: str) -> Decision:
    return Decision(False, reason)


class NodeAuthorizer:
    OBSERVED = (
        ("", "pods"),
        ("", "persistentvolumes"),
        ("resource.k8s.io", "resourceslices"),
        ("resource.k8s.io", "noderesourcecapacities"),
        ("storage.k8s.io", "volumeattachments"),
    )

    def __init__(self) -> None:
        self._graph = NodeGraph()

    def observe(
        self, group: str, resource: str, namespace: str, name: str, fields: Mapping[str, Any] | None
    ) -> None:
        self._graph.observe(group, resource, namespace, name, fields)

    def authorize(self, user: User, action: Action) -> Decision:
        """For anybody who is not a node this has no answer: it does not allow."""
        node = node_of(user)
        if node is None:
            return _NO
        if not node:
            return _no(f'unknown node for user "{user.name}"')
        decide = _BY_RESOURCE.get((action.group, action.resource))
        if decide is not None:
            return decide(self._graph, node, action)
        return _YES if any(rule.allows(action) for rule in NODE_RULES) else _NO


def _related(graph: NodeGraph, node: str, action: Action) -> Decision:
    if not action.name:
        return _no("No Object name found")
    if graph.reaches(node, Ref(action.resource, action.namespace, action.name)):
        return _YES
    return _no(f"no relationship found between node '{node}' and this object")


def _get(graph: NodeGraph, node: str, action: Action) -> Decision:
    if action.verb != "get":
        return _no("can only get individual resources of this type")
    if action.subresource:
        return _no("cannot get subresource")
    return _related(graph, node, action)


def _read(graph: NodeGraph, node: str, action: Action) -> Decision:
    """List and watch too, as long as they name one object."""
    if action.verb not in ("get", "list", "watch"):
        return _no("can only read resources of this type")
    if action.subresource:
        return _no("cannot read subresource")
    if not action.namespace:
        return _no("can only read namespaced object of this type")
    return _related(graph, node, action)


def _volume_claim(graph: NodeGraph, node: str, action: Action) -> Decision:
    if action.subresource != "status":
        return _get(graph, node, action)
    if action.verb not in ("update", "patch"):
        return _no("can only get/update/patch this type")
    return _related(graph, node, action)


def _service_account(graph: NodeGraph, node: str, action: Action) -> Decision:
    """Read the account of a pod of its own, or make a token for it."""
    if action.verb == "get" and not action.subresource:
        return _related(graph, node, action)
    if action.verb != "create" or not action.name:
        return _no("can only create tokens for individual service accounts")
    if action.subresource != "token":
        return _no("can only create token subresource of serviceaccount")
    return _related(graph, node, action)


def _lease(graph: NodeGraph, node: str, action: Action) -> Decision:
    if action.verb not in _OWN_VERBS:
        return _no("can only get, create, update, patch, or delete a node lease")
    if action.namespace != LEASE_NAMESPACE:
        return _no(f'can only access leases in the "{LEASE_NAMESPACE}" system namespace')
    if action.verb != "create" and action.name != node:
        return _no("can only access node lease with the same name as the requesting node")
    return _YES


def _csi_node(graph: NodeGraph, node: str, action: Action) -> Decision:
    if action.verb not in _OWN_VERBS:
        return _no("can only get, create, update, patch, or delete a CSINode")
    if action.subresource:
        return _no("cannot authorize CSINode subresources")
    if action.verb != "create" and action.name != node:
        return _no("can only access CSINode with the same name as the requesting node")
    return _YES


def _prepared(graph: NodeGraph, node: str, action: Action) -> Decision:
    """List and watch too, as long as they name the node's own."""
    if action.verb not in _OWN_VERBS | {"list", "watch"}:
        return _no("can only read, create, update, patch, or delete what the node has prepared")
    if action.verb != "create" and action.name != node:
        return _no("can only access PreparedClaims with the same name as the requesting node")
    return _YES


_NODE_FIELD = {"resourceslices": "spec.nodeName", "noderesourcecapacities": "nodeName"}


def _published(graph: NodeGraph, node: str, action: Action) -> Decision:
    """What a node publishes about its devices: only what says that it is of this node."""
    if action.subresource:
        return _no("cannot authorize ResourceSlice subresources")
    match action.verb:
        case "create":
            return _YES
        case "get" | "update" | "patch" | "delete":
            return _related(graph, node, action)
        case "list" | "watch" | "deletecollection":
            if wanted_value(action.field_selector, _NODE_FIELD[action.resource]) == node:
                return _YES
            return _no(f"can only list/watch/deletecollection {action.resource} with nodeName field selector")
    return _no(
        "only the following verbs are allowed for a ResourceSlice:"
        " get, watch, list, create, update, patch, delete, deletecollection"
    )


def _node(graph: NodeGraph, node: str, action: Action) -> Decision:
    """Its own Node object, which need not exist yet."""
    match action.subresource, action.verb:
        case "", "create" | "update" | "patch":
            return _YES
        case "status", "update" | "patch":
            return _YES
        case "", "get" | "list" | "watch":
            if action.name == node:
                return _YES
            what = f"'{action.name}'" if action.name else "all nodes"
            return _no(f"node '{node}' cannot read {what}, only its own Node object")
    return _NO


def _pod(graph: NodeGraph, node: str, action: Action) -> Decision:
    match action.subresource, action.verb:
        case "", "get":
            return _related(graph, node, action)
        case "", "list" | "watch":
            if wanted_value(action.field_selector, "spec.nodeName") == node:
                return _YES
            if action.name:
                return _related(graph, node, action)
            return _no("can only list/watch pods with spec.nodeName field selector")
        case ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create"):
            return _YES
    return _NO


_BY_RESOURCE: Mapping[tuple[str, str], Callable[[NodeGraph, str, Action], Decision]] = {
    ("", "secrets"): _read,
    ("", "configmaps"): _read,
    ("", "persistentvolumeclaims"): _volume_claim,
    ("", "persistentvolumes"): _get,
    ("resource.k8s.io", "resourceclaims"): _get,
    ("storage.k8s.io", "volumeattachments"): _get,
    ("", "serviceaccounts"): _service_account,
    ("coordination.k8s.io", "leases"): _lease,
    ("storage.k8s.io", "csinodes"): _csi_node,
    ("resource.k8s.io", "resourceslices"): _published,
    ("resource.k8s.io", "noderesourcecapacities"): _published,
    ("node.allot.dev", "preparedclaims"): _prepared,
    ("", "nodes"): _node,
    ("", "pods"): _pod,
}
