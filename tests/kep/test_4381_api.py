"""KEP-4381 through the real API server: the class's field, the capacity of nodes, rights, the gate."""

import asyncio
import json

import pytest

from allot.api import Gates, Request, User, classic, numeric
from allot.apiserver import Options, identities
from allot.store import MemoryStore
from allot.testing import api_server
from api.classic.objects import claim
from api.numeric.objects import DRIVER, capacity, class_, counter, entry
from api.resource.test_served import Answer, Api

CLASSES = "/v1alpha1/resourceclasses"
CAPACITIES = "/v1alpha1/noderesourcecapacities"
CLAIMS = "/v1alpha1/namespaces/default/resourceclaims"
NODE = User("system:node:n1", groups=("system:nodes", "system:authenticated"))


@pytest.fixture
def api(allot_server):
    return Api(allot_server)


def names(answer: Answer) -> list[str]:
    return [one["metadata"]["name"] for one in answer.body["items"]]


def test_capacity_is_served_with_every_verb(api):
    """4381-CAP-01, 4381-CAP-08, 4381-TST-04: what is in `data` comes back exactly."""
    listed = {one["name"]: one for one in api("GET", "/v1alpha1").body["resources"]}
    found = listed["noderesourcecapacities"]
    assert found["verbs"] == [
        "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
    ]  # fmt: skip
    assert not found["namespaced"]
    odd = {"id": "GPU-1/a b", "apiVersion": "nobody.example.com/v9", "kind": "Odd", "data": {
        "big": 2**63 - 1, "small": -(2**63), "half": 0.5, "no": None, "deep": [{"a": [[]]}], "": "ü\n{{x}}",
    }}  # fmt: skip
    body = capacity(instances=[odd, counter()])
    made = api.made(CAPACITIES, body)
    read = api("GET", f"{CAPACITIES}/n1-frob").body
    assert made["instances"] == read["instances"] == body["instances"]
    read["instances"][1]["data"]["count"] = 3
    assert api("PUT", f"{CAPACITIES}/n1-frob", read).body["instances"][1]["data"]["count"] == 3
    assert api.patch(f"{CAPACITIES}/n1-frob", {"instances": []}).body["instances"] == []
    assert api("DELETE", f"{CAPACITIES}/n1-frob").code == 200
    api.made(CAPACITIES, body)
    assert api("DELETE", CAPACITIES).code == 200
    assert names(api("GET", CAPACITIES)) == []


def test_capacity_is_selected_by_node_and_by_driver(api):
    """4381-CAP-03, 4381-CAP-04, 4381-CAP-10: the node need not exist."""
    for node in ("n1", "n2"):
        for number, driver in enumerate((DRIVER, "other.example.com")):
            api.made(CAPACITIES, capacity(f"{node}-{number}", node, driver))

    def selected(text):
        return names(api("GET", CAPACITIES, fieldSelector=text))

    assert selected("nodeName=n1") == ["n1-0", "n1-1"]
    assert selected(f"driverName={DRIVER}") == ["n1-0", "n2-0"]
    assert selected(f"nodeName=n2,driverName={DRIVER}") == ["n2-0"]
    assert selected("nodeName=n3") == []


def test_watches_select_by_node_and_by_driver_too(allot_server):
    """4381-CAP-03, 4381-CAP-04."""

    async def story():
        client = allot_server.client()
        objects = client.of(numeric.NODE_RESOURCE_CAPACITY)
        for node in ("n1", "n2"):
            for number, driver in enumerate((DRIVER, "other.example.com")):
                await objects.create(capacity(f"{node}-{number}", node, driver))

        async def seen(selector):
            watch = objects.watch(initial_events=True, field_selector=selector, timeout_s=1)
            return [one.object.name async for one in watch if one.type.name == "ADDED"]

        assert await seen("nodeName=n1") == ["n1-0", "n1-1"]
        assert await seen("driverName=other.example.com") == ["n1-1", "n2-1"]
        assert await seen(f"nodeName=n2,driverName={DRIVER}") == ["n2-0"]

    allot_server.run(story())


def test_strict_clients_are_told_of_unknown_fields_but_not_of_what_is_in_data(api):
    """4381-VAL-08."""
    odd = capacity(instances=[{**counter(), "data": {"whatever": {"this": "is"}}}])
    assert api("POST", CAPACITIES, odd, fieldValidation="Strict").code == 201
    wrong = capacity("b", instances=[{**counter(), "date": 1}])
    assert api("POST", CAPACITIES, wrong, fieldValidation="Strict").code == 400


def test_kubectl_shows_node_driver_and_instances(api):
    """4381-CAP-16."""
    api.made(CAPACITIES, capacity(instances=[counter("a"), counter("b")]))
    headers = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    made = Request("GET", f"/apis/resource.k8s.io{CAPACITIES}", {}, headers)
    table = json.loads(api._server.run(api._server.api.handle(made, identities.ADMIN)).body)
    assert [one["name"] for one in table["columnDefinitions"]] == [
        "Name", "Node", "Driver", "Instances", "Age",
    ]  # fmt: skip
    assert table["rows"][0]["cells"][:4] == ["n1-frob", "n1", DRIVER, 2]


def test_the_field_of_a_class_survives_every_verb(api):
    """4381-CLS-16, 4381-TST-04."""
    listed = [entry(shareable=True), entry(apiVersion="v1", kind="ConfigMap")]
    assert api.made(CLASSES, class_("frob", *listed))["numericParameters"] == listed
    read = api("GET", f"{CLASSES}/frob").body
    assert read["numericParameters"] == listed
    read["metadata"]["labels"] = {"a": "b"}
    assert api("PUT", f"{CLASSES}/frob", read).body["numericParameters"] == listed
    changed = api.patch(f"{CLASSES}/frob", {"numericParameters": listed[:1]})
    assert changed.body["numericParameters"] == listed[:1]
    applied = {"apiVersion": "resource.k8s.io/v1alpha1", "kind": "ResourceClass", **class_("frob", *listed)}
    answer = api(
        "PATCH", f"{CLASSES}/frob", applied, kind="application/apply-patch+yaml",
        fieldManager="me", force="true",
    )  # fmt: skip
    assert answer.body["numericParameters"] == listed


def test_the_field_is_watched_and_explained(allot_server):
    """4381-CLS-16: what `kubectl explain resourceclass.numericParameters` shows, down to its fields."""

    async def story():
        client = allot_server.client()
        classes = client.of(classic.RESOURCE_CLASS)
        await classes.create(class_("frob", entry(shareable=True)))
        watch = classes.watch(initial_events=True, timeout_s=1)
        (told,) = [one.object.fields async for one in watch if one.type.name == "ADDED"]
        assert told["numericParameters"] == [entry(shareable=True)]
        answer = await client.send("GET", "/openapi/v3/apis/resource.k8s.io/v1alpha1", {})
        return json.loads(answer.body)["components"]["schemas"]

    schemas = allot_server.run(story())
    listed = schemas["io.k8s.api.resource.v1alpha1.ResourceClass"]["properties"]["numericParameters"]
    assert "the scheduler allocates claims" in listed["description"]
    name = "io.k8s.api.resource.v1alpha1.NumericParameterType"
    assert name in json.dumps(listed["items"])
    described = schemas[name]["properties"]
    assert set(described) == {"apiVersion", "kind", "celTemplate", "shareable"}
    assert all(one["description"] for one in described.values())


def test_a_class_that_is_wrong_is_refused_by_the_path(api):
    """4381-VAL-01."""
    answer = api("POST", CLASSES, class_("frob", entry(kind=""), entry(kind="B", celTemplate="")))
    assert answer.code == 422
    assert answer.causes == [
        ("numericParameters[0].kind", "FieldValueRequired"),
        ("numericParameters[1].celTemplate", "FieldValueRequired"),
    ]


def test_a_node_writes_its_own_capacity_and_no_other(api):
    """4381-SEC-02, 4381-SEC-03, 4381-SEC-04."""
    assert api("POST", CAPACITIES, capacity(), user=NODE).code == 201
    assert api("POST", CAPACITIES, capacity("n2-frob", "n2"), user=NODE).code == 403
    api.made(CAPACITIES, capacity("n2-frob", "n2"))
    smaller = {"instances": []}
    assert api.patch(f"{CAPACITIES}/n1-frob", smaller, user=NODE).code == 200
    assert api.patch(f"{CAPACITIES}/n2-frob", smaller, user=NODE).code == 403
    assert api("DELETE", f"{CAPACITIES}/n2-frob", user=NODE).code == 403
    assert api("GET", CAPACITIES, user=NODE).code == 403
    assert names(api("GET", CAPACITIES, user=NODE, fieldSelector="nodeName=n1")) == ["n1-frob"]
    assert api("GET", CAPACITIES, user=NODE, fieldSelector="nodeName=n2").code == 403
    assert api("DELETE", f"{CAPACITIES}/n1-frob", user=NODE).code == 200
    assert api("POST", CLASSES, class_(), user=NODE).code == 403
    api.made(CLASSES, class_())
    api.made(CLAIMS, claim("frob", "c"))
    for path in (f"{CLASSES}/frob", f"{CLAIMS}/c", f"{CLAIMS}/c/status"):
        assert api.patch(path, {"metadata": {"labels": {"a": "b"}}}, user=NODE).code == 403
    assert api("POST", CLAIMS, claim("frob", "d"), user=NODE).code == 403
    assert api("DELETE", f"{CLAIMS}/c", user=NODE).code == 403
    talk = {"metadata": {"name": "p"}, "spec": {}}
    assert api("POST", CLAIMS.replace("resourceclaims", "podschedulings"), talk, user=NODE).code == 403
    alice = User("alice", groups=("system:authenticated",))
    assert api("POST", CAPACITIES, capacity("a"), user=alice).code == 403
    assert api("POST", CLASSES, class_("b"), user=alice).code == 403


@pytest.mark.parametrize("role", ["admin", "edit", "view"])
def test_the_roles_of_a_namespace_give_no_right_to_it(api, allot_server, role):
    """4381-SEC-04: not even bound in the whole cluster."""
    bindings = allot_server.client().resource(
        "rbac.authorization.k8s.io", "v1", "clusterrolebindings", namespaced=False
    )
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "User", "apiGroup": group, "name": "bob"}
    granted = {"kind": "ClusterRole", "apiGroup": group, "name": role}
    allot_server.run(bindings.create({"metadata": {"name": "b"}, "subjects": [subject], "roleRef": granted}))
    bob = User("bob", groups=("system:authenticated",))
    api.made(CLASSES, class_())
    api.made(CAPACITIES, capacity())
    assert api("POST", CAPACITIES, capacity("a"), user=bob).code == 403
    assert api("POST", CLASSES, class_("b"), user=bob).code == 403
    for path in (f"{CLASSES}/frob", f"{CAPACITIES}/n1-frob"):
        assert api.patch(path, {"metadata": {"labels": {"a": "b"}}}, user=bob).code == 403
        assert api("DELETE", path, user=bob).code == 403


def test_the_scheduler_reads_capacity_and_no_kind_that_nobody_granted(allot_server):
    """4381-SEC-01, 4381-PAR-05."""

    async def rules():
        roles = allot_server.client().resource(
            "rbac.authorization.k8s.io", "v1", "clusterroles", namespaced=False
        )
        return (await roles.get("system:kube-scheduler")).fields["rules"]

    granted = allot_server.run(rules())
    assert any("noderesourcecapacities" in rule.get("resources", ()) for rule in granted)
    assert all("*" not in rule.get("resources", ()) for rule in granted)
    assert all("*" not in rule.get("apiGroups", ()) for rule in granted)


def test_the_autoscaler_reads_and_writes_nothing_of_it(api, allot_server):
    """4381-SEC-11: neither capacity nor classes nor claims nor their status."""
    api.made(CLASSES, class_())
    api.made(CAPACITIES, capacity())
    api.made(f"{CLAIMS}", claim("frob", "c"))
    for path in (CLASSES, CAPACITIES, CLAIMS, CLAIMS.replace("resourceclaims", "podschedulings")):
        assert api("GET", path, user=identities.AUTOSCALER).code == 200
    for path, body in (
        (CLASSES, class_("new")),
        (CAPACITIES, capacity("new")),
        (CLAIMS, claim("frob", "new")),
    ):
        assert api("POST", path, body, user=identities.AUTOSCALER).code == 403
    for path in (f"{CLASSES}/frob", f"{CAPACITIES}/n1-frob", f"{CLAIMS}/c"):
        assert api.patch(path, {"metadata": {"labels": {"a": "b"}}}, user=identities.AUTOSCALER).code == 403
        assert api("DELETE", path, user=identities.AUTOSCALER).code == 403
    status = {"status": {"deallocationRequested": True}}
    for version in ("v1", "v1alpha1"):
        path = f"/{version}/namespaces/default/resourceclaims/c/status"
        assert api.patch(path, status, user=identities.AUTOSCALER).code == 403


def test_off_it_is_not_served_and_on_again_nothing_is_lost():
    """4381-GATE-03, 4381-GATE-04, 4381-GATE-05, 4381-GATE-12, 4381-GATE-15, 4381-TST-03: three servers, one
    after the other, on one store."""

    async def asked(server, method, path, body=None, kind="application/json"):
        headers = {"content-type": kind, "accept": "application/json"}
        sent = b"" if body is None else json.dumps(body).encode()
        made = Request(method, f"/apis/resource.k8s.io{path}", {}, headers, sent)
        answer = await server.api.handle(made, identities.ADMIN)
        warnings = [text for name, text in answer.headers if name == "Warning"]
        return Answer(answer.status, json.loads(answer.body), warnings)

    async def story():
        store = MemoryStore()
        off = Options(gates=Gates({numeric.limits.GATE: False}))
        async with api_server(store) as server:
            assert (await asked(server, "POST", CLASSES, class_())).code == 201
            assert (await asked(server, "POST", CAPACITIES, capacity())).code == 201
            before = (await asked(server, "GET", f"{CAPACITIES}/n1-frob")).body
        async with api_server(store, off) as server:
            assert (await asked(server, "GET", CAPACITIES)).code == 404
            listed = (await asked(server, "GET", "/v1alpha1")).body["resources"]
            assert "noderesourcecapacities" not in {one["name"] for one in listed}
            kept = (await asked(server, "GET", f"{CLASSES}/frob")).body
            assert kept["numericParameters"] == [entry()]
            kept["metadata"]["labels"] = {"a": "b"}
            answer = await asked(server, "PUT", f"{CLASSES}/frob", kept)
            assert answer.body["numericParameters"] == [entry()]
            dropped = await asked(server, "POST", CLASSES, class_("new"))
            assert "numericParameters" not in dropped.body
            assert any("DRANumericParameters is off" in text for text in dropped.warnings)
        async with api_server(store) as server:
            assert (await asked(server, "GET", f"{CAPACITIES}/n1-frob")).body == before
            assert (await asked(server, "GET", f"{CLASSES}/frob")).body["numericParameters"] == [entry()]
        await store.close()

    asyncio.run(story())
