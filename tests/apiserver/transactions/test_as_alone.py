"""What a request meets alone it meets in a transaction: quotas, pools, ending namespaces, threads (TXN2)."""

import asyncio

import pytest

from allot.api import User
from allot.apiserver.transactions import carrying

from .test_bounds import ASKS, SLICES
from .test_carrying import CLAIMS, CONFIGS, MERGE, PODS, config, create, merge, names, together

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
NODE = User("system:node:node-1", groups=("system:nodes", "system:authenticated"))
SPEC = {"containers": [{"name": "main", "image": "app:1"}]}


def pod(name, **status):
    """With its status, if it has one."""
    body = {"metadata": {"name": name}, "spec": SPEC}
    return {**create(PODS, {**body, "status": status}), "with": "status"} if status else create(PODS, body)


def quota(api, name="few", **used):
    api("POST", QUOTAS, {"metadata": {"name": name}, "spec": {"hard": dict.fromkeys(used, "1")}})
    api("PATCH", f"{QUOTAS}/{name}/status", {"status": {"used": used}}, media=MERGE)


def used(api, name="few"):
    return api("GET", f"{QUOTAS}/{name}").body["status"]["used"]


# -- quotas ----------------------------------------------------------------------------------------


def test_a_pod_pays_for_itself_as_it_was_before_the_status_it_comes_with(api):
    """One that has ended pays nothing; but it is made before it has ended, and may run again."""
    quota(api, pods="1")
    ended = {"phase": "Succeeded"}
    for members in (
        [pod("a")],
        [pod("a"), merge(f"{PODS}/a/status", {"status": ended})],
        [pod("a", **ended)],
    ):
        done = together(api, *members)
        assert done.status == 403 and "exceeded quota" in done.body["message"]
    api("PATCH", f"{QUOTAS}/few/status", {"status": {"used": {"pods": "0"}}}, media=MERGE)
    assert together(api, pod("a", **ended)).status == 201 and used(api) == {"pods": "1"}


# -- a status that comes with its object -----------------------------------------------------------


def test_a_new_pod_keeps_what_the_server_says_of_it_beside_the_status_it_comes_with(api):
    """As a patch of the status would: the caller says what it knows, and the phase is not lost."""
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    assert together(api, pod("one", conditions=[condition])).status == 201
    body = {"status": {"conditions": [condition]}}
    assert together(api, pod("two"), merge(f"{PODS}/two/status", body)).status == 201
    one, two = (api("GET", f"{PODS}/{name}").body["status"] for name in ("one", "two"))
    assert one == two and one["phase"] == "Pending" and one["conditions"]


def test_a_name_that_is_taken_is_said_before_what_is_wrong_with_the_status(api):
    assert api("POST", CLAIMS, {"metadata": {"name": "taken"}, "spec": ASKS}).status == 201
    for name, said in (("taken", (409, "AlreadyExists")), ("free", (422, "Invalid"))):
        body = {"metadata": {"name": name}, "spec": ASKS, "status": {"reservedFor": [{"name": "of nobody"}]}}
        done = together(api, {**create(CLAIMS, body), "with": "status"})
        assert (done.status, done.body["reason"]) == said


# -- where several things have moved ---------------------------------------------------------------


def test_a_namespace_that_ends_comes_before_a_name_that_is_taken(api):
    api("POST", "/api/v1/namespaces", {"metadata": {"name": "old"}, "spec": {"finalizers": ["kubernetes"]}})
    path = "/api/v1/namespaces/old/configmaps"
    api("POST", path, config("taken"))
    end = {"method": "DELETE", "path": "/api/v1/namespaces/old"}
    done = together(api, end, create(path, config("taken")))
    assert done.status == 403 and "being terminated" in done.body["message"]
    assert together(api, create(path, config("taken"))).body["reason"] == "AlreadyExists"


# -- nodes and their pools -------------------------------------------------------------------------


def slice_of(name, pool="p", node="node-1", generation=1):
    spec = {"driver": "d.example", "pool": {"name": pool, "generation": generation, "resourceSliceCount": 2}}
    devices = [{"name": f"dev-{name}"}]
    return create(
        SLICES, {"metadata": {"name": name}, "spec": {**spec, "nodeName": node, "devices": devices}}
    )


@pytest.fixture
def peopled(api):
    for name in ("node-1", "node-2"):
        assert api("POST", "/api/v1/nodes", {"metadata": {"name": name}}).status == 201
    return api


def test_a_node_publishes_and_changes_several_slices_of_its_pool_in_one(peopled):
    assert together(peopled, slice_of("a"), slice_of("b"), user=NODE).status == 201
    label = {"metadata": {"labels": {"seen": "yes"}}}
    delete = {"method": "DELETE", "path": f"{SLICES}/b"}
    members = [merge(f"{SLICES}/a", label), delete, slice_of("c")]
    assert together(peopled, *members, user=NODE).status == 201
    assert names(peopled, SLICES) == ["a", "c"]


@pytest.mark.parametrize("first", ["a write", "a deletion"])
def test_a_pool_that_another_node_takes_meanwhile_is_not_published_in(peopled, first):
    """What was known of the pool is compared at the commit, although an earlier member wrote there."""
    assert together(peopled, slice_of("a"), user=NODE).status == 201
    behind, at = peopled.server._front.behind, []
    plain = behind.transact

    async def late(compares, changes):
        if not at:
            at.append("rival")
            await asyncio.create_task(rival())
        return await plain(compares, changes)

    async def rival():
        body = slice_of("theirs", node="node-2", generation=2)["body"]
        assert (await peopled.ask("POST", SLICES, body)).status == 201

    behind.transact = late
    delete = {"method": "DELETE", "path": f"{SLICES}/a"}
    done = together(peopled, slice_of("b") if first == "a write" else delete, slice_of("c"), user=NODE)
    assert at and done.status == 403 and "cannot publish in pool" in done.body["message"], done.body
    assert names(peopled, SLICES) == ["a", "theirs"]


# -- turns -----------------------------------------------------------------------------------------


def test_others_have_turns_between_members_that_take_long(api, monkeypatch):
    """Each member may do what a request does without a pause, and there may be 64."""
    monkeypatch.setattr(carrying, "_TURN_S", 0.0)

    async def story():
        turns, ended = 0, asyncio.Event()

        async def others():
            nonlocal turns
            while not ended.is_set():
                turns += 1
                await asyncio.sleep(0)

        waiting = asyncio.create_task(others())
        await asyncio.sleep(0)
        body = {"spec": {"requests": [create(CONFIGS, config(f"c-{n}")) for n in range(40)]}}
        before = turns
        done = await api.ask("POST", "/apis/transaction.allot.dev/v1alpha1/transactions", body)
        during = turns - before
        ended.set()
        await waiting
        return done.status, during

    status, during = api.run(story())
    assert status == 201 and during >= 39


def test_a_member_that_is_read_in_a_thread_sees_what_those_before_it_made(api):
    """The class of a claim, which decides who may guard it: the event loop looks for it, and no task asks."""
    group = "/apis/resource.k8s.io/v1alpha1"
    claims = f"{group}/namespaces/default/resourceclaims"
    for name, size in (("small", 10), ("large", 20_000)):
        metadata = {"name": name, "annotations": {"a": "x" * size}}
        asks = {"metadata": metadata, "spec": {"resourceClassName": name}}
        assert api("POST", claims, asks).status == 201
        offered = {"metadata": {"name": name}, "driverName": "d.example.com"}
        guard = {"metadata": {"finalizers": ["d.example.com/deletion-protection"]}}
        done = together(api, create(f"{group}/resourceclasses", offered), merge(f"{claims}/{name}", guard))
        assert done.status == 201, done.body
