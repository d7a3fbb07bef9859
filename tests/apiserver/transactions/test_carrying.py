"""Several requests, carried out together or not at all."""

import asyncio
import json
from contextvars import Context

import pytest

from allot.api import Request, User, errors
from allot.api.transaction import MEMBERS_MAX, PATH
from allot.apiserver import identities
from allot.client import member_of
from allot.store import OutcomeUnknown, Put, Unavailable

CONFIGS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
MERGE = "application/merge-patch+json"
POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}


def create(path, body):
    return {"method": "POST", "path": path, "body": body}


def merge(path, body):
    return {"method": "PATCH", "path": path, "contentType": MERGE, "body": body}


def config(name, **data):
    return {"metadata": {"name": name}, "data": data}


def together(api, *requests, **more):
    return api("POST", PATH, {"spec": {"requests": list(requests)}}, **more)


def names(api, path=CONFIGS):
    return [one["metadata"]["name"] for one in api("GET", path).body["items"]]


def events(api, path, after):
    return api("GET", path, watch="1", resourceVersion=after, timeoutSeconds="1").body


def test_what_is_sent_together_is_stored_at_one_revision_and_answered_one_by_one(api):
    done = together(api, create(CONFIGS, config("a")), create(CONFIGS, config("b", x="1")))
    assert done.status == 201 and done.body["kind"] == "Transaction"
    first, second = done.body["status"]["results"]
    assert (first["code"], second["code"]) == (201, 201)
    assert api("GET", f"{CONFIGS}/a").body == first["body"]
    assert api("GET", f"{CONFIGS}/b").body == second["body"]
    revisions = {one["body"]["metadata"]["resourceVersion"] for one in (first, second)}
    assert revisions == {done.body["status"]["resourceVersion"]}


def test_a_member_sees_what_those_before_it_did(api):
    done = together(
        api,
        create("/api/v1/namespaces", {"metadata": {"name": "shop"}}),
        create("/api/v1/namespaces/shop/pods", POD),
        merge("/api/v1/namespaces/shop/pods/web", {"metadata": {"labels": {"seen": "yes"}}}),
        create("/api/v1/namespaces/shop/pods/web/binding", {"target": {"name": "node-1"}}),
    )
    assert [one["code"] for one in done.body["status"]["results"]] == [201, 201, 200, 201]
    pod = api("GET", "/api/v1/namespaces/shop/pods/web").body
    assert pod["metadata"]["labels"] == {"seen": "yes"} and pod["spec"]["nodeName"] == "node-1"


ACCOUNTS = "/api/v1/namespaces/shop/serviceaccounts"
SECRETS = {"imagePullSecrets": [{"name": "registry"}]}
NAMED = {"metadata": {"name": "default"}}


def test_the_account_that_a_namespace_is_born_with_can_be_changed_in_the_same_transaction(api):
    """It is not written by any member itself, and was once written twice."""
    done = together(
        api,
        create("/api/v1/namespaces", {"metadata": {"name": "shop"}}),
        create("/api/v1/namespaces/shop/configmaps", config("a")),
        merge(f"{ACCOUNTS}/default", SECRETS),
        merge(f"{ACCOUNTS}/default", {"metadata": {"labels": {"seen": "yes"}}}),
        create("/api/v1/namespaces/shop/pods", POD),
    )
    assert done.status == 201, done.body
    account = api("GET", f"{ACCOUNTS}/default").body
    assert account == done.body["status"]["results"][3]["body"]
    assert account["imagePullSecrets"] == [{"name": "registry"}]
    assert account["metadata"]["labels"] == {"seen": "yes"}
    pod = api("GET", "/api/v1/namespaces/shop/pods/web").body
    assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]


@pytest.mark.parametrize(
    ("member", "code", "left"),
    [
        ({"method": "PUT", "path": f"{ACCOUNTS}/default", "body": {**NAMED, **SECRETS}}, 201, ["default"]),
        ({"method": "DELETE", "path": f"{ACCOUNTS}/default"}, 201, []),
        (create(ACCOUNTS, NAMED), 409, None),
        ({"method": "GET", "path": f"{ACCOUNTS}/default", "expect": "absent"}, 409, None),
    ],
    ids=["put", "delete", "create", "expect"],
)
@pytest.mark.parametrize("more", [{}, {"dryRun": "All"}], ids=["stored", "dry run"])
def test_the_account_that_a_namespace_is_born_with_is_there_for_the_next_member(
    api, member, code, left, more
):
    born = create("/api/v1/namespaces", {"metadata": {"name": "shop"}})
    done = together(api, born, member, **more)
    assert done.status == code, done.body
    if left is not None and not more:
        assert names(api, ACCOUNTS) == left
    elif left is None:
        assert done.causes[0][0] == "spec.requests[1]" and "shop" not in names(api, "/api/v1/namespaces")


def test_the_first_that_is_refused_names_itself_and_nothing_is_carried_out(api):
    api("POST", CONFIGS, config("taken"))
    before = api("GET", CONFIGS).body["metadata"]["resourceVersion"]
    done = together(api, create(CONFIGS, config("a")), create(CONFIGS, config("taken")))
    assert (done.status, done.body["reason"]) == (409, "AlreadyExists")
    assert done.body["message"] == 'spec.requests[1]: configmaps "taken" already exists'
    assert done.causes[0] == ("spec.requests[1]", "TransactionMember")
    assert names(api) == ["taken"]
    assert api("GET", CONFIGS).body["metadata"]["resourceVersion"] == before, "not even a revision"


def test_the_cause_that_names_a_member_says_why_where_no_other_does(api):
    """Of what is invalid, as all is that a policy denies, kubectl shows the causes alone."""
    variables = {"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
        "operations": ["CREATE"], "resources": ["configmaps"]}]}}  # fmt: skip
    spec = {
        **variables,
        "validations": [{"expression": "object.metadata.name != 'evil'", "message": "no evil"}],
    }
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    assert api("POST", policies, {"metadata": {"name": "p"}, "spec": spec}).status == 201
    bound = {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
    assert api("POST", f"{policies[:-3]}ybindings", bound).status == 201
    for _ in range(1000):  # until the server has heard of both
        alone = api("POST", CONFIGS, config("evil"), dryRun="All")
        if alone.status == 422:
            break
    done = together(api, create(CONFIGS, config("a")), create(CONFIGS, config("evil")))
    assert (alone.status, done.status) == (422, 422) and "no evil" in alone.body["message"]
    (cause,) = done.body["details"]["causes"]
    nothing = "nothing of the transaction was carried out"
    assert cause["message"] == f"{alone.body['message']}; {nothing}"
    done = together(api, create(PODS, {"metadata": {"name": "p"}, "spec": {}}))
    assert done.body["details"]["causes"][0]["message"] == nothing, "the others say what is wrong"


def test_a_refusal_keeps_the_causes_of_the_member(api):
    done = together(api, create(CONFIGS, config("a")), create(PODS, {"metadata": {"name": "p"}, "spec": {}}))
    assert done.status == 422
    assert ("spec.containers", "FieldValueRequired") in done.causes


def test_a_member_that_fails_because_of_an_earlier_one_that_fails_is_not_blamed(api):
    """The first attempt takes on trust that the name is free; the second member then finds its own object."""
    api("POST", CONFIGS, {**config("a", x="0"), "immutable": True})
    done = together(
        api, create(CONFIGS, config("a", x="1")), merge(f"{CONFIGS}/a", {"metadata": {"uid": "other"}})
    )
    assert done.body["message"].startswith("spec.requests[0]: ")


def test_watchers_get_ordinary_events_and_only_the_last_state(api):
    start = api("POST", CONFIGS, config("before")).body["metadata"]["resourceVersion"]
    together(
        api,
        create(CONFIGS, config("a")),
        merge(f"{CONFIGS}/a", {"data": {"x": "1"}}),
        {"method": "DELETE", "path": f"{CONFIGS}/before"},
    )
    seen = [(one["type"], one["object"]["metadata"]["name"]) for one in events(api, CONFIGS, start)]
    assert sorted(seen) == [("ADDED", "a"), ("DELETED", "before")]
    added = next(one for one in events(api, CONFIGS, start) if one["type"] == "ADDED")
    assert added["object"] == api("GET", f"{CONFIGS}/a").body


def test_an_answer_that_a_later_member_made_old_cannot_be_taken_for_the_last_state(api):
    done = together(api, create(CONFIGS, config("a")), merge(f"{CONFIGS}/a", {"data": {"x": "1"}}))
    old, last = (one["body"] for one in done.body["status"]["results"])
    assert api("PUT", f"{CONFIGS}/a", {**old, "data": {"x": "2"}}).status == 409
    assert api("PUT", f"{CONFIGS}/a", {**last, "data": {"x": "2"}}).status == 200


def test_a_scale_is_at_the_revision_of_the_transaction(api):
    """It was shown at one that no store gives out, with which nothing could be done afterwards."""
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    api("POST", path, {"metadata": {"name": "web"}, "spec": spec})
    done = together(
        api,
        merge(f"{path}/web/scale", {"spec": {"replicas": 3}}),
        merge(f"{path}/web/scale", {"spec": {"replicas": 5}}),
    )
    first, last = (one["body"] for one in done.body["status"]["results"])
    assert [first["spec"]["replicas"], last["spec"]["replicas"]] == [3, 5]
    assert last == api("GET", f"{path}/web/scale").body
    dry = together(api, merge(f"{path}/web/scale", {"spec": {"replicas": 7}}), dryRun="All")
    assert dry.body["status"]["results"][0]["body"]["spec"]["replicas"] == 7
    assert api("PUT", f"{path}/web/scale", {**first, "spec": {"replicas": 9}}).status == 409
    assert api("PUT", f"{path}/web/scale", {**last, "spec": {"replicas": 9}}).status == 200


def test_what_is_created_and_deleted_together_was_never_there(api):
    start = api("POST", CONFIGS, config("b")).body["metadata"]["resourceVersion"]
    done = together(api, create(CONFIGS, config("a")), {"method": "DELETE", "path": f"{CONFIGS}/a"})
    assert done.status == 201 and names(api) == ["b"]
    assert events(api, CONFIGS, start) == []


def test_a_name_is_not_deleted_and_given_again_in_one(api):
    """Those who watch would see one object become another."""
    api("POST", CONFIGS, config("a"))
    done = together(api, {"method": "DELETE", "path": f"{CONFIGS}/a"}, create(CONFIGS, config("a", x="2")))
    assert done.status == 400 and "send two" in done.body["message"]
    assert not api("GET", f"{CONFIGS}/a").body.get("data")


def test_preconditions_of_a_member_are_those_of_the_object_before_it(api):
    made = api("POST", CONFIGS, config("a")).body["metadata"]
    options = {"kind": "DeleteOptions", "apiVersion": "v1"}
    wrong = {**options, "preconditions": {"uid": "another"}}
    right = {**options, "preconditions": {"uid": made["uid"], "resourceVersion": made["resourceVersion"]}}
    delete = {"method": "DELETE", "path": f"{CONFIGS}/a"}
    assert together(api, create(CONFIGS, config("b")), {**delete, "body": wrong}).status == 409
    assert names(api) == ["a"]
    assert together(api, create(CONFIGS, config("b")), {**delete, "body": right}).status == 201
    assert names(api) == ["b"]


def test_a_body_that_is_null_is_none(api):
    for name in "ab":
        api("POST", CONFIGS, config(name))
    delete = {"method": "DELETE", "path": f"{CONFIGS}/a", "body": None}
    assert together(api, delete).status == 201 and names(api) == ["b"]
    done = together(api, {"method": "POST", "path": CONFIGS, "body": None})
    alone = api("POST", CONFIGS)
    assert done.body["message"] == f"spec.requests[0]: {alone.body['message']}"


def test_a_member_that_names_a_revision_is_refused_once_another_member_has_moved_on(api):
    made = api("POST", CONFIGS, config("a")).body
    done = together(
        api,
        merge(f"{CONFIGS}/a", {"data": {"x": "1"}}),
        {"method": "PUT", "path": f"{CONFIGS}/a", "body": {**made, "data": {"x": "2"}}},
    )
    assert done.status == 409 and done.causes[0][0] == "spec.requests[1]"


def test_a_dry_run_goes_through_everything_and_stores_nothing(api):
    before = api("GET", CONFIGS).body["metadata"]["resourceVersion"]
    members = create(CONFIGS, config("a")), merge(f"{CONFIGS}/a", {"data": {"x": "1"}})
    done = together(api, *members, dryRun="All")
    assert [one["code"] for one in done.body["status"]["results"]] == [201, 200]
    shown = done.body["status"]["results"][1]["body"]
    assert shown["data"] == {"x": "1"} and "resourceVersion" not in shown["metadata"]
    assert done.body["status"]["resourceVersion"] == ""
    assert api("GET", CONFIGS).body["metadata"]["resourceVersion"] == before
    assert together(api, *members, members[0], dryRun="All").status == 409
    said = together(api, {**members[0], "path": f"{CONFIGS}?dryRun=All"})
    assert said.status == 400 and "whole transaction" in said.body["message"]


@pytest.mark.parametrize(
    ("member", "why"),
    [
        ({"method": "GET", "path": f"{CONFIGS}/a"}, "expect: a GET says"),
        ({"method": "DELETE", "path": CONFIGS}, "does not write one object"),
        ({"method": "BREW", "path": CONFIGS}, "method"),
        ({"method": "POST", "path": PATH, "body": {}}, "no resource that is stored"),
        ({"method": "POST", "path": "/healthz"}, "no resource that is stored"),
        ({"method": "POST", "path": "configmaps"}, "path"),
        ({"method": "POST", "path": "/api/v1/namespaces/a%2Fb/pods"}, "path"),
        ({"method": "POST", "path": "/api/v1/namespaces/default/serviceaccounts/default/token"}, "token"),
        ({"method": "POST", "path": CONFIGS, "bodi": {}}, "bodi"),
        ({"path": CONFIGS}, "method"),
        ({"method": "POST", "path": 7}, "path"),
        ([], "object"),
        (None, "object"),
        ({"method": "POST", "path": f"{CONFIGS}?{'&'.join(f'a{n}=1' for n in range(200))}"}, "query"),
    ],
)
def test_what_cannot_be_a_member_is_refused_before_anything_is_done(api, member, why):
    done = together(api, create(CONFIGS, config("a")), member)
    assert done.status == 400 and why in done.body["message"]
    assert done.body["message"].startswith("spec.requests[1]: ")
    assert member_of(errors.from_status(done.body)) == 1
    assert names(api) == []


def test_a_member_asks_for_no_more_of_an_object_than_it_may_alone(api):
    """What goes with a table, which no member is answered with."""
    path = f"{CONFIGS}?includeObject=Everything"
    alone = api("POST", CONFIGS, config("b"), includeObject="Everything")
    done = together(api, create(CONFIGS, config("a")), create(path, config("b")))
    assert done.status == alone.status == 400 and names(api) == []
    assert done.body["message"] == f"spec.requests[1]: {alone.body['message']}"


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"spec":null}', b'{"spec":{"requests":{}}}', b"\xff"])
def test_a_body_that_is_no_transaction_is_refused(api, body):
    assert api("POST", PATH, body).status == 400


def test_it_is_bounded(api):
    assert together(api).status == 400
    many = [create(CONFIGS, config(f"c-{number}")) for number in range(MEMBERS_MAX)]
    assert together(api, *many, create(CONFIGS, config("one-more"))).status == 400
    assert together(api, *many).status == 201 and len(names(api)) == MEMBERS_MAX
    large = [create(CONFIGS, config(f"large-{number}", x="y" * 800_000)) for number in range(2)]
    done = together(api, *large)
    assert done.status == 413 and done.causes[0][0] == "spec.requests[1]"
    assert len(names(api)) == MEMBERS_MAX


def test_the_name_that_it_was_given_is_said_again(api):
    """kubectl says that it was created."""
    spec = {"requests": [create(CONFIGS, config("a"))]}
    assert api("POST", PATH, {"metadata": {"name": "both"}, "spec": spec}).body["metadata"] == {
        "name": "both"
    }
    assert together(api, create(CONFIGS, config("b"))).body["metadata"] == {}


def test_it_is_created_and_never_kept(api):
    for method, path in (("GET", PATH), ("GET", f"{PATH}/x"), ("DELETE", f"{PATH}/x"), ("PUT", f"{PATH}/x")):
        assert api(method, path, {} if method == "PUT" else None).status == 405
    found = api("GET", PATH.rpartition("/")[0]).body["resources"]
    assert [(one["name"], one["kind"], one["verbs"]) for one in found] == [
        ("transactions", "Transaction", ["create"])
    ]


def test_warnings_of_members_come_with_the_answer(api):
    done = together(api, create(CONFIGS, config("a")), create(CONFIGS, {**config("b"), "colour": "red"}))
    results = done.body["status"]["results"]
    assert "warnings" not in results[0] and "colour" in results[1]["warnings"][0]
    assert done.warnings == results[1]["warnings"]


def managers(object):
    return [one["manager"] for one in object["metadata"]["managedFields"]]


def test_what_is_said_of_fields_in_its_query_holds_for_all_that_do_not_say_their_own(api):
    odd = {**config("odd"), "colour": "red"}
    done = together(api, create(CONFIGS, config("a")), create(CONFIGS, odd), fieldValidation="Strict")
    assert done.status == 400 and done.causes[0][0] == "spec.requests[1]"
    assert 'strict decoding error: unknown field "colour"' in done.body["message"] and names(api) == []
    silent = create(f"{CONFIGS}?fieldValidation=Ignore", odd)
    done = together(api, silent, fieldValidation="Strict")
    assert done.status == 201 and done.warnings == []
    done = together(
        api,
        create(CONFIGS, config("a")),
        create(f"{CONFIGS}?fieldManager=own", config("b")),
        fieldManager="all of it",
    )
    assert [managers(one["body"]) for one in done.body["status"]["results"]] == [["all of it"], ["own"]]


def test_an_apply_may_leave_its_manager_to_the_transaction(api):
    body = {"apiVersion": "v1", "kind": "ConfigMap", **config("a", x="1")}
    apply = {"method": "PATCH", "path": f"{CONFIGS}/a", "contentType": "application/apply-patch+yaml"}
    assert together(api, {**apply, "body": body}).status == 422
    done = together(api, {**apply, "body": body}, fieldManager="me")
    assert managers(done.body["status"]["results"][0]["body"]) == ["me"]


def test_who_owns_what_a_member_writes_and_says_no_name_is_the_program_that_sends_it(api):
    agent = {"user-agent": "kubectl/v1.37 (linux/amd64)"}
    alone = api("POST", CONFIGS, config("alone"), headers=agent)
    done = together(api, create(CONFIGS, config("a")), headers=agent)
    (result,) = done.body["status"]["results"]
    assert managers(result["body"]) == managers(alone.body) == ["kubectl"]


@pytest.mark.parametrize(
    "said", [{"fieldValidation": "Very"}, {"fieldManager": "m" * 200}, {"dryRun": "Some"}], ids=str
)
def test_what_is_said_for_all_and_makes_no_sense_is_the_fault_of_no_member(api, said):
    done = together(api, create(CONFIGS, config("a")), **said)
    assert done.status == 400 and done.causes == [] and names(api) == []


def counted(api, resource="configmaps", verb="create"):
    """How many requests were answered, by code."""
    labels = f'verb="{verb}",group="",version="v1",resource="{resource}",subresource="",code="'
    lines = [one for one in api("GET", "/metrics").body.splitlines() if labels in one]
    return {int(one.partition(labels)[2][:3]): float(one.split()[-1]) for one in lines}


def test_every_member_is_counted_by_itself_and_those_given_up_as_not_carried_out(api):
    """TXN3: those before the one that was refused, and those behind it, whose turn never came."""
    together(api, create(CONFIGS, config("a")), create(CONFIGS, config("b")))
    together(api, *(create(CONFIGS, config(name)) for name in "cade"))
    assert counted(api) == {201: 2, 409: 1, 424: 3}


def test_the_time_that_a_member_takes_is_counted_as_its_own(api, monkeypatch):
    now_s, front = [0.0], api.server._front
    monkeypatch.setattr(api.server.clock, "monotonic_s", lambda: now_s[0])
    for name in "ab":
        api("POST", CONFIGS, config(name))
    plain = front.behind.get

    async def get(key):
        if key.endswith("/configmaps/default/b"):
            now_s[0] += 2.0
        return await plain(key)

    front.behind.get = get
    slow = merge(f"{CONFIGS}/b", {"data": {"x": "1"}})
    assert together(api, {"method": "DELETE", "path": f"{CONFIGS}/a"}, slow).status == 201
    start = "apiserver_request_duration_seconds_sum"
    lines = [one for one in api("GET", "/metrics").body.splitlines() if one.startswith(start)]
    took_s = {
        verb: [
            float(one.split()[-1]) for one in lines if f'verb="{verb}",group="",resource="configmaps"' in one
        ]
        for verb in ("delete", "patch")
    }
    assert took_s == {"delete": [0.0], "patch": [2.0]}


def rivalled(api, name):
    """Whenever a transaction is committed, somebody else writes to this config map just before."""
    front = api.server._front
    plain = front.behind.transact

    async def transact(compares, changes):
        key = f"/objects/core/configmaps/default/{name}"
        if any(compare.key == key for compare in compares):
            found = await front.behind.get(key)
            await plain((), (Put(key, found.value),))
        return await plain(compares, changes)

    front.behind.transact = transact


def test_a_transaction_that_others_always_outrun_is_refused_as_a_whole(api):
    """No member is at fault, so none is named; all of them count as not carried out."""
    api("POST", CONFIGS, config("a"))
    rivalled(api, "a")
    before = counted(api)[201]
    request = json.dumps(
        {"spec": {"requests": [create(CONFIGS, config("b")), merge(f"{CONFIGS}/a", {"data": {"x": "1"}})]}}
    )
    asked = Request("POST", PATH, {}, {"content-type": "application/json"}, request.encode())
    answer = api.run(api.server.handle(asked, identities.ADMIN))
    refused = errors.from_status(json.loads(answer.body))
    assert isinstance(refused, errors.TooManyRequests) and member_of(refused) is None
    assert refused.message == "too many writers are busy with the same objects"
    assert ("Retry-After", "1") in answer.headers and refused.retry_after_s == 1
    assert names(api) == ["a"]
    assert counted(api) == {201: before, 424: 1} and counted(api, verb="patch") == {424: 1}


@pytest.mark.parametrize(
    ("trouble", "status", "noted"),
    [(Unavailable("away"), 503, 424), (OutcomeUnknown("who knows"), 504, 504)],
    ids=["surely not", "in doubt"],
)
def test_what_the_store_cannot_do_is_counted_for_every_member(api, trouble, status, noted):
    """A member of which nobody can say whether it was carried out is not counted as one that was not."""
    front = api.server._front
    plain = front.behind.transact

    async def transact(compares, changes):
        raise trouble

    front.behind.transact = transact
    done = together(api, create(CONFIGS, config("a")), create(CONFIGS, config("b")))
    front.behind.transact = plain
    assert done.status == status and done.causes == []
    assert counted(api) == {noted: 2}


def test_a_commit_that_is_refused_for_a_member_counts_as_its_own_refusal(api):
    """One device for two claims: the record of the pool says no when all of it is to be stored."""
    spec = {"driver": "d.example", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}
    spec |= {"nodeName": "node-1", "devices": [{"name": "dev-0"}]}
    api("POST", "/apis/resource.k8s.io/v1/resourceslices", {"metadata": {"name": "s"}, "spec": spec})
    results = [{"request": "r", "driver": "d.example", "pool": "p", "device": "dev-0"}]
    given = {"status": {"allocation": {"devices": {"results": results}}}}
    for name in "ab":
        asked = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
        api("POST", CLAIMS, {"metadata": {"name": name}, "spec": {"devices": asked}})
    done = together(
        api,
        create(CONFIGS, config("before")),
        *(merge(f"{CLAIMS}/{name}/status", given) for name in "ab"),
        create(CONFIGS, config("behind")),
    )
    assert done.status == 409 and done.causes[0][0] == "spec.requests[2]"
    assert counted(api) == {424: 2}
    text = api("GET", "/metrics").body
    of_claims = [one.rpartition('code="')[2] for one in text.splitlines() if 'subresource="status"' in one]
    assert sorted(of_claims) == ['409"} 1', '424"} 1']


def test_quotas_are_charged_for_all_of_it_or_none(api):
    path = "/api/v1/namespaces/default/resourcequotas"
    api("POST", path, {"metadata": {"name": "few"}, "spec": {"hard": {"count/configmaps": "2"}}})
    api("PATCH", f"{path}/few/status", {"status": {"used": {"count/configmaps": "0"}}}, media=MERGE)

    def used():
        return api("GET", f"{path}/few").body["status"]["used"]["count/configmaps"]

    done = together(api, *(create(CONFIGS, config(name)) for name in "abc"))
    assert done.status == 403 and "exceeded quota" in done.body["message"]
    assert done.causes[0][0] == "spec.requests[2]" and used() == "0"
    assert together(api, *(create(CONFIGS, config(name)) for name in "ab")).status == 201
    assert used() == "2"


def test_a_quota_counts_for_the_members_after_it(api):
    path = "/api/v1/namespaces/default/resourcequotas"
    terms = {"metadata": {"name": "none"}, "spec": {"hard": {"count/configmaps": "0"}}}
    done = together(api, create(path, terms), create(CONFIGS, config("a")))
    assert done.status == 403 and names(api) == []


def test_others_that_write_in_between_make_it_start_over(api):
    """What it read on its way is compared at the commit: it is decided again on what is there then."""
    api("POST", CONFIGS, config("a", count="0"))
    behind, at = api.store, []
    plain = behind.transact

    async def late(compares, changes):
        if not at and any(isinstance(one, Put) and one.key.endswith("/b") for one in changes):
            at.append(True)
            rival = Request("PATCH", f"{CONFIGS}/a", {}, {"content-type": MERGE}, b'{"data":{"rival":"1"}}')
            assert (await asyncio.create_task(outside(rival), context=Context())).status == 200
        return await plain(compares, changes)

    async def outside(request):
        return await api.server.handle(request, identities.ADMIN)

    behind.transact = late
    api.server._front.behind.transact = late
    done = together(api, merge(f"{CONFIGS}/a", {"data": {"count": "1"}}), create(CONFIGS, config("b", x="1")))
    assert done.status == 201 and at
    assert api("GET", f"{CONFIGS}/a").body["data"] == {"count": "1", "rival": "1"}


def test_it_acts_for_whom_its_sender_may_act(api):
    nobody = User("nobody", groups=("system:authenticated",))
    done = together(api, create(CONFIGS, config("a")), user=nobody)
    assert done.status == 403 and done.body["message"].startswith("spec.requests[0]: configmaps is forbidden")
    done = together(api, create(CONFIGS, config("a")), headers={"impersonate-user": "nobody"})
    assert done.status == 403
    done = together(
        api,
        create(CONFIGS, config("a")),
        headers={"impersonate-user": "boss", "impersonate-group": "system:masters"},
    )
    assert done.status == 201


def test_nobody_who_is_unknown_may_try(api):
    stranger = User("system:anonymous", groups=("system:unauthenticated",))
    assert together(api, create(CONFIGS, config("a")), user=stranger).status in (401, 403)


def test_slices_and_what_is_handed_out_of_them_are_sent_apart(api):
    """Guards know pools from what was committed."""
    spec = {"driver": "d.example", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}
    spec |= {"nodeName": "node-1", "devices": [{"name": "dev-0"}]}
    publish = create("/apis/resource.k8s.io/v1/resourceslices", {"metadata": {"name": "s"}, "spec": spec})
    claim = {
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
    }
    results = [{"request": "r", "driver": "d.example", "pool": "p", "device": "dev-0"}]
    allocate = merge(f"{CLAIMS}/c/status", {"status": {"allocation": {"devices": {"results": results}}}})
    done = together(api, publish, create(CLAIMS, claim), allocate)
    assert done.status == 400 and "send the slices first" in done.body["message"]
    assert together(api, publish).status == 201
    assert together(api, create(CLAIMS, claim), allocate).status == 201


def test_a_definition_and_what_it_defines_are_sent_apart(api):
    """What a kind is like is learned from what was committed."""
    names_of_kind = {"plural": "toys", "singular": "toy", "kind": "Toy", "listKind": "ToyList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    spec = {"group": "example.com", "names": names_of_kind, "scope": "Namespaced"}
    spec["versions"] = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    define = create(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {"metadata": {"name": "toys.example.com"}, "spec": spec},
    )
    path = "/apis/example.com/v1/namespaces/default/toys"
    toy = create(path, {"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "a"}})
    done = together(api, define, toy)
    assert done.status == 400 and done.causes[0][0] == "spec.requests[1]"
    assert done.body["message"].endswith(
        f"{path} is no resource that is stored; what a definition defines is served once it is stored: "
        "send it before, alone"
    )
    assert "definition" not in together(api, toy, define).body["message"]
    assert together(api, define).status == 201 and together(api, toy).status == 201


def test_one_device_is_not_handed_out_twice_within_one(api):
    spec = {"driver": "d.example", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}
    spec |= {"nodeName": "node-1", "devices": [{"name": "dev-0"}]}
    api("POST", "/apis/resource.k8s.io/v1/resourceslices", {"metadata": {"name": "s"}, "spec": spec})
    results = [{"request": "r", "driver": "d.example", "pool": "p", "device": "dev-0"}]
    members = []
    for name in "ab":
        asked = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
        members.append(create(CLAIMS, {"metadata": {"name": name}, "spec": {"devices": asked}}))
        given = {"status": {"allocation": {"devices": {"results": results}}}}
        members.append(merge(f"{CLAIMS}/{name}/status", given))
    done = together(api, *members)
    assert done.status == 409 and done.causes[0][0] == "spec.requests[3]"
    assert names(api, CLAIMS) == []
    assert together(api, *members[:2]).status == 201
    assert together(api, *members[2:]).status == 409, "nor by the next one"


def test_a_task_that_is_started_meanwhile_sees_and_writes_the_store_itself(api):
    """PEND1: in one process, what a transaction does wakes others, who inherit its context."""
    seen = {}

    async def another():
        request = Request("GET", f"{CONFIGS}/a", {}, {})
        seen["status"] = (await api.server.handle(request, identities.ADMIN)).status
        await api.ask("POST", CONFIGS, config("own"))

    plain = api.server._front.behind.get

    async def get(key):
        if key.endswith("/b") and not seen:
            seen["status"] = 0
            await asyncio.create_task(another())
        return await plain(key)

    api.server._front.behind.get = get
    done = together(api, create(CONFIGS, config("a")), merge(f"{CONFIGS}/b", {"data": {"x": "1"}}))
    assert done.status == 404 and seen["status"] == 404, "what is not committed is not there"
    assert names(api) == ["own"], "and what another task wrote stays, though the transaction failed"
