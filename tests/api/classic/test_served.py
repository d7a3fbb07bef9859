"""resource.k8s.io/v1alpha1 through the real API server: one stored form, rights, gates, tables."""

import asyncio
import json

import pytest

from allot.api import Gates, Request, User, classic, resource
from allot.api.schema.builtin import TABLE
from allot.apiserver import Options, identities
from allot.store import MemoryStore
from allot.testing import api_server
from api.classic.objects import DRIVER, ON_N1, allocated, claim, class_, consumer, pod_scheduling, template
from api.resource import objects as structured
from api.resource.test_served import Api, grant, may

CLAIMS = "/v1alpha1/namespaces/default/resourceclaims"
CLAIMS_V1 = "/v1/namespaces/default/resourceclaims"
TEMPLATES = "/v1alpha1/namespaces/default/resourceclaimtemplates"
TEMPLATES_V1 = "/v1/namespaces/default/resourceclaimtemplates"
CLASSES = "/v1alpha1/resourceclasses"
SCHEDULINGS = "/v1alpha1/namespaces/default/podschedulings"
UPSTREAM = json.loads(TABLE.read_bytes())
OTHERS = ("v1", "v1beta2", "v1beta1")


@pytest.fixture
def api(allot_server):
    return Api(allot_server)


def allocate(api, name="c", **allocation):
    answer = api.patch(f"{CLAIMS}/{name}/status", {"status": allocated(**allocation)})
    assert answer.code == 200, answer.body
    return answer.body


def typed(fields, short="resource_v1.ResourceClaim"):
    """What a client with Kubernetes' own types keeps of an object: the fields that it has names for."""
    known = UPSTREAM[short]
    return {name: _typed(one, known[name].lstrip("!")) for name, one in fields.items() if name in known}


def _typed(value, expression):
    if value is None or not expression.startswith(("#", "[#")):
        return value
    if expression.startswith("["):
        return [typed(one, expression[2:]) for one in value]
    return typed(value, expression[1:])


# What is served


def test_the_kinds_are_discovered(api):
    """3063-API-02, 3063-COMP-01, 3063-STATE-01, 3063-GOAL-14: none of them says what there is to be had."""
    listed = api("GET", "/v1alpha1").body["resources"]
    assert {(one["name"], one["kind"], one["namespaced"]) for one in listed} == {
        ("resourceclasses", "ResourceClass", False),
        ("resourceclaims", "ResourceClaim", True),
        ("resourceclaims/status", "ResourceClaim", True),
        ("resourceclaimtemplates", "ResourceClaimTemplate", True),
        ("podschedulings", "PodScheduling", True),
        ("podschedulings/status", "PodScheduling", True),
        ("noderesourcecapacities", "NodeResourceCapacity", False),
    }
    group = api("GET", "").body
    assert [one["version"] for one in group["versions"]] == ["v1", "v1beta2", "v1beta1", "v1alpha1"]
    assert group["preferredVersion"]["version"] == "v1"


def test_every_field_is_explained(api):
    """What `kubectl explain` shows: a sentence for each type and field of ours."""
    made = Request("GET", "/openapi/v3/apis/resource.k8s.io/v1alpha1", {}, {"accept": "application/json"})
    document = json.loads(api._server.run(api._server.api.handle(made, identities.ADMIN)).body)
    ours = "io.k8s.api.resource."
    shown = {name: one for name, one in document["components"]["schemas"].items() if name.startswith(ours)}
    assert {
        f"{ours}v1alpha1.{kind}" for kind in ("ResourceClass", "PodScheduling", "ResourceClaim")
    } <= shown.keys()
    for name, one in shown.items():
        assert one.get("description"), name
        for field, about in one["properties"].items():
            assert about.get("description"), f"{name}.{field}"


def test_a_claim_is_one_object_in_every_version(api):
    """3063-CLAIM-03: the default is stored."""
    made = api.made(CLAIMS, claim(parametersRef={"kind": "ConfigMap", "name": "small"}))
    assert made["apiVersion"] == "resource.k8s.io/v1alpha1"
    spec = {
        "resourceClassName": "gpu",
        "parametersRef": {"kind": "ConfigMap", "name": "small"},
        "allocationMode": "WaitForFirstConsumer",
    }
    assert made["spec"] == spec
    allocate(api, availableOnNodes=ON_N1, resourceHandle="h", shareable=True)
    seen = api("GET", f"{CLAIMS_V1}/c").body
    asked = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    assert seen["spec"] == {**spec, "devices": {"requests": [{"name": "classic", "exactly": asked}]}}
    assert seen["status"] == allocated(nodeSelector=ON_N1, resourceHandle="h", shareable=True)
    assert seen["metadata"]["uid"] == made["metadata"]["uid"]
    assert api("GET", f"{CLAIMS}/c").body["status"] == allocated(
        availableOnNodes=ON_N1, resourceHandle="h", shareable=True
    )


def test_views_show_both_shapes(api):
    """Informers read claims in v1, whatever their shape."""
    api.made(CLAIMS, claim(allocationMode="Immediate", parametersRef={"kind": "K", "name": "n"}))
    allocate(api, availableOnNodes=ON_N1, resourceHandle="h", shareable=True)

    async def read():
        return await api._server.client().of(resource.RESOURCE_CLAIM).get("c", "default")

    seen = api._server.run(read()).view(resource.ResourceClaim)
    assert resource.shape.is_classic(seen) and resource.shape.is_immediate(seen)
    assert resource.shape.requests_of(seen) == ()
    assert seen.spec.resource_class_name == "gpu"
    assert seen.spec.parameters_ref == resource.ResourceClaimParametersReference(kind="K", name="n")
    assert (seen.status.driver_name, seen.status.allocation.resource_handle) == (DRIVER, "h")
    assert seen.status.allocation.shareable and seen.status.allocation.node_selector is not None
    assert resource.lifecycle.of(seen) is resource.lifecycle.CLASSIC_IMMEDIATE


def test_classes_and_schedulings_are_written_and_read(api):
    """3063-GOAL-15, 3063-PSCHED-02, 3063-PSCHED-15."""
    made = api.made(CLASSES, class_(suitableNodes=ON_N1, parametersRef={"kind": "Init", "name": "fast"}))
    assert (made["driverName"], made["suitableNodes"]) == (DRIVER, ON_N1)
    made = api.made(
        SCHEDULINGS, {**pod_scheduling(selectedNode="n1", potentialNodes=["n1", "n2"]), "status": {"x": 1}}
    )
    assert made["status"] == {}
    answer = {"status": {"resourceClaims": [{"name": "gpu", "unsuitableNodes": ["n2"]}]}}
    assert api.patch(f"{SCHEDULINGS}/p/status", answer).body["status"] == answer["status"]


def test_drivers_answer_without_losing_each_others_answers(api):
    """O-24: entries are known by name, in strategic patches and in applies."""
    api.made(SCHEDULINGS, pod_scheduling(potentialNodes=["n1"]))
    path, kind = f"{SCHEDULINGS}/p/status", "application/strategic-merge-patch+json"
    for name in ("gpu", "nic"):
        body = {"status": {"resourceClaims": [{"name": name, "unsuitableNodes": ["n1"]}]}}
        assert api("PATCH", path, body, kind=kind).code == 200
    seen = api("GET", f"{SCHEDULINGS}/p").body["status"]["resourceClaims"]
    assert [one["name"] for one in seen] == ["gpu", "nic"]
    body = {"apiVersion": "resource.k8s.io/v1alpha1", "kind": "PodScheduling", "metadata": {"name": "p"}}
    body["status"] = {"resourceClaims": [{"name": "fpga"}]}
    applied = api("PATCH", path, body, kind="application/apply-patch+yaml", fieldManager="third")
    assert applied.code == 200, applied.body
    assert [one["name"] for one in applied.body["status"]["resourceClaims"]] == ["gpu", "nic", "fpga"]


def test_a_status_that_a_user_sends_along_has_no_effect(api):
    """3063-STATE-03, 3063-ALLOC-04."""
    made = api.made(CLAIMS, {**claim(), "status": allocated(resourceHandle="mine")})
    assert made["status"] == {}
    changed = api("PUT", f"{CLAIMS}/c", {**made, "status": allocated(resourceHandle="mine")})
    assert (changed.code, changed.body["status"]) == (200, {})


def test_a_claim_may_be_created_before_its_class(api):
    """3063-CLAIM-02, 3063-STATE-11."""
    assert api("POST", CLAIMS, claim("nowhere")).code == 201


def test_a_wrong_uid_or_resource_version_changes_nothing(api):
    """3063-STATE-22."""
    made = api.made(CLAIMS, claim())
    stale = {"metadata": {"resourceVersion": "1"}, "status": allocated()}
    assert api.patch(f"{CLAIMS}/c/status", stale).code == 409
    other = {"metadata": {"uid": "another"}, "status": allocated()}
    assert api.patch(f"{CLAIMS}/c/status", other).code in (409, 422)
    assert api("GET", f"{CLAIMS}/c").body == made


def test_the_second_of_two_schedulers_is_refused(api):
    """3063-STATE-23."""
    api.made(CLAIMS, claim())
    allocate(api)
    seen = api("GET", f"{CLAIMS_V1}/c").body
    first = {**seen, "status": {**seen["status"], "reservedFor": [consumer("a")]}}
    second = {**seen, "status": {**seen["status"], "reservedFor": [consumer("b")]}}
    assert api("PUT", f"{CLAIMS_V1}/c/status", first).code == 200
    assert api("PUT", f"{CLAIMS_V1}/c/status", second).code == 409
    blind = api.patch(f"{CLAIMS_V1}/c/status", {"status": {"reservedFor": [consumer("a"), consumer("b")]}})
    assert blind.causes == [("status.reservedFor", "FieldValueForbidden")]


def test_clearing_finalizers_by_force_lets_a_claim_go(api):
    """3063-CLAIM-07."""
    made = api.made(
        CLAIMS, {**claim(), "metadata": {"name": "c", "finalizers": [classic.limits.finalizer_of(DRIVER)]}}
    )
    allocate(api)
    assert api("DELETE", f"{CLAIMS}/c").body["metadata"]["uid"] == made["metadata"]["uid"]
    assert api("GET", f"{CLAIMS}/c").body["metadata"]["deletionTimestamp"]
    api.patch(f"{CLAIMS}/c", {"metadata": {"finalizers": None}})
    assert api("GET", f"{CLAIMS}/c").code == 404


# Clients of other versions


@pytest.mark.parametrize("version", OTHERS)
def test_a_typed_client_that_writes_back_what_it_read_hurts_nothing(api, version):
    path = f"/{version}/namespaces/default/resourceclaims/c"
    api.made(CLAIMS, claim(allocationMode="Immediate", parametersRef={"kind": "K", "name": "n"}))
    allocate(api, availableOnNodes=ON_N1, resourceHandle="h", shareable=True)
    whole = api("GET", f"{CLAIMS}/c").body
    for subresource in ("", "/status"):
        seen = typed(api("GET", path).body, f"resource_{version}.ResourceClaim")
        assert "resourceClassName" not in seen["spec"]
        assert "driverName" not in seen["status"]
        seen["metadata"]["labels"] = {"from": f"typed{subresource[:1]}"}
        seen["status"]["reservedFor"] = [consumer()]
        answer = api("PUT", path + subresource, seen)
        assert answer.code == 200, answer.body
    now = api("GET", f"{CLAIMS}/c").body
    assert now["spec"] == whole["spec"]
    assert now["status"] == {**whole["status"], "reservedFor": [consumer()]}
    assert now["metadata"]["labels"] == {"from": "typed"}


def test_a_typed_client_cannot_hurt_a_template_either(api):
    made = api.made(TEMPLATES, template(parametersRef={"kind": "K", "name": "n"}))
    seen = typed(api("GET", f"{TEMPLATES_V1}/t").body, "resource_v1.ResourceClaimTemplate")
    seen["metadata"]["labels"] = {"a": "b"}
    assert api("PUT", f"{TEMPLATES_V1}/t", seen).code == 200
    assert api("GET", f"{TEMPLATES}/t").body["spec"] == made["spec"]


@pytest.mark.parametrize("version", OTHERS)
def test_allocations_of_a_classic_claim_are_written_in_its_own_version(api, version):
    path = f"/{version}/namespaces/default/resourceclaims/c/status"
    api.made(CLAIMS, claim())
    wanted = structured.allocation(structured.result(request="classic"))
    for status in ({"allocation": wanted}, {"allocation": {"nodeSelector": ON_N1}}, {"allocation": {}}):
        refused = api.patch(path, {"status": status})
        assert refused.code == 422, refused.body
        assert "of this claim is written in resource.k8s.io/v1alpha1 only" in refused.body["message"]
    allocate(api)
    for status in (
        {"allocation": None},
        {"deallocationRequested": True},
        {"driverName": "other.example.com"},
    ):
        refused = api.patch(path, {"status": status})
        assert refused.code == 422, refused.body
        assert "resource.k8s.io/v1alpha1 only" in refused.body["message"]
    assert api("GET", f"{CLAIMS}/c").body["status"] == allocated()


def test_a_spec_that_is_said_otherwise_is_refused_in_every_version(api):
    api.made(CLAIMS, claim())
    for changes in (
        {"resourceClassName": "nic"},
        {"devices": {"requests": []}},
        {"allocationMode": "Immediate"},
    ):
        assert api.patch(f"{CLAIMS_V1}/c", {"spec": changes}).causes == [("spec", "FieldValueInvalid")]


def test_a_structured_claim_is_shown_in_v1alpha1_and_written_elsewhere(api):
    api.made(CLAIMS_V1, structured.claim())
    allocation = structured.allocation(node="n1")
    api.patch(f"{CLAIMS_V1}/c/status", {"status": {"allocation": allocation}})
    whole = api("GET", f"{CLAIMS_V1}/c").body
    seen = api("GET", f"{CLAIMS}/c").body
    assert seen["spec"] == whole["spec"]
    assert seen["status"]["allocation"]["devices"] == allocation["devices"]
    bare = {name: seen[name] for name in ("apiVersion", "kind", "metadata")}
    place = {"availableOnNodes": seen["status"]["allocation"]["availableOnNodes"]}
    bare |= {"spec": {}, "status": {"allocation": place}}
    bare["metadata"]["labels"] = {"a": "b"}
    for subresource in ("", "/status"):
        answer = api(
            "PUT",
            f"{CLAIMS}/c{subresource}",
            {**bare, "metadata": {**bare["metadata"], "resourceVersion": ""}},
        )
        assert answer.code == 200, answer.body
    now = api("GET", f"{CLAIMS_V1}/c").body
    assert (now["spec"], now["status"], now["metadata"]["labels"]) == (
        whole["spec"],
        whole["status"],
        {"a": "b"},
    )
    refused = api.patch(f"{CLAIMS}/c/status", {"status": {"allocation": None}})
    assert "of this claim is written in resource.k8s.io/v1 only" in refused.body["message"]
    assert api("POST", CLAIMS, structured.claim()).causes == [
        ("spec.resourceClassName", "FieldValueRequired")
    ]


def test_apply_knows_the_claim_in_either_version(api):
    """Owners of fields are kept in the version in which they wrote."""
    body = {"apiVersion": "resource.k8s.io/v1alpha1", "kind": "ResourceClaim", "metadata": {"name": "c"}}
    body["spec"] = {"resourceClassName": "gpu"}

    def applied(path, body, manager):
        answer = api("PATCH", path, body, kind="application/apply-patch+yaml", fieldManager=manager)
        assert answer.code in (200, 201), answer.body
        return answer.body

    applied(f"{CLAIMS}/c", body, "me")
    labelled = {**body, "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "c", "labels": {"a": "b"}}}
    labelled.pop("spec")
    applied(f"{CLAIMS_V1}/c", labelled, "other")
    seen = applied(f"{CLAIMS}/c", {**body, "metadata": {"name": "c", "annotations": {"c": "d"}}}, "me")
    assert (seen["metadata"]["labels"], seen["metadata"]["annotations"]) == ({"a": "b"}, {"c": "d"})
    assert seen["spec"] == {"resourceClassName": "gpu", "allocationMode": "WaitForFirstConsumer"}


# Rights


def test_a_driver_allocates_its_own_claims_and_no_structured_ones(api, allot_server):
    """`allot:classic-driver` and a name: what the controller of a driver is given."""
    status = may("resourceclaims/status", "patch")
    grant(allot_server, "gpu", status, may("resourceclaims/driver", "patch", names=[DRIVER]))
    grant(allot_server, "nic", status, may("resourceclaims/driver", "patch", names=["nic.example.com"]))
    api.made(CLAIMS, claim())
    path = f"{CLAIMS}/c/status"
    given = {"status": {**allocated(resourceHandle="h"), "reservedFor": [consumer()]}}
    refused = api.patch(path, given, user=User("nic"))
    assert refused.causes == [("status.allocation", "FieldValueForbidden")]
    assert 'cannot patch resource "resourceclaims/driver"' in refused.body["message"]
    assert api.patch(path, given, user=User("gpu")).code == 200  # 3063-PSCHED-09: with its first user
    taken = api.patch(path, {"status": {"reservedFor": None}}, user=User("gpu"))
    assert taken.causes == [("status.reservedFor", "FieldValueForbidden")]
    assert api.patch(path, {"status": {"reservedFor": None}}).code == 200
    asked = api.patch(path, {"status": {"deallocationRequested": True}}, user=User("gpu"))
    assert asked.causes == [("status.deallocationRequested", "FieldValueForbidden")]
    assert api.patch(path, {"status": {"deallocationRequested": True}}).code == 200
    cleared = {"allocation": None, "deallocationRequested": None, "driverName": None}
    assert api.patch(path, {"status": cleared}, user=User("nic")).code == 422
    assert api.patch(path, {"status": cleared}, user=User("gpu")).code == 200
    api.made(CLAIMS_V1, {**structured.claim(), "metadata": {"name": "s", "namespace": "default"}})
    wanted = {"status": {"allocation": structured.allocation()}}
    refused = api.patch(f"{CLAIMS_V1}/s/status", wanted, user=User("gpu"))
    assert refused.causes == [("status.allocation", "FieldValueForbidden")]


def test_a_driver_cannot_allocate_what_is_of_the_class_of_another(api):
    """The class is read in the transaction that stores the allocation."""
    api.made(CLASSES, class_(driver="other.example.com"))
    api.made(CLAIMS, claim())
    refused = api.patch(f"{CLAIMS}/c/status", {"status": allocated()})
    assert refused.causes == [("status.driverName", "FieldValueForbidden")]
    assert "resource class gpu is of driver other.example.com" in refused.body["message"]
    assert api.patch(f"{CLASSES}/gpu", {"driverName": DRIVER}).code == 200
    assert api.patch(f"{CLAIMS}/c/status", {"status": allocated()}).code == 200


def test_a_driver_does_not_take_what_another_has_allocated_by_writing_its_own_name_there(api, allot_server):
    status = may("resourceclaims/status", "patch")
    grant(allot_server, "nic", status, may("resourceclaims/driver", "patch", names=["nic.example.com"]))
    api.made(CLAIMS, claim())
    allocate(api)
    path, name = f"{CLAIMS}/c/status", {"driverName": "nic.example.com"}
    for taken in ({**name, "allocation": None}, {**name, "allocation": {"resourceHandle": "h"}}):
        refused = api.patch(path, {"status": taken}, user=User("nic"))
        assert ("status.allocation", "FieldValueForbidden") in refused.causes
        assert 'cannot patch resource "resourceclaims/driver"' in refused.body["message"]
    assert api("GET", f"{CLAIMS}/c").body["status"] == allocated()


@pytest.mark.parametrize("role", ["view", "edit", "admin"])
def test_whoever_may_do_everything_in_a_namespace_has_no_part_in_a_negotiation(api, allot_server, role):
    """Users make claims and templates; who else could write nodes, answers or users into their objects?"""
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": role}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    bindings = allot_server.client().resource("rbac.authorization.k8s.io", "v1", "rolebindings")
    body = {"metadata": {"name": role}, "roleRef": reference, "subjects": [subject]}
    allot_server.run(bindings.create(body, "default"))
    api.made(CLASSES, class_())
    api.made(CLAIMS, claim())
    api.made(SCHEDULINGS, pod_scheduling(potentialNodes=["n1"]))
    user, may_make = User(role), role != "view"
    said = {"status": {"resourceClaims": [{"name": "gpu", "unsuitableNodes": ["n1"]}]}}
    assert api("POST", SCHEDULINGS, pod_scheduling("q"), user=user).code == 403
    assert api.patch(f"{SCHEDULINGS}/p", {"spec": {"selectedNode": "n1"}}, user=user).code == 403
    assert api.patch(f"{SCHEDULINGS}/p/status", said, user=user).code == 403
    assert api("DELETE", f"{SCHEDULINGS}/p", user=user).code == 403
    assert api("GET", f"{SCHEDULINGS}/p", user=user).code == 200
    for path in (CLAIMS, CLAIMS_V1):
        assert api.patch(f"{path}/c/status", {"status": allocated()}, user=user).code == 403
    assert api("POST", CLASSES, class_("mine"), user=user).code == 403
    assert (api("POST", CLAIMS, claim(name="mine"), user=user).code == 201) == may_make


def test_the_shipped_role_of_drivers_cannot_write_structured_allocations(allot_server):
    async def rules():
        roles = allot_server.client().resource(
            "rbac.authorization.k8s.io", "v1", "clusterroles", namespaced=False
        )
        return (await roles.get("allot:classic-driver")).fields["rules"]

    named = {one for rule in allot_server.run(rules()) for one in rule["resources"]}
    assert {"resourceclaims/driver", "resourceclaims/status", "podschedulings/status"} <= named
    assert "resourceclaims/binding" not in named


# The gate


def test_off_nothing_is_served_and_on_again_nothing_is_lost(tmp_path):
    """3063-API-03, 3063-API-05, 3063-STATE-04, 3063-GRAD-04: three servers, one after the other, on one
    store. 3063-PRR-03: what nodes and the claim controller read and write of claims is served throughout."""

    async def asked(server, method, path, body=None, kind="application/json"):
        headers = {"content-type": kind, "accept": "application/json"}
        sent = b"" if body is None else json.dumps(body).encode()
        made = Request(method, f"/apis/resource.k8s.io{path}", {}, headers, sent)
        answer = await server.api.handle(made, identities.ADMIN)
        return answer.status, json.loads(answer.body)

    async def story():
        store, merge = MemoryStore(), "application/merge-patch+json"
        off = Options(gates=Gates({classic.limits.GATE: False}))
        async with api_server(store) as server:
            for path, body in (
                (CLASSES, class_(parametersRef={"kind": "K", "name": "n"})),
                (CLAIMS, claim()),
                (TEMPLATES, template()),
                (SCHEDULINGS, pod_scheduling(potentialNodes=["n1"])),
            ):
                assert (await asked(server, "POST", path, body))[0] == 201
            status = {"status": {**allocated(resourceHandle="h"), "reservedFor": [consumer()]}}
            assert (await asked(server, "PATCH", f"{CLAIMS}/c/status", status, merge))[0] == 200
            paths = (f"{CLASSES}/gpu", f"{CLAIMS}/c", f"{TEMPLATES}/t", f"{SCHEDULINGS}/p")
            before = [(await asked(server, "GET", path))[1] for path in paths]
        async with api_server(store, off) as server:
            group = (await asked(server, "GET", ""))[1]
            assert [one["version"] for one in group["versions"]] == ["v1", "v1beta2", "v1beta1"]
            assert [(await asked(server, "GET", path))[0] for path in ("/v1alpha1", *paths)] == [404] * 5
            code, seen = await asked(server, "GET", f"{CLAIMS_V1}/c")
            assert (code, seen["status"]) == (200, status["status"])
            seen = typed(seen)
            seen["metadata"]["labels"] = {"a": "b"}
            assert (await asked(server, "PUT", f"{CLAIMS_V1}/c", seen))[0] == 200
            released = {"status": {"reservedFor": None}}
            assert (await asked(server, "PATCH", f"{CLAIMS_V1}/c/status", released, merge))[0] == 200
        async with api_server(store) as server:
            after = [(await asked(server, "GET", path))[1] for path in paths]
        for was, now in zip(before, after, strict=True):
            for part in ("spec", "driverName", "parametersRef"):
                assert now.get(part) == was.get(part)
        assert after[1]["status"] == allocated(resourceHandle="h")
        assert after[1]["metadata"]["labels"] == {"a": "b"}
        await store.close()

    asyncio.run(story())


def test_what_is_in_a_namespace_that_is_deleted_while_it_is_off_goes_with_it():
    """Nobody sees a PodScheduling then, and nobody would look for it later. Others stay."""

    async def story():
        store = MemoryStore()
        off = Options(gates=Gates({classic.limits.GATE: False}))
        names = [f"p{number}" for number in range(120)]
        async with api_server(store) as server:
            client = server.client()
            spaces = client.resource("", "v1", "namespaces", namespaced=False)
            talks = client.resource("resource.k8s.io", "v1alpha1", "podschedulings")
            for space in ("leaving", "leaving-not"):
                await spaces.create({"metadata": {"name": space}})
                for name in names if space == "leaving" else names[:1]:
                    await talks.create({"metadata": {"name": name, "namespace": space}, "spec": {}})
        async with api_server(store, off) as server:
            client = server.client()
            spaces = client.resource("", "v1", "namespaces", namespaced=False)
            staying = await spaces.get("leaving-not")
            emptied = staying.changed({"spec": {"finalizers": []}})
            await spaces.update(emptied, subresource="finalize")  # it is not being deleted
            leaving = await spaces.delete("leaving")
            emptied = leaving.changed({"spec": {"finalizers": []}})
            await spaces.update(emptied, subresource="finalize")
        async with api_server(store) as server:
            talks = server.client().resource("resource.k8s.io", "v1alpha1", "podschedulings")
            assert [(one.namespace, one.name) for one in (await talks.list()).objects] == [
                ("leaving-not", "p0")
            ]
        await store.close()

    asyncio.run(story())


def test_switching_it_on_takes_nothing_away_and_makes_nothing_larger():
    """3063-PRR-11, 3063-SCALE-04, 3063-PRR-02."""
    on, off = (
        {
            (kind.plural, one.name)
            for kind in classic.served(Gates({classic.limits.GATE: is_on}))
            for one in kind.versions
        }
        for is_on in (True, False)
    )
    assert off < on

    async def stored(is_on):
        async with api_server(options=Options(gates=Gates({classic.limits.GATE: is_on}))) as server:
            made = await server.client().of(resource.RESOURCE_CLAIM).create(structured.claim())
            return {name: made.fields[name] for name in ("spec", "status")}

    assert asyncio.run(stored(True)) == asyncio.run(stored(False))


def test_claims_and_classes_are_not_counted_by_the_server(api):
    """3063-SCALE-03: more classes than anybody expects, and more claims than one list shows at once."""
    for at in range(30):
        api.made(CLASSES, class_(f"class-{at}"))
    for at in range(600):
        api.made(CLAIMS, claim(f"class-{at % 30}", f"c-{at}"))
    listed = api._server.run(api._server.client().of(resource.RESOURCE_CLAIM).list("default"))
    assert len(listed.objects) == 600


# Tables


def test_kubectl_sees_useful_columns(api):
    """3063-MON-01, 3063-ALT-03."""

    def row(path, *wanted):
        made = Request(
            "GET",
            f"/apis/resource.k8s.io{path}",
            {},
            {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"},
        )
        table = json.loads(api._server.run(api._server.api.handle(made, identities.ADMIN)).body)
        names = [one["name"] for one in table["columnDefinitions"]]
        (found,) = table["rows"]
        return [found["cells"][names.index(name)] for name in wanted]

    api.made(CLASSES, class_(parametersRef={"apiGroup": "gpu.example.com", "kind": "Init", "name": "fast"}))
    assert row(CLASSES, "Name", "DriverName", "Parameters") == ["gpu", DRIVER, "Init.gpu.example.com/fast"]
    api.made(CLAIMS, claim())
    for path in (CLAIMS, CLAIMS_V1):
        assert row(path, "Name", "State", "Class") == ["c", "pending", "gpu"]
    allocate(api, availableOnNodes=ON_N1)
    api.patch(f"{CLAIMS}/c/status", {"status": {"deallocationRequested": True}})
    assert row(CLAIMS, "State", "Devices", "Node") == ["allocated,deallocation-requested", DRIVER, "n1"]
    api.made(SCHEDULINGS, pod_scheduling(selectedNode="n1", potentialNodes=["n1", "n2"]))
    api.patch(
        f"{SCHEDULINGS}/p/status",
        {"status": {"resourceClaims": [{"name": "gpu", "unsuitableNodes": ["n2"]}]}},
    )
    shown = row(SCHEDULINGS, "Name", "SelectedNode", "Potential", "Unsuitable")
    assert shown == ["p", "n1", 2, "gpu:1"]
