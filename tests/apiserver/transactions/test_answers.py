"""What a transaction answers with: of every member what it would have been told alone, and nothing that
could be taken for something else."""

import asyncio
import json

import pytest

from allot.api import Request
from allot.api.transaction import PATH
from allot.apiserver import ApiServer, identities

from ..subresources.test_evicting import budget, pod
from .test_as_alone import QUOTAS, quota
from .test_bounds import SLICES, held, slice_of
from .test_carrying import CLAIMS, CONFIGS, PODS, config, create, merge, names, together
from .test_expecting import expect, version

DELETE = {"method": "DELETE", "path": f"{CONFIGS}/a"}


def results(answer):
    return [one["body"] for one in answer.body["status"]["results"]]


def versions(answer):
    return [one["metadata"].get("resourceVersion") for one in results(answer)]


def test_only_the_last_of_several_changes_bears_the_version_that_is_current(api):
    """Those before it bear one that nothing was ever stored at, or is not any more."""
    first = api("POST", CONFIGS, config("a"))
    done = together(
        api,
        merge(f"{CONFIGS}/a", {"data": {"x": "1"}}),
        create(CONFIGS, config("other")),
        merge(f"{CONFIGS}/a", {"data": {"y": "2"}}),
        merge(f"{CONFIGS}/a", {"data": {"z": "3"}}),
    )
    current = done.body["status"]["resourceVersion"]
    before = str(int(current) - 1)
    assert versions(done) == [before, current, before, current]
    assert version(first) != current == version(api("GET", f"{CONFIGS}/a"))
    assert [one["data"] for one in results(done) if one["metadata"]["name"] == "a"] == [
        {"x": "1"},
        {"x": "1", "y": "2"},
        {"x": "1", "y": "2", "z": "3"},
    ]
    for old in results(done)[0], results(done)[2]:
        relied_on = expect("a", old["metadata"]["resourceVersion"])
        assert together(api, relied_on, create(CONFIGS, config("never"))).status == 409


def test_what_was_deleted_is_shown_at_the_version_of_the_transaction(api):
    """As it is alone; what a member made of it before is not."""
    held_back = {"metadata": {"finalizers": ["example.com/held"]}}
    api("POST", CONFIGS, {**config("a"), **held_back, "metadata": {**held_back["metadata"], "name": "a"}})
    done = together(api, DELETE, merge(f"{CONFIGS}/a", {"metadata": {"finalizers": None}}))
    current = done.body["status"]["resourceVersion"]
    assert versions(done) == [str(int(current) - 1), current] and names(api) == []


def test_a_patch_that_changes_nothing_shows_the_object_at_its_own_version(api):
    known = version(api("POST", CONFIGS, config("a", x="1")))
    done = together(api, merge(f"{CONFIGS}/a", {"data": {"x": "1"}}), create(CONFIGS, config("b")))
    assert versions(done) == [known, done.body["status"]["resourceVersion"]]
    assert version(api("GET", f"{CONFIGS}/a")) == known


def test_nothing_that_a_dry_run_shows_has_a_version(api):
    known = version(api("POST", CONFIGS, config("old")))
    members = [
        create(CONFIGS, config("a")),
        merge(f"{CONFIGS}/a", {"data": {"x": "1"}}),
        merge(f"{CONFIGS}/old", {"data": {"x": "1"}}),
        merge(f"{CONFIGS}/old", {"data": {"x": "1"}}),
    ]
    done = together(api, *members, dryRun="All")
    assert versions(done) == [None] * 4, "that of what is stored would be a lie: this is not stored"
    assert done.body["status"]["resourceVersion"] == "" and version(api("GET", f"{CONFIGS}/old")) == known


def test_a_dry_run_says_that_a_device_is_held_already_and_by_which_request_it_was_wanted(api):
    """Nobody knows before the commit, which a dry run has none of."""
    assert together(api, slice_of("p"), slice_of("q")).status == 201
    assert together(api, held("first", "p")).status == 201
    for members, at in (([held("second", "q"), held("third", "p")], 1), ([held("third", "p")], 0)):
        done = together(api, *members, dryRun="All")
        assert done.status == 409 and done.causes[0][0] == f"spec.requests[{at}]"
    assert together(api, held("second", "q"), dryRun="All").status == 201
    assert names(api, CLAIMS) == ["first"]


def test_when_to_come_again_is_said_as_to_a_request_that_comes_alone(api):
    """A budget that nobody has judged yet: the eviction may be tried in a while."""
    pod(api)
    budget(api, seen=0)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}}
    evict = create(f"{PODS}/web/eviction", eviction)

    def sent(path, body):
        request = Request("POST", path, {}, {"content-type": "application/json"}, json.dumps(body).encode())
        return api.run(api.server.handle(request, identities.ADMIN))

    alone = sent(evict["path"], eviction)
    done = sent(PATH, {"spec": {"requests": [create(CONFIGS, config("a")), evict]}})
    assert done.status == alone.status == 429
    assert dict(done.headers)["Retry-After"] == dict(alone.headers)["Retry-After"] != "1"
    assert names(api) == []


def test_no_more_warnings_go_into_headers_than_clients_read(api):
    members = [create(CONFIGS, {**config(f"c-{number}"), "colour": "red"}) for number in range(20)]
    done = together(api, *members)
    assert len(done.warnings) == 16
    assert all(one["warnings"] for one in done.body["status"]["results"]), "each has its own, however many"


@pytest.mark.parametrize("is_known", [False, True], ids=["a new pool", "a pool that was there"])
def test_slices_that_another_server_publishes_meanwhile_are_learned_at_once(api, is_known):
    """What is handed out compares the pool as this server knows it. Two servers on one store: that the other
    was faster is learned from the refusal, and not from a watch that may take its time."""
    if is_known:
        assert together(api, slice_of("p")).status == 201
    behind, commits = api.server._front.behind, []
    plain = behind.transact
    other = ApiServer(api.store)
    api.run(other.start())

    async def late(compares, changes):
        if any(one.key.endswith("/resourceclaims/default/c") for one in changes):
            commits.append(len(changes))
            if len(commits) == 1:
                assert await asyncio.create_task(publish()) == 201
        return await plain(compares, changes)

    async def publish():
        body = {**slice_of("p")["body"], "metadata": {"name": "new"}}
        body["spec"] = {**body["spec"], "pool": {"name": "p", "generation": 2, "resourceSliceCount": 1}}
        request = Request("POST", SLICES, {}, {"content-type": "application/json"}, json.dumps(body).encode())
        return (await other.handle(request, identities.ADMIN)).status

    behind.transact = late
    done = together(api, held("c", "p"), create(CONFIGS, config("b")))
    assert done.status == 201 and len(commits) == 2, (done.body, commits)
    api.run(other.close())


def test_nobody_is_shown_what_a_transaction_that_was_refused_had_written(api):
    """Not even by the next one, whose members write at the same revisions, which no store gives out."""
    quota(api, **{"count/configmaps": "0"})
    refused = together(
        api,
        merge(f"{QUOTAS}/few", {"metadata": {"labels": {"never": "stored"}}}),
        create(CONFIGS, config("NOT A NAME")),
    )
    assert refused.status == 422 and refused.causes[0][0] == "spec.requests[1]"
    annotate = merge(f"{QUOTAS}/few", {"metadata": {"annotations": {"seen": "yes"}}})
    done = together(api, create(CONFIGS, config("a")), annotate)
    assert done.status == 201, done.body
    few = api("GET", f"{QUOTAS}/few").body
    assert results(done)[1] == few and "labels" not in few["metadata"]
    assert few["metadata"]["annotations"] == {"seen": "yes"}
    assert few["status"]["used"] == {"count/configmaps": "1"}


def test_members_are_answered_in_json_whatever_form_the_transaction_is_asked_for_in(api):
    """kubectl asks for tables; a result that was one would have no version to go on with."""
    table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    done = together(api, create(CONFIGS, config("a")), accept=table)
    assert done.status == 201 and [one["kind"] for one in results(done)] == ["ConfigMap"]
    assert results(done) == [api("GET", f"{CONFIGS}/a").body]


# -- bindings ------------------------------------------------------------------------------------------


def bind(node="node-1", name="web", **metadata):
    return create(f"{PODS}/{name}/binding", {"metadata": metadata, "target": {"name": node}})


def waiting(api, name="web"):
    spec = {"containers": [{"name": "main", "image": "app:1"}]}
    return api("POST", PODS, {"metadata": {"name": name}, "spec": spec}).body["metadata"]["uid"]


def node_of(api, name="web"):
    return api("GET", f"{PODS}/{name}").body["spec"].get("nodeName", "")


def test_a_binding_that_names_no_uid_is_of_whichever_pod_has_the_name(api):
    waiting(api)
    done = together(api, create(CONFIGS, config("a")), bind())
    assert done.status == 201 and results(done)[1]["status"] == "Success"
    assert node_of(api) == "node-1" and names(api) == ["a"]


def test_a_binding_of_a_pod_that_was_made_anew_is_refused_and_nothing_is_done(api):
    first = waiting(api)
    api("DELETE", f"{PODS}/web", {"gracePeriodSeconds": 0})
    second = waiting(api)
    done = together(api, create(CONFIGS, config("a")), bind(uid=first))
    assert done.status == 409 and f"the pod with uid {first} is gone" in done.body["message"]
    assert done.causes[0][0] == "spec.requests[1]" and node_of(api) == "" and names(api) == []
    assert together(api, create(CONFIGS, config("a")), bind(uid=second)).status == 201
    assert node_of(api) == "node-1"


@pytest.mark.parametrize("by", ["name", "uid"])
def test_a_pod_that_is_made_anew_just_before_the_commit_is_bound_if_its_name_was_meant(api, by):
    first = waiting(api)
    behind, at = api.server._front.behind, []
    plain = behind.transact

    async def late(compares, changes):
        if not at and any(one.key.endswith("/configmaps/default/a") for one in changes):
            at.append(True)
            await asyncio.create_task(replace())
        return await plain(compares, changes)

    async def replace():
        await api.ask("DELETE", f"{PODS}/web", {"gracePeriodSeconds": 0})
        spec = {"containers": [{"name": "main", "image": "app:2"}]}
        assert (await api.ask("POST", PODS, {"metadata": {"name": "web"}, "spec": spec})).status == 201

    behind.transact = late
    done = together(api, create(CONFIGS, config("a")), bind() if by == "name" else bind(uid=first))
    assert at
    found = api("GET", f"{PODS}/web").body
    assert found["metadata"]["uid"] != first and found["spec"]["containers"][0]["image"] == "app:2"
    if by == "name":
        assert done.status == 201 and found["spec"]["nodeName"] == "node-1"
    else:
        assert done.status == 409 and "nodeName" not in found["spec"] and names(api) == []


def test_a_pod_is_bound_once_within_one_as_in_two(api):
    """P4."""
    waiting(api)
    done = together(api, bind(), bind("node-2"))
    assert done.status == 409 and done.causes[0][0] == "spec.requests[1]" and node_of(api) == ""
    assert together(api, bind()).status == 201 and together(api, bind("node-2")).status == 409
    assert node_of(api) == "node-1"


def test_a_pod_that_a_member_takes_away_is_not_bound_by_the_next(api):
    waiting(api)
    gone = {"method": "DELETE", "path": f"{PODS}/web", "body": {"gracePeriodSeconds": 0}}
    done = together(api, gone, bind())
    assert done.status == 404 and done.causes[0][0] == "spec.requests[1]" and node_of(api) == ""


@pytest.mark.parametrize("whole", [{}, {"dryRun": "All"}], ids=["stored", "dry run"])
def test_a_member_alone_cannot_be_a_dry_run_in_its_options_either(api, whole):
    """Else the transaction would say that it was carried out, and one part of it would not be."""
    pod(api)
    api("POST", CONFIGS, config("a"))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}}
    evict = create(f"{PODS}/web/eviction", {**eviction, "deleteOptions": {"dryRun": ["All"]}})
    for dry in {**DELETE, "body": {"dryRun": ["All"]}}, evict:
        done = together(api, create(CONFIGS, config("b")), dry, **whole)
        assert done.status == 400 and done.causes[0][0] == "spec.requests[1]"
        assert "dryRun: said for the whole transaction" in done.body["message"]
    assert names(api) == ["a"] and names(api, PODS) == ["web"]
