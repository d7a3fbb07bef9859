"""Others who write while a transaction is put together: it starts over, and not for ever."""

import asyncio
import json

import pytest

from allot.api import Request
from allot.api.transaction import PATH
from allot.apiserver import identities
from allot.apiserver.writing.writer import ATTEMPTS

from .test_carrying import CLAIMS, CONFIGS, MERGE, config, create, events, merge, names, together
from .test_expecting import expect, version

NAMESPACE = "/api/v1/namespaces/default"
ADMIN_ACCESS = {"resource.kubernetes.io/admin-access": "true"}


def beside(api, method, path, body):
    """By another request, in a task of its own: the one that puts a transaction together waits for it."""
    request = Request(method, path, {}, {"content-type": MERGE}, json.dumps(body).encode())

    async def ask():
        answer = await api.server.handle(request, identities.ADMIN)
        assert answer.status < 300, answer.body
        return json.loads(answer.body)["metadata"]["resourceVersion"]

    return asyncio.create_task(ask())


def disturbed(api, times):
    """Before each of the first commits that write b, somebody else writes a. Returns these commits."""
    behind = api.server._front.behind
    plain, commits = behind.transact, []

    async def late(compares, changes):
        if any(one.key.endswith("/b") for one in changes):
            commits.append(len(changes))
            if len(commits) <= times:
                await beside(api, "PATCH", f"{CONFIGS}/a", {"data": {"rival": str(len(commits))}})
        return await plain(compares, changes)

    behind.transact = late
    return commits


MEMBERS = [create(CONFIGS, config("b")), merge(f"{CONFIGS}/a", {"data": {"ours": "yes"}})]


def test_it_is_tried_once_more_after_fifteen_rivals(api):
    api("POST", CONFIGS, config("a"))
    commits = disturbed(api, ATTEMPTS - 1)
    assert together(api, *MEMBERS).status == 201 and commits == [2] * 16
    assert api("GET", f"{CONFIGS}/a").body["data"] == {"ours": "yes", "rival": "15"}


def test_after_sixteen_it_is_refused_for_now_and_says_when_to_come_again(api):
    start = version(api("POST", CONFIGS, config("a")))
    commits = disturbed(api, 1000)
    document = json.dumps({"spec": {"requests": MEMBERS}}).encode()
    request = Request("POST", PATH, {}, {"content-type": "application/json"}, document)
    answer = api.run(api.server.handle(request, identities.ADMIN))
    assert answer.status == 429 and len(commits) == ATTEMPTS == 16
    assert dict(answer.headers)["Retry-After"] == "1"
    said = json.loads(answer.body)
    assert said["reason"] == "TooManyRequests" and said["details"]["retryAfterSeconds"] == 1
    assert names(api) == ["a"] and "ours" not in api("GET", f"{CONFIGS}/a").body["data"]
    assert len(events(api, CONFIGS, start)) == 16, "of the rivals"
    assert counted(api, "create") == {"424": 1.0, "201": 1.0}, "TXN3: once, however often it was tried"
    assert counted(api, "patch") == {"424": 1.0, "200": 16.0}


def counted(api, verb):
    labels = f'verb="{verb}",group="",version="v1",resource="configmaps",subresource="",code="'
    lines = [one for one in api("GET", "/metrics").body.splitlines() if labels in one and "_total{" in one]
    return {one.split(labels)[1][:3]: float(one.split()[-1]) for one in lines}


@pytest.mark.parametrize("wrong", [0, 1])
def test_two_that_expect_different_things_of_one_object_cannot_both_be_right(api, wrong):
    """The first attempt takes both on trust, and must not believe the last word of the two."""
    old = version(api("POST", CONFIGS, config("known")))
    new = version(api("PATCH", f"{CONFIGS}/known", {"data": {"x": "1"}}, media=MERGE))
    said = [expect("known", old if at == wrong else new) for at in range(2)]
    done = together(api, *said, create(CONFIGS, config("a")))
    assert done.status == 409 and done.causes[0][0] == f"spec.requests[{wrong}]"
    assert names(api) == ["known"]


def test_what_one_member_was_granted_on_is_compared_though_a_later_one_has_seen_what_became_of_it(api):
    """The label that lets a namespace have claims with admin access goes between the first member, which
    needs it, and the third, which does not."""
    api("PATCH", NAMESPACE, {"metadata": {"labels": ADMIN_ACCESS}}, media=MERGE)
    api("POST", CONFIGS, config("b"))
    behind, at = api.server._front.behind, []
    plain = behind.get

    async def get(key):
        if key.endswith("/configmaps/default/b") and not at:
            at.append("here")
            gone = {"metadata": {"labels": dict.fromkeys(ADMIN_ACCESS)}}
            heard_at = await beside(api, "PATCH", NAMESPACE, gone)
            await api.ask("GET", "/api/v1/namespaces", query={"resourceVersion": heard_at})
        return await plain(key)

    behind.get = get
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": True}}
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
    done = together(
        api,
        create(CLAIMS, claim),
        merge(f"{CONFIGS}/b", {"data": {"x": "1"}}),
        create(CONFIGS, config("later")),
    )
    assert at and done.status in (403, 422) and done.causes[0][0] == "spec.requests[0]", done.body
    assert names(api, CLAIMS) == [] and names(api) == ["b"]
