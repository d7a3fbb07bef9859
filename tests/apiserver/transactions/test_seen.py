"""Objects that decide about others: a member is decided by them as those before it left them (PEND1).

The server has such objects in caches, which hear of a transaction when it is committed.
"""

import json

import pytest

from allot.api import User, compute
from allot.apiserver import identities
from kep.compute import cr, named, node
from kep.compute import pod as pod_that_asks

from ..conftest import Api
from ..serving.ground import until
from .test_carrying import MERGE, POD, create, merge, together

CORE = "/api/v1/namespaces/default"
PODS = f"{CORE}/pods"
ACCOUNTS = f"{CORE}/serviceaccounts"
RANGES = f"{CORE}/limitranges"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def delete(path):
    return {"method": "DELETE", "path": path}


def pod(**spec):
    return create(PODS, {**POD, "spec": {**POD["spec"], **spec}})


def priority(name, value, *, by_default=False):
    return create(CLASSES, {"metadata": {"name": name}, "value": value, "globalDefault": by_default})


def limits(cpu):
    return {"limits": [{"type": "Container", "default": {"cpu": cpu}, "defaultRequest": {"cpu": cpu}}]}


ACCOUNT = create(ACCOUNTS, {"metadata": {"name": "bob"}})
RANGE = create(RANGES, {"metadata": {"name": "few"}, "spec": limits("1")})

# what is there before | what comes first | the pod behind it
STORIES = {
    "an account": ([], [ACCOUNT], pod(serviceAccountName="bob")),
    "an account with other secrets": (
        [],
        [merge(f"{ACCOUNTS}/default", {"imagePullSecrets": [{"name": "registry"}]})],
        pod(),
    ),
    "an account that is deleted": (
        [ACCOUNT],
        [delete(f"{ACCOUNTS}/bob")],
        pod(serviceAccountName="bob"),
    ),
    "a class": ([], [priority("high", 7)], pod(priorityClassName="high")),
    "a class that is deleted": (
        [priority("high", 7)],
        [delete(f"{CLASSES}/high")],
        pod(priorityClassName="high"),
    ),
    "a class for all": ([], [priority("high", 7, by_default=True)], pod()),
    "a class for all beside another": (
        [priority("high", 7, by_default=True)],
        [priority("low", 3, by_default=True)],
        pod(),
    ),
    "a class for all that is deleted": (
        [priority("high", 7, by_default=True)],
        [delete(f"{CLASSES}/high")],
        pod(),
    ),
    "limits": ([], [RANGE], pod()),
    "limits that change": ([RANGE], [merge(f"{RANGES}/few", {"spec": limits("2")})], pod()),
    "limits that are deleted": ([RANGE], [delete(f"{RANGES}/few")], pod()),
}


def send(api, member):
    media = member.get("contentType", "application/json")
    return api(member["method"], member["path"], member.get("body"), media=media)


def verdict(answer):
    return answer.status, answer.body.get("reason"), answer.body.get("message")


@pytest.mark.parametrize("story", STORIES)
def test_a_pod_is_decided_by_what_those_before_it_left(story):
    before, first, last = STORIES[story]
    alone, at_once = Api(), Api()
    try:
        for api in (alone, at_once):
            assert all(send(api, one).status < 300 for one in before)
        assert all(send(alone, one).status < 300 for one in first)
        expected, done = send(alone, last), together(at_once, *first, last)
        if expected.status == 201:
            assert done.status == 201, done.body
            assert done.body["status"]["results"][-1]["body"]["spec"] == expected.body["spec"]
        else:
            status, reason, message = verdict(expected)
            assert verdict(done) == (status, reason, f"spec.requests[{len(first)}]: {message}")
    finally:
        alone.close()
        at_once.close()


def test_the_stories_make_a_difference():
    """Else they would prove nothing: without what comes first, the pod fares otherwise."""
    for story, (before, first, last) in STORIES.items():
        without, with_it = Api(), Api()
        try:
            for api in (without, with_it):
                assert all(send(api, one).status < 300 for one in before)
            assert all(send(with_it, one).status < 300 for one in first)
            fates = [send(api, last) for api in (without, with_it)]
            assert fates[0].body.get("spec") != fates[1].body.get("spec"), story
        finally:
            without.close()
            with_it.close()


NODES = "/api/v1/nodes"
ITSELF = User("system:node:node-1", groups=("system:nodes", "system:masters", "system:authenticated"))
"""A node that may delete itself."""
CARD = {"type": "card"}


def bound_with_a_card(api):
    """A binding that takes a device of the node: no more are given than it has."""
    asks = pod_that_asks("web", {"card": 1})
    assert api("POST", PODS, asks).status == 201
    entry = {"computeResourceName": named(CARD), "count": 1}
    choice = {compute.limits.RECORD_ANNOTATION: json.dumps({"c": {"card": [entry]}})}
    body = {"metadata": {"annotations": choice}, "target": {"name": "node-1"}}
    return create(f"{PODS}/web/binding", body), identities.ADMIN


def mirrored(api):
    """A pod that a node makes up for itself: it names the node as it is there."""
    uid = api("GET", f"{NODES}/node-1").body["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": uid, "controller": True}
    metadata = {"name": "web", "ownerReferences": [owner]}
    metadata["annotations"] = {"kubernetes.io/config.mirror": "x"}
    spec = {**POD["spec"], "nodeName": "node-1", "automountServiceAccountToken": False}
    return create(PODS, {"metadata": metadata, "spec": spec}), ITSELF


def hears_of_nodes(api, *names):
    """Until the cache knows these nodes, and no others."""
    cached = api.server.caches.made(api.server.registry.kind("", "nodes")).objects
    api.run(until(lambda: [one.name for one in cached.values()] == [*names]))


@pytest.mark.parametrize("story", [bound_with_a_card, mirrored])
def test_nobody_relies_on_a_node_that_a_member_before_deleted(story):
    """It is still in the cache, which is not asked."""
    with_it, alone, at_once = Api(), Api(), Api()
    try:
        answers = []
        for api in (with_it, alone, at_once):
            assert api("POST", NODES, node("node-1", cr(CARD, 1))).status == 201
            last, user = story(api)
            hears_of_nodes(api, "node-1")
            if api is alone:
                assert send(api, delete(f"{NODES}/node-1")).status == 200
                hears_of_nodes(api)
            if api is at_once:
                answers.append(together(api, delete(f"{NODES}/node-1"), last, user=user))
            else:
                answers.append(api(last["method"], last["path"], last["body"], user=user))
        relied, expected, done = answers
        assert relied.status == 201 and expected.status in (404, 409)
        status, reason, message = verdict(expected)
        assert verdict(done) == (status, reason, f"spec.requests[1]: {message}")
    finally:
        for api in (with_it, alone, at_once):
            api.close()


def test_a_transaction_that_failed_leaves_no_trace_in_what_is_known(api):
    """The next pod is decided by what is stored, and not by what was only pending."""
    api("PATCH", f"{ACCOUNTS}/default", {"imagePullSecrets": [{"name": "true"}]}, media=MERGE)
    done = together(
        api,
        merge(f"{ACCOUNTS}/default", {"imagePullSecrets": [{"name": "false"}]}),
        priority("high", 7, by_default=True),
        RANGE,
        pod(),
        create(PODS, {"metadata": {"name": "bad"}}),
    )
    assert done.status == 422 and done.causes[0][0] == "spec.requests[4]"
    made = send(api, pod()).body["spec"]
    assert made["imagePullSecrets"] == [{"name": "true"}] and made["priority"] == 0
    assert not made["containers"][0]["resources"]
