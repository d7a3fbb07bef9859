"""The object and its status in one member of a transaction, which does just what two would."""

import json
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allot.api import User
from allot.api.transaction import PATH

from ..conftest import Api
from .test_same_verdict import ASKS, CLAIMS, CORE, MERGE, POD, ROLES, bare, peopled, user_of, verdict

__all__ = ["peopled"]  # a fixture

STRATEGIC = "application/strategic-merge-patch+json"
RESERVED = [{"resource": "pods", "name": "p", "uid": "u"}]
SIDES = ("this", "that")
SLICE = {
    "metadata": {"name": "s"},
    "spec": {
        "driver": "d.example",
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n",
        "devices": [{"name": side} for side in SIDES],
    },
}
GIVEN = {"devices": {"results": [{"request": "r", "driver": "d.example", "pool": "n", "device": "this"}]}}


def sent(api, *members, **more):
    return api("POST", PATH, {"spec": {"requests": list(members)}}, **more)


def both(path, body, media=MERGE):
    return {"method": "PATCH", "path": path, "contentType": media, "body": body, "with": "status"}


def apart(path, body, media=MERGE):
    """The same as two members."""
    metadata, status = {"metadata": body.get("metadata", {})}, {"status": body.get("status", {})}
    plain, _, query = path.partition("?")
    query = query and f"?{query}"
    return [
        {"method": "PATCH", "path": f"{plain}{query}", "contentType": media, "body": metadata},
        {"method": "PATCH", "path": f"{plain}/status{query}", "contentType": media, "body": status},
    ]


@pytest.fixture(scope="module")
def server():
    api = Api()
    api("POST", "/apis/resource.k8s.io/v1/resourceslices", SLICE)
    yield api
    api.close()


METADATA = st.sampled_from(
    [
        {},
        {"finalizers": ["resource.kubernetes.io/delete-protection"]},
        {"finalizers": None},
        {"labels": {"a": "b"}, "annotations": {"c": "d"}},
        {"finalizers": ["no name"]},
        {"name": "other"},
        {"uid": "other"},
    ]
)
CLAIM_STATUS = st.sampled_from(
    [
        {},
        {"allocation": GIVEN, "reservedFor": RESERVED},
        {"allocation": GIVEN},
        {"allocation": None, "reservedFor": None},
        {"reservedFor": RESERVED},
        {"allocation": {"devices": {"results": [{"request": "other"}]}}},
    ]
)
POD_STATUS = st.sampled_from(
    [
        {},
        {"phase": "Running"},
        {"conditions": [{"type": "Ready", "status": "True"}]},
        {"qosClass": "BestEffort"},
    ]
)
WISHES = st.one_of(
    st.tuples(st.just(f"{CLAIMS}/this?fieldManager=me"), METADATA, CLAIM_STATUS, st.just(MERGE)),
    st.tuples(st.just(f"{CORE}/pods/this"), METADATA, POD_STATUS, st.sampled_from([MERGE, STRATEGIC])),
)


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(wishes=st.lists(WISHES, min_size=1, max_size=4))
def test_it_does_what_a_patch_of_the_object_and_one_of_its_status_do(server, wishes):
    """What is stored, who owns which field of it, and whether it is refused."""
    for side in SIDES:
        assert server("POST", CLAIMS, {"metadata": {"name": side}, "spec": ASKS}).status == 201
        assert server("POST", f"{CORE}/pods", {**POD, "metadata": {"name": side}}).status == 201
    for path, metadata, status, media in wishes:
        body = {"metadata": metadata, "status": status}
        once = sent(server, both(path, body, media))
        twice = sent(server, *of_that_side(apart(path, body, media)))
        assert once.status == twice.status, (once.body, twice.body)
        assert once.body.get("reason") == twice.body.get("reason")
        for objects in (CLAIMS, f"{CORE}/pods"):
            ones, others = (shown(server("GET", f"{objects}/{side}").body) for side in SIDES)
            assert ones == others
    for objects, side in product((CLAIMS, f"{CORE}/pods"), SIDES):
        sent(server, both(f"{objects}/{side}", {"metadata": {"finalizers": None}, "status": None}))
        server("DELETE", f"{objects}/{side}", {"gracePeriodSeconds": 0})


def of_that_side(members):
    return json.loads(json.dumps(members).replace("this", "that"))


def shown(body):
    """As of one side, without what differs from one moment to the next."""
    plain = bare(json.loads(json.dumps(body).replace("that", "this")))
    plain["metadata"]["managed"].sort(key=str)
    for condition in plain.get("status", {}).get("conditions", []):
        condition.pop("lastTransitionTime", None)
    return plain


@settings(max_examples=30, suppress_health_check=list(HealthCheck), deadline=None)
@given(metadata=METADATA, status=CLAIM_STATUS)
def test_a_create_does_what_a_create_and_a_patch_of_the_status_do(server, metadata, status):
    once = sent(server, create(claim_of("this", metadata), status))
    body = {"metadata": {}, "status": status}
    two = [create(claim_of("that", metadata), None), of_that_side(apart(f"{CLAIMS}/this", body))[1]]
    twice = sent(server, *two)
    assert (once.status, once.body.get("reason")) == (twice.status, twice.body.get("reason"))
    kept = [server("GET", f"{CLAIMS}/{side}") for side in SIDES]
    assert kept[0].status == kept[1].status == (200 if once.status == 201 else 404)
    if once.status == 201:
        assert shown(kept[0].body) == shown(kept[1].body)
        for side in SIDES:
            sent(server, both(f"{CLAIMS}/{side}", {"metadata": {"finalizers": None}, "status": None}))
            server("DELETE", f"{CLAIMS}/{side}", {"gracePeriodSeconds": 0})


def claim_of(side, metadata):
    return {"metadata": {**metadata, "name": side}, "spec": json.loads(json.dumps(ASKS))}


def create(claim, status):
    """With its status, where it has one."""
    more = {} if status is None else {"status": json.loads(json.dumps(status))}
    beside = {} if status is None else {"with": "status"}
    return {"method": "POST", "path": CLAIMS, "body": {**claim, **more}, **beside}


@pytest.mark.parametrize("role", ROLES)
def test_whoever_may_not_create_and_patch_the_status_may_not_do_both(peopled, role):
    claim, user = {"metadata": {"name": "fresh"}, "spec": ASKS}, user_of(role)
    path = f"{CLAIMS}/there"
    alone = [create(claim, None), apart(path, {"status": {"reservedFor": []}})[1]]
    codes = [sent(peopled, one, user=user, dryRun="All").status for one in alone]
    wanted = next((code for code in codes if code != 201), 201)
    assert sent(peopled, create(claim, {"reservedFor": []}), user=user, dryRun="All").status == wanted


@pytest.mark.parametrize("role", ROLES)
def test_whoever_may_not_do_both_may_not_do_it(peopled, role):
    body = {"metadata": {"finalizers": ["a.b/c"]}, "status": {"reservedFor": []}}
    path, user = f"{CLAIMS}/there", user_of(role)
    alone = [verdict(sent(peopled, one, user=user, dryRun="All")) for one in apart(path, body)]
    wanted = next((one for one in alone if one[0] != 201), (201, "", ""))
    assert verdict(sent(peopled, both(path, body), user=user, dryRun="All")) == wanted


def test_a_right_to_one_of_them_is_none_to_both(peopled):
    rules = [{"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/status"], "verbs": ["*"]}]
    roles = "/apis/rbac.authorization.k8s.io/v1"
    peopled("POST", f"{roles}/clusterroles", {"metadata": {"name": "half"}, "rules": rules})
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": "half"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "half"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "half"}],
    }
    peopled("POST", f"{roles}/clusterrolebindings", binding)
    user = User("half", groups=("system:authenticated",))
    wish = both(f"{CLAIMS}/there", {"status": {"reservedFor": []}})
    assert sent(peopled, wish, user=user, dryRun="All").status == 403
    rules[0]["resources"] = ["resourceclaims"]
    peopled("PUT", f"{roles}/clusterroles/half", {"metadata": {"name": "half"}, "rules": rules})
    assert sent(peopled, wish, user=user, dryRun="All").status == 403
    rules[0]["resources"] = ["resourceclaims", "resourceclaims/status"]
    peopled("PUT", f"{roles}/clusterroles/half", {"metadata": {"name": "half"}, "rules": rules})
    assert sent(peopled, wish, user=user, dryRun="All").status == 201


@pytest.mark.parametrize(
    "wrong",
    [
        {"with": "scale"},
        {"method": "PUT"},
        {"path": f"{CLAIMS}/there/status"},
        {"path": f"{CORE}/configmaps/there"},
        {"contentType": "application/apply-patch+yaml"},
    ],
)
def test_what_cannot_be_meant_is_refused(peopled, wrong):
    done = sent(peopled, both(f"{CLAIMS}/there", {"metadata": {"labels": {"a": "b"}}}) | wrong)
    assert done.status == 400 and "with: may be status" in done.body["message"]
