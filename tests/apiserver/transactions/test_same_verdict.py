"""A request in a transaction is decided as it would be alone: nobody gains or loses a right by it."""

from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allot.api import User
from allot.api.transaction import PATH

from ..conftest import Api

MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
CORE, CLAIMS = "/api/v1/namespaces/default", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
ROLES = (
    "cluster-admin", "admin", "edit", "view", "system:kube-scheduler", "system:node", "allot:driver",
    "allot:hollow-nodes", "system:controller:resource-claim-controller", "system:basic-user", "none",
)  # fmt: skip
POD = {"metadata": {"name": "new"}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}
ASKS = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
ADMIN = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": True}}]}}
ROLE = {"metadata": {"name": "all"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
REQUESTS = {
    "create a config map": ("POST", f"{CORE}/configmaps", "", {"metadata": {"name": "new"}}),
    "create one elsewhere": (
        "POST",
        "/api/v1/namespaces/kube-system/configmaps",
        "",
        {"metadata": {"name": "n"}},
    ),
    "create nonsense": ("POST", f"{CORE}/configmaps", "", {"metadata": {"name": "NOT A NAME"}}),
    "create a secret": ("POST", f"{CORE}/secrets", "", {"metadata": {"name": "new"}}),
    "create what is there": ("POST", f"{CORE}/configmaps", "", {"metadata": {"name": "there"}}),
    "update a config map": ("PUT", f"{CORE}/configmaps/there", "", {"metadata": {"name": "there"}}),
    "update what is not there": ("PUT", f"{CORE}/configmaps/away", "", {"metadata": {"name": "away"}}),
    "patch a config map": ("PATCH", f"{CORE}/configmaps/there", MERGE, {"data": {"x": "1"}}),
    "apply a new one": (
        "PATCH",
        f"{CORE}/configmaps/new?fieldManager=me",
        APPLY,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}},
    ),
    "delete a config map": ("DELETE", f"{CORE}/configmaps/there", "", None),
    "create a pod": ("POST", f"{CORE}/pods", "", POD),
    "label a pod": ("PATCH", f"{CORE}/pods/there", MERGE, {"metadata": {"labels": {"a": "b"}}}),
    "a pod's status": ("PATCH", f"{CORE}/pods/there/status", MERGE, {"status": {"phase": "Running"}}),
    "bind a pod": ("POST", f"{CORE}/pods/there/binding", "", {"target": {"name": "node-1"}}),
    "evict a pod": (
        "POST",
        f"{CORE}/pods/there/eviction",
        "",
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "there"}},
    ),
    "create a claim": ("POST", CLAIMS, "", {"metadata": {"name": "new"}, "spec": ASKS}),
    "create an admin's claim": ("POST", CLAIMS, "", {"metadata": {"name": "new"}, "spec": ADMIN}),
    "a claim's status": ("PATCH", f"{CLAIMS}/there/status", MERGE, {"status": {"reservedFor": []}}),
    "a claim's finalizer": ("PATCH", f"{CLAIMS}/there", MERGE, {"metadata": {"finalizers": ["a.b/c"]}}),
    "label a node": ("PATCH", "/api/v1/nodes/node-1", MERGE, {"metadata": {"labels": {"a": "b"}}}),
    "publish a slice": (
        "POST",
        "/apis/resource.k8s.io/v1/resourceslices",
        "",
        {
            "metadata": {"name": "s"},
            "spec": {
                "driver": "d.example",
                "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
                "nodeName": "node-1",
                "devices": [],
            },
        },
    ),
    "a role with every right": (
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
        "",
        ROLE,
    ),
    "a namespace": ("POST", "/api/v1/namespaces", "", {"metadata": {"name": "new"}}),
    "delete kube-system": ("DELETE", "/api/v1/namespaces/kube-system", "", None),
}

SECRETS = f"{CORE}/secrets"
READ = {
    "a config map": f"{CORE}/configmaps/there",
    "one that is not there": f"{CORE}/configmaps/away",
    "one elsewhere": "/api/v1/namespaces/kube-system/configmaps/away",
    "a secret": f"{SECRETS}/there",
    "a secret that is not there": f"{SECRETS}/away",
    "a pod": f"{CORE}/pods/there",
    "a claim": f"{CLAIMS}/there",
    "a node": "/api/v1/nodes/node-1",
    "another node": "/api/v1/nodes/node-2",
    "a role": "/apis/rbac.authorization.k8s.io/v1/clusterroles/view",
}


@pytest.fixture(scope="module")
def peopled():
    """A server with one object of each kind, and a user for every role."""
    api = Api()
    api("POST", "/api/v1/nodes", {"metadata": {"name": "node-1"}})
    api("POST", f"{CORE}/configmaps", {"metadata": {"name": "there"}})
    api("POST", SECRETS, {"metadata": {"name": "there"}})
    api("POST", f"{CORE}/pods", {**POD, "metadata": {"name": "there"}})
    api("POST", CLAIMS, {"metadata": {"name": "there"}, "spec": ASKS})
    for role in ROLES[:-1]:
        binding = {
            "metadata": {"name": f"test-{role.replace(':', '-')}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": f"user of {role}"}
            ],
        }
        made = api("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
        assert made.status == 201, made.body
    yield api
    api.close()


def user_of(role):
    if role == "system:node":  # with what the node authorizer and its restriction add
        return User("system:node:node-1", groups=("system:nodes", "system:authenticated"))
    return User(f"user of {role}", groups=("system:authenticated",))


def alone(api, user, method, path, media, body):
    plain, _, query = path.partition("?")
    asked = dict(one.split("=") for one in query.split("&")) if query else {}
    answer = api(method, plain, body, user=user, media=media or "application/json", dryRun="All", **asked)
    return verdict(answer)


def in_transaction(api, user, method, path, media, body):
    member = {"method": method, "path": path, "contentType": media or "application/json"}
    member |= {} if body is None else {"body": body}
    answer = api("POST", PATH, {"spec": {"requests": [member]}}, user=user, dryRun="All")
    if answer.status == 201:
        return answer.body["status"]["results"][0]["code"], "", ""
    return verdict(answer)


def verdict(answer):
    if answer.status < 300:
        return answer.status, "", ""
    said = answer.body["message"].removeprefix("spec.requests[0]: ")
    return answer.status, answer.body.get("reason", ""), said


@pytest.mark.parametrize(("role", "request_name"), product(ROLES, REQUESTS))
def test_every_role_gets_the_same_verdict_alone_and_in_a_transaction(peopled, role, request_name):
    user, request = user_of(role), REQUESTS[request_name]
    assert in_transaction(peopled, user, *request) == alone(peopled, user, *request)


def test_the_table_has_both_yes_and_no_for_every_request(peopled):
    """Else it would prove nothing."""
    for name, request in REQUESTS.items():
        seen = {alone(peopled, user_of(role), *request)[0] for role in ROLES}
        assert 403 in seen or name == "delete kube-system", (name, seen)
        assert len(seen) > 1 or name == "delete kube-system", (name, seen)


def expecting(api, user, path, said):
    """The verdict on a member that expects, whatever becomes of the write behind it."""
    write = {"method": "POST", "path": f"{CORE}/configmaps", "body": {"metadata": {"name": "new"}}}
    members = [{"method": "GET", "path": path, "expect": said}, write]
    answer = api("POST", PATH, {"spec": {"requests": members}}, user=user, dryRun="All")
    is_other = answer.status == 201 or answer.body["message"].startswith("spec.requests[1]: ")
    return (200, "", "") if is_other else verdict(answer)


@pytest.mark.parametrize(("role", "name"), product(ROLES, READ))
def test_every_role_may_expect_something_of_what_it_may_read_and_of_nothing_else(peopled, role, name):
    """Who may not read an object learns nothing of it by guesses: not its version, nor whether it exists."""
    user, path = user_of(role), READ[name]
    read, true = peopled("GET", path, user=user), peopled("GET", path)
    if true.status == 404:
        right, wrong = "absent", "1"
    else:
        right, wrong = true.body["metadata"]["resourceVersion"], "absent"
    if read.status == 403:
        refused = verdict(read)
        assert expecting(peopled, user, path, right) == expecting(peopled, user, path, wrong) == refused
    else:
        assert expecting(peopled, user, path, right)[0] == 200
        assert expecting(peopled, user, path, wrong)[0] == 409


def test_the_table_of_what_is_expected_has_both_yes_and_no(peopled):
    for name, path in READ.items():
        seen = {peopled("GET", path, user=user_of(role)).status for role in ROLES}
        assert 403 in seen and seen & {200, 404}, (name, seen)


# -- in order, and all or none ------------------------------------------------------------------------

NAMES = st.sampled_from("ab")
VALUES = st.sampled_from("12")


def config(name, value):
    return {"metadata": {"name": name}, "data": {"x": value}}


MEMBERS = st.one_of(
    st.builds(lambda name, value: ("POST", f"{CORE}/configmaps", "", config(name, value)), NAMES, VALUES),
    st.builds(
        lambda name, value: ("PUT", f"{CORE}/configmaps/{name}", "", config(name, value)), NAMES, VALUES
    ),
    st.builds(
        lambda name, value: ("PATCH", f"{CORE}/configmaps/{name}", MERGE, {"data": {"y": value}}),
        NAMES,
        VALUES,
    ),
    st.builds(
        lambda name, value: (
            "PATCH",
            f"{CORE}/configmaps/{name}?fieldManager=m{value}",
            APPLY,
            {"apiVersion": "v1", "kind": "ConfigMap", **config(name, value)},
        ),
        NAMES,
        VALUES,
    ),
    st.builds(lambda name: ("DELETE", f"{CORE}/configmaps/{name}", "", None), NAMES),
    st.builds(
        lambda name: (
            "PATCH",
            f"{CORE}/configmaps/{name}",
            MERGE,
            {"metadata": {"finalizers": ["example.com/held"]}},
        ),
        NAMES,
    ),
)


def bare(body):
    """An object without what differs from one life to the next."""
    metadata = {
        key: value
        for key, value in body["metadata"].items()
        if key not in ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "managedFields")
    }
    managed = [
        {key: value for key, value in one.items() if key != "time"}
        for one in body["metadata"].get("managedFields", [])
    ]
    return {**body, "metadata": {**metadata, "managed": managed}}


def everything(api):
    return [bare(one) for one in api("GET", f"{CORE}/configmaps").body["items"]]


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(before=st.lists(MEMBERS, max_size=3), members=st.lists(MEMBERS, min_size=1, max_size=5))
def test_members_do_in_order_what_the_same_requests_do_one_by_one(before, members):
    one_by_one, together = Api(), Api()
    try:
        for api in (one_by_one, together):
            for method, path, media, body in before:
                send(api, method, path, media, body)
        at_first = everything(together)
        results = []
        for member in members:
            results.append(send(one_by_one, *member))
            if results[-1].status >= 300:
                break
        documents = [
            {"method": m, "path": p, "contentType": media or "application/json"} | ({"body": b} if b else {})
            for m, p, media, b in members
        ]
        done = together("POST", PATH, {"spec": {"requests": documents}})
        if done.status == 400 and "created anew" in done.body["message"]:
            assert everything(together) == at_first
            return
        last = results[-1]
        if last.status >= 300:
            assert (done.status, done.body["reason"]) == (last.status, last.body["reason"])
            assert done.body["message"].startswith(f"spec.requests[{len(results) - 1}]: ")
            assert everything(together) == at_first
            return
        assert done.status == 201, done.body
        assert [one["code"] for one in done.body["status"]["results"]] == [one.status for one in results]
        assert everything(together) == everything(one_by_one)
    finally:
        one_by_one.close()
        together.close()


def send(api, method, path, media, body):
    plain, _, query = path.partition("?")
    asked = dict(one.split("=") for one in query.split("&")) if query else {}
    return api(method, plain, body, media=media or "application/json", **asked)
