"""Whatever is sent as a transaction: an answer that says what is wrong, and nothing of it or all of it."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allot.api.transaction import PATH

from ..conftest import Api

NAMESPACE = "/api/v1/namespaces/default"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
PATHS = st.sampled_from(
    [
        *(f"{NAMESPACE}/{one}" for one in ("configmaps", "configmaps/a", "pods", "pods/a")),
        *(f"{NAMESPACE}/pods/a/{one}" for one in ("status", "binding", "eviction", "log")),
        *(CLAIMS, f"{CLAIMS}/a", f"{CLAIMS}/a/status", f"{NAMESPACE}/secrets/a?fieldManager=x&force=true"),
        "/apis/apps/v1/namespaces/default/deployments/a/scale",
        "/api/v1/namespaces",
        "/api/v1/namespaces/a/finalize",
        "/apis/resource.k8s.io/v1/resourceslices",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        *(PATH, "/", "", "//", "/api/v1/pods?watch=1"),
    ]
)
MEDIA = st.sampled_from(
    [
        "application/json",
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "application/vnd.kubernetes.protobuf",
        "text/plain",
    ]
)
NAMED = st.builds(
    lambda more: {"metadata": {"name": "a"}, **more}, st.dictionaries(st.text(max_size=6), JUNK)
)
BODIES = st.one_of(JUNK, NAMED, st.just({"metadata": {"name": "a"}}), st.just({"target": {"name": "n"}}))
MEMBERS = st.fixed_dictionaries(
    {"method": st.sampled_from(["POST", "PUT", "PATCH", "DELETE", "GET"]), "path": PATHS},
    optional={
        "contentType": MEDIA,
        "body": BODIES,
        "with": st.sampled_from(["status", "scale", ""]),
        "expect": st.sampled_from(["", "absent", "1", "7", "x"]),
    },
)
FINE = {"method": "POST", "path": f"{NAMESPACE}/configmaps", "body": {"metadata": {"generateName": "g"}}}


@pytest.fixture(scope="module")
def server():
    """One for all: what is stored by one is in the way of the next."""
    api = Api()
    yield api
    api.close()


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(members=st.lists(st.one_of(MEMBERS, st.just(FINE)), max_size=5))
def test_members_of_every_kind_are_answered_and_never_half_done(server, members):
    answer_is_whole(server, {"spec": {"requests": members}})


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(document=JUNK)
def test_anything_that_is_no_transaction_is_refused(server, document):
    answer_is_whole(server, document)


def answer_is_whole(api, document):
    before = revision(api)
    answer = api("POST", PATH, json.dumps(document).encode())
    assert answer.status < 500, answer.body
    if answer.status == 201:
        wrote = answer.body["status"]["resourceVersion"]
        assert len(answer.body["status"]["results"]) == len(document["spec"]["requests"])
        assert revision(api) in (before, before + 1) and int(wrote) in (before, before + 1)
    else:
        assert answer.body["kind"] == "Status" and answer.body["message"]
        assert revision(api) == before, "something of it was stored"


def revision(api):
    return int(api("GET", f"{NAMESPACE}/configmaps").body["metadata"]["resourceVersion"])
