"""resource.k8s.io through the real API server: codes, reasons, causes, warnings."""

import asyncio
import json
from typing import Any, NamedTuple

import pytest

from allot.api import Request, User
from allot.apiserver import identities
from api.resource.objects import (
    allocation,
    claim,
    class_,
    device,
    opaque,
    pod_reference,
    report,
    request,
    result,
    rule,
    slice_,
    template,
    with_change,
)

GROUP = "/apis/resource.k8s.io"
ALICE = User("alice")


class Answer(NamedTuple):
    code: int
    body: dict[str, Any]
    warnings: list[str]

    @property
    def causes(self):
        return [(one["field"], one["reason"]) for one in self.body["details"]["causes"]]


class Api:
    """Says what a client says on the wire, and keeps what it hears."""

    def __init__(self, server):
        self._server = server

    def __call__(self, method, path, body=None, user=identities.ADMIN, kind="application/json", **query):
        headers = {"content-type": kind, "accept": "application/json"}
        sent = b"" if body is None else json.dumps(body).encode()
        made = Request(method, GROUP + path, query, headers, sent)
        answer = self._server.run(self._server.api.handle(made, user))
        warnings = [text for name, text in answer.headers if name == "Warning"]
        return Answer(answer.status, json.loads(answer.body), warnings)

    def made(self, path, body):
        answer = self("POST", path, body)
        assert answer.code == 201, answer.body
        return answer.body

    def patch(self, path, changes, **more):
        return self("PATCH", path, changes, kind="application/merge-patch+json", **more)


CLAIMS = "/v1/namespaces/default/resourceclaims"
CLAIMS_V1BETA1 = "/v1beta1/namespaces/default/resourceclaims"
TEMPLATES = "/v1/namespaces/default/resourceclaimtemplates"
SLICES = "/v1/resourceslices"
CLASSES = "/v1/deviceclasses"
RULES = "/v1/devicetaintrules"


@pytest.fixture
def api(allot_server):
    return Api(allot_server)


# Answers


def test_a_broken_rule_is_one_422_that_names_every_field(api):
    """2.6."""
    answer = api("POST", CLAIMS, claim(request("R_", deviceClassName="")))
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["message"].startswith('ResourceClaim.resource.k8s.io "c" is invalid: [spec.devices')
    assert answer.causes == [
        ("spec.devices.requests[0].name", "FieldValueInvalid"),
        ("spec.devices.requests[0].exactly.deviceClassName", "FieldValueRequired"),
    ]


def test_selectors_are_judged_by_the_expression_language(api):
    """2.6: compile errors are Invalid, cost is Forbidden."""

    def refusal(expression):
        return api("POST", CLASSES, class_(selectors=[{"cel": {"expression": expression}}]))

    assert refusal("device.foo").causes == [("spec.selectors[0].cel.expression", "FieldValueInvalid")]
    assert refusal("1").causes == [("spec.selectors[0].cel.expression", "FieldValueInvalid")]
    assert refusal('device.driver == "d.example.com"').code == 201


def test_a_body_of_the_wrong_shape_is_a_400(api):
    answer = api("POST", CLAIMS, with_change(claim(), "spec.devices.requests", "many"))
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
    answer = api("POST", SLICES, slice_(device(capacity={"m": {"value": "many"}})))
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")


def test_unknown_fields_are_dropped_with_a_warning_or_refused(api):
    body = with_change(claim(), "spec.future", 1)
    refused = api("POST", CLAIMS, body, fieldValidation="Strict")
    assert (refused.code, refused.body["reason"]) == (400, "BadRequest")
    assert 'strict decoding error: unknown field "spec.future"' in refused.body["message"]
    made = api("POST", CLAIMS, body)
    assert made.warnings == ['299 - "unknown field \\"spec.future\\""']
    assert "future" not in api("GET", f"{CLAIMS}/c").body["spec"]
    assert "future" not in api("GET", f"{CLAIMS_V1BETA1}/c").body["spec"]


@pytest.mark.parametrize("odd", [7, "x", True, {}, [7], [[]], [None], {"a": 1}], ids=str)
def test_selectors_where_a_claim_has_none_are_dropped_and_odd_ones_elsewhere_refused(api, odd):
    """A claim's spec was read as if it were a class: any `selectors` in it ended in a 500."""
    for path, body in ((CLAIMS, claim()), (TEMPLATES, template())):
        made = api("POST", path, with_change(body, "spec.selectors", odd))
        assert (made.code, len(made.warnings)) == (201, 1)
    assert api("POST", CLASSES, {"metadata": {"name": "c"}, "spec": {"selectors": odd}}).code in (400, 422)
    wrong = claim({"name": "r", "exactly": {"deviceClassName": "gpu", "selectors": odd}})
    assert api("POST", CLAIMS, wrong).code in (400, 422)


def test_put_of_a_missing_name_is_a_404(api):
    answer = api("PUT", f"{CLAIMS}/c", claim())
    assert (answer.code, answer.body["reason"]) == (404, "NotFound")
    assert answer.body["message"] == 'resourceclaims.resource.k8s.io "c" not found'


# Versions


def test_one_claim_in_three_versions(api):
    """2.1."""
    flat = {"name": "r", "deviceClassName": "gpu"}
    answer = api("POST", CLAIMS_V1BETA1, claim(flat))
    assert answer.code == 201
    deprecated = "resource.k8s.io/v1beta1 ResourceClaim is deprecated in v1.35+, unavailable in v1.38+"
    assert answer.warnings == [f'299 - "{deprecated}"']
    assert answer.body["apiVersion"] == "resource.k8s.io/v1beta1"
    full = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    assert answer.body["spec"]["devices"]["requests"] == [{"name": "r", **full}]
    for version in ("v1", "v1beta2"):
        seen = api("GET", f"/{version}/namespaces/default/resourceclaims/c").body
        assert seen["apiVersion"] == f"resource.k8s.io/{version}"
        assert seen["spec"]["devices"]["requests"] == [{"name": "r", "exactly": full}]


def test_reading_in_a_deprecated_version_is_warned_about_too(api):
    api.made(CLAIMS, claim())
    assert len(api("GET", f"{CLAIMS_V1BETA1}/c").warnings) == 1
    assert api("GET", f"{CLAIMS}/c").warnings == []


def test_a_slice_in_v1beta1_has_its_wrapper_back(api):
    api.made(SLICES, slice_(device("a", attributes={"x": {"int": 1}})))
    (seen,) = api("GET", "/v1beta1/resourceslices").body["items"]
    assert seen["spec"]["devices"] == [{"name": "a", "basic": {"attributes": {"x": {"int": 1}}}}]
    assert seen["spec"]["nodeName"] == "n1"


def test_causes_speak_the_version_of_the_request(api):
    flat = {"name": "r", "deviceClassName": "gpu", "allocationMode": "Some"}
    answer = api("POST", CLAIMS_V1BETA1, claim(flat))
    assert answer.causes == [("spec.devices.requests[0].allocationMode", "FieldValueNotSupported")]


# Immutability, generations, field selectors


def test_a_claim_is_immutable_but_for_its_metadata(api):
    stored = api.made(CLAIMS, claim())
    changed = with_change(stored, "spec.devices.requests.0.exactly.count", 2)
    answer = api("PUT", f"{CLAIMS}/c", changed)
    assert answer.causes == [("spec", "FieldValueInvalid")]
    assert "field is immutable" in answer.body["message"]
    assert api.patch(f"{CLAIMS}/c", {"metadata": {"labels": {"a": "b"}}}).code == 200
    template_made = api.made(TEMPLATES, template())
    changed = with_change(template_made, "spec.spec.devices.requests.0.exactly.count", 2)
    assert api("PUT", f"{TEMPLATES}/t", changed).causes == [("spec", "FieldValueInvalid")]


def test_generation_counts_specs_of_slices_classes_and_rules_only(api):
    """2.1."""
    assert "generation" not in api.made(CLAIMS, claim())["metadata"]
    stored = api.made(SLICES, slice_(device("a")))
    assert stored["metadata"]["generation"] == 1
    same = api.patch(f"{SLICES}/s", {"metadata": {"labels": {"a": "b"}}}).body
    assert same["metadata"]["generation"] == 1
    more = api.patch(f"{SLICES}/s", {"spec": {"devices": [device("a"), device("b")]}}).body
    assert more["metadata"]["generation"] == 2
    assert api.made(CLASSES, class_())["metadata"]["generation"] == 1
    assert api.made(RULES, rule())["metadata"]["generation"] == 1


def test_slices_are_selected_by_node_driver_and_pool(api):
    api.made(SLICES, slice_())
    other = {"metadata": {"name": "t"}, "spec": {**slice_()["spec"], "nodeName": "n2"}}
    api.made(SLICES, other)

    def names(selector):
        return [one["metadata"]["name"] for one in api("GET", SLICES, fieldSelector=selector).body["items"]]

    assert names("spec.nodeName=n2") == ["t"]
    assert names("spec.nodeName!=n2") == ["s"]
    assert names("spec.driver=d.example.com,spec.pool.name==p") == ["s", "t"]
    for selector in ("spec.allNodes=true", "metadata.namespace=default"):
        answer = api("GET", SLICES, fieldSelector=selector)
        field = selector.partition("=")[0]
        assert answer.code == 400
        assert answer.body["message"] == (
            f"field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {field}"
        )
    answer = api("GET", CLASSES, fieldSelector="spec.driver=x")
    assert answer.code == 400
    assert answer.body["message"].startswith('"spec.driver" is not a known field selector')
    assert api("GET", CLASSES, fieldSelector="metadata.namespace=x").body["items"] == []


def test_taint_rules_of_v1_are_deleted_and_updated_their_own_way(api):
    """2.1: a Status for a DELETE, and no PUT without a resourceVersion."""
    stored = api.made(RULES, rule())
    assert stored["status"] == {}
    blind = with_change(stored, "metadata.resourceVersion", "")
    answer = api("PUT", f"{RULES}/r", blind)
    assert answer.causes == [("metadata.resourceVersion", "FieldValueInvalid")]
    assert (
        api("PUT", "/v1beta2/devicetaintrules/r", {**blind, "apiVersion": "resource.k8s.io/v1beta2"}).code
        == 200
    )
    assert api("DELETE", f"{RULES}/r").body["kind"] == "Status"
    api.made(CLASSES, class_())
    assert api("DELETE", f"{CLASSES}/gpu").body["kind"] == "DeviceClass"


# The status of a claim


def test_the_life_of_an_allocation(api):
    """12.1, 12.2: set once, reserved, reported on, and taken away in one write."""
    api.made(CLAIMS, claim())
    path = f"{CLAIMS}/c/status"
    allocated = api.patch(path, {"status": {"allocation": allocation(), "reservedFor": [pod_reference()]}})
    assert allocated.code == 200, allocated.body
    assert api.patch(path, {"status": {"devices": [report(data={"a": 1})]}}).code == 200
    changed = api.patch(path, {"status": {"allocation": allocation(result("gpu-1"))}})
    assert ("status.allocation", "FieldValueInvalid") in changed.causes
    freed = api.patch(path, {"status": {"allocation": None, "reservedFor": None}})
    assert freed.code == 200, freed.body
    assert freed.body["status"] == {}


def test_a_status_write_changes_nothing_but_the_status(api):
    stored = api.made(CLAIMS, claim())
    body = with_change(stored, "metadata.labels", {"a": "b"})
    body = with_change(body, "spec.devices.requests.0.exactly.count", 9)
    body["status"] = {"allocation": allocation()}
    seen = api("PUT", f"{CLAIMS}/c/status", body).body
    assert "labels" not in seen["metadata"]
    assert seen["spec"] == stored["spec"]
    assert api("PUT", f"{CLAIMS}/c", {**seen, "status": {}}).body["status"] == seen["status"]


def test_a_device_goes_to_one_claim(api):
    """Architecture 5: the second writer gets a 409, until the first lets go."""
    for name in ("c", "d"):
        api.made(CLAIMS, with_change(claim(), "metadata.name", name))
    wanted = {"status": {"allocation": allocation(result("gpu-0"))}}
    assert api.patch(f"{CLAIMS}/c/status", wanted).code == 200
    loser = api.patch(f"{CLAIMS}/d/status", wanted)
    assert (loser.code, loser.body["reason"]) == (409, "Conflict")
    assert "d.example.com/p/gpu-0 is held by another claim" in loser.body["message"]
    assert api("DELETE", f"{CLAIMS}/c").code == 200
    assert api.patch(f"{CLAIMS}/d/status", wanted).code == 200


def grant(server, user, *rules):
    """Let `user` do what the rules say, in the whole cluster."""

    async def write():
        client = server.client()
        group = "rbac.authorization.k8s.io"
        meta = {"metadata": {"name": f"test-{user}"}}
        await client.resource(group, "v1", "clusterroles").create({**meta, "rules": list(rules)})
        subject = {"kind": "User", "apiGroup": group, "name": user}
        role = {"kind": "ClusterRole", "apiGroup": group, "name": f"test-{user}"}
        bindings = client.resource(group, "v1", "clusterrolebindings")
        await bindings.create({**meta, "subjects": [subject], "roleRef": role})

    server.run(write())


def may(resource, *verbs, names=()):
    allowed = {"apiGroups": ["resource.k8s.io"], "resources": [resource], "verbs": list(verbs)}
    return {**allowed, "resourceNames": list(names)} if names else allowed


def test_a_status_write_needs_the_permission_for_what_it_changes(api, allot_server):
    """2.4: /status alone lets nobody allocate; the refusal is a 422 with a Forbidden cause."""
    api.made(CLAIMS, claim())
    path, wanted = f"{CLAIMS}/c/status", {"status": {"allocation": allocation()}}
    assert api.patch(path, wanted, user=ALICE).code == 403
    grant(allot_server, "alice", may("resourceclaims/status", "update", "patch"))
    refused = api.patch(path, wanted, user=ALICE)
    assert refused.code == 422
    assert refused.causes == [("status.allocation", "FieldValueForbidden")]
    grant(allot_server, "bob", may("resourceclaims/status", "patch"), may("resourceclaims/binding", "patch"))
    assert api.patch(path, wanted, user=User("bob")).code == 200


def test_drivers_report_on_their_own_devices(api, allot_server):
    api.made(CLAIMS, claim())
    path = f"{CLAIMS}/c/status"
    assert api.patch(path, {"status": {"allocation": allocation()}}).code == 200
    reporting = {"status": {"devices": [report()]}}
    status = may("resourceclaims/status", "patch")
    verb = "arbitrary-node:patch"
    grant(allot_server, "alice", status, may("resourceclaims/driver", verb, names=["other.example.com"]))
    assert api.patch(path, reporting, user=ALICE).causes == [("status.devices", "FieldValueForbidden")]
    grant(allot_server, "bob", status, may("resourceclaims/driver", verb, names=["d.example.com"]))
    assert api.patch(path, reporting, user=User("bob")).code == 200


def test_admin_access_needs_the_label_of_the_namespace(api, allot_server):
    admin = claim(request(adminAccess=True))
    refused = api("POST", CLAIMS, admin)
    assert refused.causes == [("spec.devices.requests[0].adminAccess", "FieldValueForbidden")]
    admins = template(request(adminAccess=True))
    refused = api("POST", TEMPLATES, admins)
    assert refused.causes == [("spec.devices.requests[0].adminAccess", "FieldValueForbidden")]

    async def label():
        namespaces = allot_server.client().resource("", "v1", "namespaces", namespaced=False)
        body = {"metadata": {"name": "admins", "labels": {"resource.kubernetes.io/admin-access": "true"}}}
        await namespaces.create(body)

    allot_server.run(label())
    for path, body in ((CLAIMS, admin), (TEMPLATES, admins)):
        body["metadata"]["namespace"] = "admins"
        assert api("POST", path.replace("default", "admins"), body).code == 201


@pytest.mark.parametrize("version", ["create", "status"])
def test_a_label_counts_from_the_moment_it_is_written(allot_server, version):
    """Nobody is refused for want of a label that the namespace has by now: what the server has read
    of it may be older than the request."""

    async def story():
        client = allot_server.client()
        namespaces = client.resource("", "v1", "namespaces", namespaced=False)
        claims = client.resource("resource.k8s.io", "v1", "resourceclaims")
        await namespaces.create({"metadata": {"name": "admins"}})
        wanted = claim(request(adminAccess=version == "create"))
        wanted["metadata"]["namespace"] = "admins"
        plain = None if version == "create" else await claims.create(wanted)
        await asyncio.sleep(0.05)
        labels = {"resource.kubernetes.io/admin-access": "true"}
        await namespaces.patch("admins", {"metadata": {"labels": labels}})
        if plain is None:
            await claims.create(wanted)
        else:
            await claims.update_status(
                plain.changed({"status": {"allocation": allocation(result(adminAccess=True))}})
            )

    allot_server.run(story())


# Patches


def test_reservations_merge_by_uid(api):
    """2.4: a scheduler adds itself without knowing the others."""
    api.made(CLAIMS, claim())
    path = f"{CLAIMS}/c/status"
    api.patch(path, {"status": {"allocation": allocation(), "reservedFor": [pod_reference("a")]}})

    def strategic(*entries):
        kind = "application/strategic-merge-patch+json"
        return api("PATCH", path, {"status": {"reservedFor": list(entries)}}, kind=kind).body["status"]

    assert [one["uid"] for one in strategic(pod_reference("b"))["reservedFor"]] == ["a", "b"]
    assert [one["uid"] for one in strategic({"$patch": "delete", "uid": "a"})["reservedFor"]] == ["b"]


def test_drivers_apply_their_own_reports(api):
    """2.4: status.devices is a map by driver, pool, device and share."""
    api.made(CLAIMS, claim())
    path = f"{CLAIMS}/c/status"
    assert api.patch(path, {"status": {"allocation": allocation(result("a"), result("b"))}}).code == 200

    def apply(manager, one):
        body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}}
        body["status"] = {"devices": [one]}
        answer = api("PATCH", path, body, kind="application/apply-patch+yaml", fieldManager=manager)
        assert answer.code == 200, answer.body
        return answer.body["status"]["devices"]

    apply("first", report("a", data={"k": 1}))
    devices = apply("second", report("b", data={"k": 2}))
    assert [(one["device"], one["data"]["k"]) for one in devices] == [("a", 1), ("b", 2)]


def test_an_applied_claim_that_asks_for_nothing_owns_nothing_of_its_spec(api):
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}}
    made = api("PATCH", f"{CLAIMS}/c", body, kind="application/apply-patch+yaml", fieldManager="me")
    assert made.code == 201
    assert made.body["spec"] == {"devices": {"requests": None}}
    assert all("f:spec" not in one["fieldsV1"] for one in made.body["metadata"].get("managedFields", []))


# Tables


def test_kubectl_sees_states_and_wide_columns(api):
    api.made(CLAIMS, claim(config=[opaque(a=1)]))
    api.patch(f"{CLAIMS}/c/status", {"status": {"allocation": allocation(node="n1")}})
    headers = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    made = Request("GET", GROUP + CLAIMS, {}, headers)
    table = json.loads(api._server.run(api._server.api.handle(made, identities.ADMIN)).body)
    columns = [(one["name"], one["priority"]) for one in table["columnDefinitions"]]
    assert columns == [
        ("Name", 0), ("State", 0), ("Age", 0), ("Devices", 1), ("Node", 1), ("Class", 1), ("Pods", 1),
    ]  # fmt: skip
    (row,) = table["rows"]
    assert [row["cells"][i] for i in (0, 1, 3, 4, 5, 6)] == [
        "c", "allocated", "d.example.com/p/gpu-0", "n1", "gpu", "<none>",
    ]  # fmt: skip
