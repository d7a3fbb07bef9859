"""Who is who: the names and groups that the system itself gives out.

Every component has a name of its own, and its rights come from roles bound to
that name (`bootstrap`), in process as over the wire. Nothing of ours is in
`system:masters`: that group is above every role and exists for the day when the
roles themselves are broken.
"""

from allot.api import User

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
NODES = "system:nodes"
SERVICE_ACCOUNTS = "system:serviceaccounts"
CLUSTER_ADMINS = "allot:cluster-admins"
"""Bound to the role cluster-admin at the first start; who deletes the binding ends those rights."""

ADMIN_NAME = "allot-admin"
SCHEDULER_NAME = "system:kube-scheduler"
CONTROLLER_MANAGER_NAME = "system:kube-controller-manager"
AUTOSCALER_NAME = "allot:autoscaler"
DASHBOARD_NAME = "allot:dashboard"
HOLLOW_NODES_NAME = "allot:hollow-nodes"
SYSTEM_NAMESPACE = "kube-system"

_NODE_PREFIX = "system:node:"
_SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"


def user(name: str, *groups: str) -> User:
    """An authenticated user."""
    return User(name, (*groups, AUTHENTICATED) if AUTHENTICATED not in groups else groups)


def service_account(namespace: str, name: str, uid: str = "") -> User:
    groups = service_account_groups(namespace)
    return User(f"{_SERVICE_ACCOUNT_PREFIX}{namespace}:{name}", (*groups, AUTHENTICATED), uid)


def service_account_groups(namespace: str) -> tuple[str, str]:
    return SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}"


def controller(name: str) -> User:
    """A control loop: the service account of that name in kube-system."""
    return service_account(SYSTEM_NAMESPACE, name)


def node(name: str) -> User:
    return user(f"{_NODE_PREFIX}{name}", NODES)


ADMIN = user(ADMIN_NAME, CLUSTER_ADMINS)
SCHEDULER = user(SCHEDULER_NAME)
CONTROLLER_MANAGER = user(CONTROLLER_MANAGER_NAME)
HOLLOW_NODES = user(HOLLOW_NODES_NAME)
AUTOSCALER = user(AUTOSCALER_NAME)


def well_known_groups(name: str) -> tuple[str, ...]:
    """The groups that a name implies, without system:authenticated."""
    if name == ADMIN_NAME:
        return (CLUSTER_ADMINS,)
    if name.startswith(_NODE_PREFIX):
        return (NODES,)
    found = service_account_of(name)
    return service_account_groups(found[0]) if found else ()


def node_of(user: User) -> str | None:
    """The node that the user speaks for, or None. It takes the name and the group."""
    if user.name.startswith(_NODE_PREFIX) and NODES in user.groups:
        return user.name[len(_NODE_PREFIX) :]
    return None


def node_serving_name(node: str) -> str:
    """The name on the certificate that a node's agent serves with: no other server has such a name."""
    return f"{node}.node.allot.dev"


def service_account_of(name: str) -> tuple[str, str] | None:
    """(namespace, name) of the service account that a user name stands for, or None."""
    if not name.startswith(_SERVICE_ACCOUNT_PREFIX):
        return None
    namespace, colon, account = name[len(_SERVICE_ACCOUNT_PREFIX) :].partition(":")
    return (namespace, account) if colon and namespace and account and ":" not in account else None
