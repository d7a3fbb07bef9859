"""Objects that decide about others: a member is decided by them as those before it left them (PEND1).

The server has such objects in caches, which hear of a transaction when it is committed.
"""

import pytest

from ..conftest import Api
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
