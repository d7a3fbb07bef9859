"""Roles and bindings in one transaction: nobody gives away more than by the same requests one by one."""

import pytest

from allot.api import User
from allot.api.transaction import PATH

from ..conftest import Api

GROUP = "rbac.authorization.k8s.io"
INSIDE = f"/apis/{GROUP}/v1/namespaces/default"
CLUSTER = f"/apis/{GROUP}/v1"
ANN = User("ann", groups=("system:authenticated",))
BOB = User("bob", groups=("system:authenticated",))

PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
SECRETS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["secrets"]}
WRITE = {
    "verbs": ["create", "update", "patch", "delete"],
    "apiGroups": [GROUP],
    "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
}
GATHERED = {"test/gathered": "yes"}


def may(verb):
    return {"verbs": [verb], "apiGroups": [GROUP], "resources": ["roles", "clusterroles"]}


def role(name, *rules, labels=None):
    return {"metadata": {"name": name, "labels": labels or {}}, "rules": list(rules)}


def gathers(name):
    return {**role(name), "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": GATHERED}]}}


def binding(kind, name, user="bob"):
    return {
        "metadata": {"name": f"{user}-{name}"},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": user}],
    }


def make_role(name, *rules):
    return "POST", f"{INSIDE}/roles", role(name, *rules)


def make_cluster_role(name, *rules, labels=None):
    return "POST", f"{CLUSTER}/clusterroles", role(name, *rules, labels=labels)


def change_role(name, *rules):
    return "PUT", f"{INSIDE}/roles/{name}", role(name, *rules)


def bind(kind, name, user="bob"):
    return "POST", f"{INSIDE}/rolebindings", binding(kind, name, user)


def bind_everywhere(name):
    return "POST", f"{CLUSTER}/clusterrolebindings", binding("ClusterRole", name)


# what ann holds | what is there before | what she sends | which is refused, and how
STORIES = {
    "a role that she holds": ([PODS], [], [make_role("r", PODS), bind("Role", "r")], None),
    "a cluster role that she holds": (
        [PODS],
        [],
        [make_cluster_role("r", PODS), bind("ClusterRole", "r"), bind_everywhere("r")],
        None,
    ),
    "a role that she does not hold": (
        [PODS],
        [],
        [make_role("r", SECRETS), bind("Role", "r")],
        (0, "Forbidden"),
    ),
    "bind alone makes no role": (
        [may("bind")],
        [],
        [make_role("r", SECRETS), bind("Role", "r")],
        (0, "Forbidden"),
    ),
    "escalate alone binds no role": (
        [may("escalate")],
        [],
        [make_role("r", SECRETS), bind("Role", "r")],
        (1, "Forbidden"),
    ),
    "escalate and bind": (
        [may("escalate"), may("bind")],
        [],
        [make_role("r", SECRETS), bind("Role", "r")],
        None,
    ),
    "a role is raised, then bound": (
        [PODS, may("escalate")],
        [make_role("r", PODS)],
        [change_role("r", PODS, SECRETS), bind("Role", "r")],
        (1, "Forbidden"),
    ),
    "a role is raised twice, then bound": (
        [PODS, may("escalate")],
        [make_role("r", PODS)],
        [change_role("r", PODS), change_role("r", SECRETS), bind("Role", "r")],
        (2, "Forbidden"),
    ),
    "a role is lowered, then bound": (
        [PODS],
        [make_role("r", PODS, SECRETS)],
        [change_role("r", PODS), bind("Role", "r")],
        None,
    ),
    "a role is deleted, then bound": (
        [PODS],
        [make_role("r", PODS)],
        [("DELETE", f"{INSIDE}/roles/r", None), bind("Role", "r")],
        (1, "NotFound"),
    ),
    "what an aggregate gathers is raised, then it is bound": (
        [PODS, may("escalate")],
        [("POST", f"{CLUSTER}/clusterroles", gathers("all")), make_cluster_role("a", PODS, labels=GATHERED)],
        [make_cluster_role("b", SECRETS, labels=GATHERED), bind("ClusterRole", "all")],
        (1, "Forbidden"),
    ),
    "an aggregate gathers what she holds": (
        [PODS],
        [("POST", f"{CLUSTER}/clusterroles", gathers("all"))],
        [make_cluster_role("a", PODS, labels=GATHERED), bind("ClusterRole", "all")],
        None,
    ),
    "a role of another namespace": (
        [PODS],
        [("POST", f"/apis/{GROUP}/v1/namespaces/kube-public/roles", role("r", PODS))],
        [make_role("other", PODS), bind("Role", "r")],
        (1, "NotFound"),
    ),
    "a binding before its role": (
        [PODS],
        [],
        [bind("Role", "r"), make_role("r", PODS)],
        (0, "NotFound"),
    ),
}


def world(held, before):
    """A server on which ann writes roles and bindings, and holds so much."""
    api = Api()
    for method, path, body in (
        ("POST", f"{CLUSTER}/clusterroles", role("of-ann", WRITE, *held)),
        ("POST", f"{CLUSTER}/clusterrolebindings", binding("ClusterRole", "of-ann", "ann")),
        *before,
    ):
        assert api(method, path, body).status == 201
    return api


def send(api, members, user=ANN):
    requests = [{"method": method, "path": path, "body": body} for method, path, body in members]
    return api("POST", PATH, {"spec": {"requests": requests}}, user=user)


def one_by_one(api, members):
    """The first that is refused."""
    for index, (method, path, body) in enumerate(members):
        answer = api(method, path, body, user=ANN)
        if answer.status >= 300:
            return index, answer.body["reason"], answer.body["message"]
    return None


@pytest.mark.parametrize("story", STORIES)
def test_a_transaction_grants_what_its_requests_grant_one_by_one_and_no_more(story):
    held, before, members, refused = STORIES[story]
    alone, together = world(held, before), world(held, before)
    try:
        expected = one_by_one(alone, members)
        assert (expected and expected[:2]) == refused
        done = send(together, members)
        if refused is None:
            assert done.status == 201, done.body
            return
        index, reason, message = expected
        assert done.body["reason"] == reason and done.causes[0][0] == f"spec.requests[{index}]"
        assert done.body["message"] == f"spec.requests[{index}]: {message}"
    finally:
        alone.close()
        together.close()


def test_who_is_bound_has_the_rights_from_the_commit_on_and_not_before():
    api = world([PODS], [])
    pods = "/api/v1/namespaces/default/pods"
    secrets = "/api/v1/namespaces/default/secrets"
    try:
        assert api("GET", pods, user=BOB).status == 403
        assert send(api, [make_role("r", PODS), bind("Role", "r")]).status == 201
        assert api("GET", pods, user=BOB).status == 200
        assert api("GET", secrets, user=BOB).status == 403
    finally:
        api.close()


def test_a_right_that_is_given_in_a_transaction_is_not_used_in_it():
    """ann may bind and escalate whatever she likes, and still acts by the rights that she came with."""
    api = world([may("escalate"), may("bind")], [])
    write = {"verbs": ["create"], "apiGroups": [""], "resources": ["configmaps"]}
    grant = [make_role("r", write), bind("Role", "r", "ann")]
    use = ("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
    try:
        done = send(api, [*grant, use])
        assert done.status == 403 and done.causes[0][0] == "spec.requests[2]"
        assert send(api, grant).status == 201 and send(api, [use]).status == 201
    finally:
        api.close()
