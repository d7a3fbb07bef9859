"""compute.allot.dev/v1alpha1 through the real API server: classes, what nodes have, what containers say."""

import asyncio
import json

import pytest

from allot.api import Gates, Request, User, compute
from allot.apiserver import Options, identities
from allot.store import MemoryStore
from allot.testing import api_server
from api.resource.test_served import Answer, grant

CLASSES = "/apis/compute.allot.dev/v1alpha1/resourceclasses"
PODS = "/api/v1/namespaces/default/pods"
RAW = "nvidia.com/gpu"
V100 = {"model": "v100"}


class Api:
    def __init__(self, server):
        self.server = server

    def __call__(self, method, path, body=None, user=identities.ADMIN, kind="application/json", **query):
        headers = {"content-type": kind, "accept": "application/json"}
        sent = b"" if body is None else json.dumps(body).encode()
        made = Request(method, path, query, headers, sent)
        answer = self.server.run(self.server.api.handle(made, user))
        warnings = [text for name, text in answer.headers if name == "Warning"]
        return Answer(answer.status, json.loads(answer.body), warnings)

    def made(self, path, body):
        answer = self("POST", path, body)
        assert answer.code == 201, answer.body
        return answer.body

    def refused(self, path, body, **query):
        answer = self("POST", path, body, **query)
        assert answer.code == 422, answer.body
        return [field for field, _ in answer.causes]


@pytest.fixture
def api(allot_server):
    return Api(allot_server)


def class_(name="gpu-gold", **spec):
    return {
        "apiVersion": "compute.allot.dev/v1alpha1",
        "kind": "ResourceClass",
        "metadata": {"name": name},
        "spec": {"resourceName": RAW, **spec},
    }


def selector(key="memory", operator="Gt", *values):
    need = {"key": key, "operator": operator}
    return [{"matchExpressions": [{**need, "values": list(values)} if values else need]}]


def pod(limits, name="p", record=None, **spec):
    container = {"name": "c", "image": "i", "resources": {"limits": limits}}
    if record is not None:
        container["allocatedComputeResources"] = record
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
    }


def node(*entries, name="n1", **status):
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    return {**body, "status": {"computeResources": list(entries), **status}}


def entry(properties=V100, devices=("d0", "d1"), allocatable=None, raw=RAW, **more):
    usable = list(devices if allocatable is None else allocatable)
    told = {
        "resourceName": raw,
        "properties": properties,
        "devices": list(devices),
        "allocatableDevices": usable,
    }
    return {**told, **more}


# Classes


def test_the_kind_is_served_cluster_wide(api):
    """14-API-01, 14-API-17: every verb; a generation, and no status."""
    listed = {one["name"]: one for one in api("GET", "/apis/compute.allot.dev/v1alpha1").body["resources"]}
    assert listed.keys() == {"resourceclasses"}
    assert listed["resourceclasses"]["shortNames"] == ["crc"]
    assert not listed["resourceclasses"]["namespaced"]
    assert {"get", "list", "watch", "patch", "update", "create", "delete"} <= set(
        listed["resourceclasses"]["verbs"]
    )
    made = api.made(CLASSES, class_())
    assert made["metadata"]["generation"] == 1
    merge = "application/merge-patch+json"
    patched = api("PATCH", f"{CLASSES}/gpu-gold", {"spec": {"priority": 5}}, kind=merge)
    assert patched.body["metadata"]["generation"] == 2
    labelled = api("PATCH", f"{CLASSES}/gpu-gold", {"metadata": {"labels": {"a": "b"}}}, kind=merge)
    assert labelled.body["metadata"]["generation"] == 2
    applied = {**class_(), "spec": {"resourceName": RAW, "priority": 7}}
    kind = "application/apply-patch+yaml"
    answer = api("PATCH", f"{CLASSES}/gpu-gold", applied, kind=kind, fieldManager="me", force="true")
    assert (answer.code, answer.body["spec"]["priority"]) == (200, 7)
    within = "/apis/compute.allot.dev/v1alpha1/namespaces/default/resourceclasses"
    assert api("GET", within).code == 404
    assert api("GET", f"{CLASSES}/gpu-gold/status").code == 404


def test_classes_of_both_groups_keep_apart(api):
    """14-API-02"""
    api.made(CLASSES, class_("same"))
    classic = "/apis/resource.k8s.io/v1alpha1/resourceclasses"
    theirs = {"metadata": {"name": "same"}, "driverName": "d.example.com"}
    api.made(classic, {"apiVersion": "resource.k8s.io/v1alpha1", "kind": "ResourceClass", **theirs})
    assert [one["spec"] for one in api("GET", CLASSES).body["items"]] == [{"resourceName": RAW}]
    assert [one["driverName"] for one in api("GET", classic).body["items"]] == ["d.example.com"]
    assert api("DELETE", f"{CLASSES}/same").code == 200
    assert api("GET", f"{classic}/same").code == 200


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"resourceName": ""}, "spec.resourceName"),
        ({"resourceName": "gpu"}, "spec.resourceName"),
        ({"resourceName": "cpu"}, "spec.resourceName"),
        ({"resourceName": "kubernetes.io/gpu"}, "spec.resourceName"),
        ({"resourceSelector": [{}]}, "spec.resourceSelector[0].matchExpressions"),
        (
            {"resourceSelector": selector("m", "Near", "1")},
            "spec.resourceSelector[0].matchExpressions[0].operator",
        ),
        ({"resourceSelector": selector("m", "")}, "spec.resourceSelector[0].matchExpressions[0].operator"),
        ({"resourceSelector": selector("m", "In")}, "spec.resourceSelector[0].matchExpressions[0].values"),
        ({"resourceSelector": selector("m", "NotIn")}, "spec.resourceSelector[0].matchExpressions[0].values"),
        (
            {"resourceSelector": selector("m", "Exists", "1")},
            "spec.resourceSelector[0].matchExpressions[0].values",
        ),
        (
            {"resourceSelector": selector("m", "DoesNotExist", "1")},
            "spec.resourceSelector[0].matchExpressions[0].values",
        ),
        ({"resourceSelector": selector("m", "Gt")}, "spec.resourceSelector[0].matchExpressions[0].values"),
        (
            {"resourceSelector": selector("m", "Lt", "1", "2")},
            "spec.resourceSelector[0].matchExpressions[0].values",
        ),
        (
            {"resourceSelector": selector("m", "Gt", "big")},
            "spec.resourceSelector[0].matchExpressions[0].values[0]",
        ),
        ({"resourceSelector": selector("", "Exists")}, "spec.resourceSelector[0].matchExpressions[0].key"),
        ({"resourceSelector": selector("a b", "Exists")}, "spec.resourceSelector[0].matchExpressions[0].key"),
        ({"scope": "Moon"}, "spec.scope"),
        ({"sameProperty": ["link"]}, "spec.sameProperty"),
        ({"members": [{"resourceName": RAW}]}, "spec.resourceName"),
        ({"resourceName": "", "members": [{"resourceName": "memory", "amount": "1G"}]}, "spec.members"),
        ({"resourceName": "", "members": [{"resourceName": RAW, "count": 0}]}, "spec.members[0].count"),
        (
            {"resourceName": "", "members": [{"resourceName": RAW}, {"resourceName": "memory"}]},
            "spec.members[1].amount",
        ),
        ({"resourceName": "", "members": [{"resourceName": RAW}], "scope": "Cluster"}, "spec.scope"),
    ],
)
def test_classes_that_are_refused(api, spec, field):
    """14-API-03, 14-API-04, 14-API-06, 14-API-07, 14-API-08, 14-API-09, 14-API-10, 14-NON-04"""
    assert api.refused(CLASSES, class_(**spec)) == [field]


@pytest.mark.parametrize("spelling", ["labelSelector", "resourceSelectorRequirements"])
@pytest.mark.parametrize("checked", ["Strict", "Warn", "Ignore"])
def test_other_spellings_of_the_selector_are_refused_by_name(api, spelling, checked):
    """14-API-11: dropped, they would widen the class to everything."""
    wrong = class_(**{spelling: selector("memory", "Gt", "15G")})
    assert api.refused(CLASSES, wrong, fieldValidation=checked) == [f"spec.{spelling}"]


@pytest.mark.parametrize(
    "name", ["cpu", "pods", "hugepages-2mi", "requests.gpu", "limits.gpu", "count.gpu", "g" * 64]
)
def test_names_that_would_mean_something_else(api, name):
    """14-API-12"""
    assert api.refused(CLASSES, class_(name)) == ["metadata.name"]


def test_fields_that_are_only_considered_mean_nothing(api):
    """14-API-15"""
    body = class_(autoProvisionConfig={}, resourceRequestParameters={})
    assert api("POST", CLASSES, body, fieldValidation="Strict").code == 400
    answer = api("POST", CLASSES, body)
    assert answer.code == 201
    assert len(answer.warnings) == 2
    assert answer.body["spec"] == {"resourceName": RAW}


def test_a_class_may_change_and_go_at_any_time(api):
    """14-API-14: pods that use it do not hold it."""
    api.made(CLASSES, class_())
    api.made(PODS, pod({"gpu-gold": 1}))
    body = class_(resourceName="amd.com/gpu", resourceSelector=selector("a", "Exists"))
    changed = api("PUT", f"{CLASSES}/gpu-gold", body)
    assert changed.body["spec"]["resourceName"] == "amd.com/gpu"
    assert api("DELETE", f"{CLASSES}/gpu-gold").code == 200


def test_whoever_may_create_pods_may_read_classes(api):
    """14-API-16"""
    api.made(CLASSES, class_())
    grant(api.server, "alice", {"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]})
    alice = User("alice", groups=(identities.AUTHENTICATED,))
    assert api("GET", CLASSES, user=alice).code == 200
    assert api("GET", f"{CLASSES}/gpu-gold", user=alice).code == 200
    assert api("POST", CLASSES, class_("mine"), user=alice).code == 403
    assert api("DELETE", f"{CLASSES}/gpu-gold", user=alice).code == 403


# Nodes


def test_a_missing_name_is_filled_in_and_a_wrong_one_corrected(api):
    """14-NODE-02, 14-NODE-03, 14-NODE-13"""
    meant = compute.compute_resource_name(RAW, V100)
    made = api.made("/api/v1/nodes", node(entry()))
    assert [one["name"] for one in made["status"]["computeResources"]] == [meant]
    answer = api("PUT", "/api/v1/nodes/n1/status", node(entry(name=f"{RAW}-0123456789abcdef")))
    assert answer.code == 422
    assert meant in answer.body["message"]


@pytest.mark.parametrize(
    ("entries", "status", "field"),
    [
        ([entry(), entry(devices=("d9",))], {}, "status.computeResources[1].name"),
        ([entry(allocatable=("d7",))], {}, "status.computeResources[0].allocatableDevices[0]"),
        ([entry(), entry({"model": "p100"})], {}, "status.computeResources[1].devices[0]"),
        ([entry()], {"capacity": {RAW: "2"}, "allocatable": {}}, f"status.capacity[{RAW}]"),
        ([entry()], {"allocatable": {RAW: "2"}}, f"status.allocatable[{RAW}]"),
        ([entry({"a b": "c"})], {}, "status.computeResources[0].properties"),
        ([entry({"a": "c" * 257})], {}, "status.computeResources[0].properties[a]"),
        ([entry({f"k{at}": "v" for at in range(65)})], {}, "status.computeResources[0].properties"),
        ([entry(devices=[str(at) for at in range(8193)])], {}, "status.computeResources"),
        ([entry(raw="gpu")], {}, "status.computeResources[0].resourceName"),
    ],
)
def test_lists_of_nodes_that_are_refused(api, entries, status, field):
    """14-NODE-04, 14-NODE-07, 14-NODE-13, 14-SCALE-05: nothing is counted twice, and limits are enforced."""
    api.made("/api/v1/nodes", node(capacity={"cpu": "1"}))
    answer = api("PUT", "/api/v1/nodes/n1/status", node(*entries, **status))
    assert answer.code == 422
    assert field in [one for one, _ in answer.causes]


def test_only_the_node_itself_writes_its_list(api):
    """14-NODE-14"""
    api.made("/api/v1/nodes", node())
    patch = {"status": {"computeResources": [entry()]}}
    kind = "application/merge-patch+json"
    own, other = (User(f"system:node:{name}", groups=("system:nodes",)) for name in ("n1", "n2"))
    assert api("PATCH", "/api/v1/nodes/n1/status", patch, user=other, kind=kind).code == 403
    assert api("PATCH", "/api/v1/nodes/n1/status", patch, user=own, kind=kind).code == 200


def test_a_client_that_knows_less_does_not_take_the_list_away(api):
    """Absence is not said; an empty list is."""
    api.made("/api/v1/nodes", node(entry()))
    stored = api("GET", "/api/v1/nodes/n1").body
    del stored["status"]["computeResources"]
    assert len(api("PUT", "/api/v1/nodes/n1/status", stored).body["status"]["computeResources"]) == 1
    stored["status"]["computeResources"] = []
    del stored["metadata"]["resourceVersion"]
    assert api("PUT", "/api/v1/nodes/n1/status", stored).body["status"]["computeResources"] == []


# Pods


def test_a_container_names_a_class_as_it_names_cpu(api):
    """14-ASK-01, 14-ASK-02, 14-ASK-08: requests are the limits; the qualified form means the same."""
    api.made(CLASSES, class_())
    answer = api("POST", PODS, pod({"cpu": "1", "gpu-gold": 2, f"{compute.limits.QUALIFIED}gpu-gold": 1}))
    assert (answer.code, answer.warnings) == (201, [])
    requests = answer.body["spec"]["containers"][0]["resources"]["requests"]
    assert requests["gpu-gold"] == "2"


@pytest.mark.parametrize("limits", [{"gpu-gold": "1.5"}, {"gpu-gold": "-1"}, {"GPU": "1"}, {"g" * 64: "1"}])
def test_amounts_are_whole_and_names_are_names(api, limits):
    """14-ASK-02, 14-NON-03"""
    assert api("POST", PODS, pod(limits)).code == 422


def test_requests_must_equal_limits(api):
    """14-ASK-02"""
    body = pod({"gpu-gold": 2})
    body["spec"]["containers"][0]["resources"]["requests"] = {"gpu-gold": 1}
    assert api("POST", PODS, body).code == 422
    body["spec"]["containers"][0]["resources"] = {"requests": {"gpu-gold": 1}}
    assert api("POST", PODS, body).code == 422


def test_a_class_may_come_later(api):
    """14-ASK-04: accepted, with a warning; of Deployments and quotas too."""
    answer = api("POST", PODS, pod({"gpu-gold": 1}))
    assert answer.code == 201
    assert ["no resourceclasses.compute.allot.dev gpu-gold" in one for one in answer.warnings] == [True]
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"gpu-gold": "4", "requests.gpu-gold": "4"}}}
    answer = api(
        "POST",
        "/api/v1/namespaces/default/resourcequotas",
        {"kind": "ResourceQuota", "apiVersion": "v1", **quota},
    )
    assert answer.code == 201
    assert len(answer.warnings) == 2


@pytest.mark.parametrize("field", ["properties", "resourceSelector", "matchExpressions"])
def test_containers_ask_by_name_and_number_only(api, field):
    """14-ASK-07, 14-NON-01: nothing that selects is a field of a container or of its resources."""
    body = pod({"gpu-gold": 1})
    body["spec"]["containers"][0]["resources"][field] = []
    assert api("POST", PODS, body, fieldValidation="Strict").code == 400


@pytest.mark.parametrize(
    "record",
    [
        {"gpu-gold": [{"computeResourceName": "r", "count": 1}]},  # too few
        {"gpu-gold": [{"computeResourceName": "r", "count": 3}]},  # too many
        {"gpu-gold": []},
        {"gpu-gold": [{"computeResourceName": "r", "count": 0}, {"computeResourceName": "s", "count": 2}]},
        {"gpu-gold": [{"computeResourceName": "r", "count": 1}, {"computeResourceName": "r", "count": 1}]},
        {"gpu-gold": [{"count": 2}]},
        {"gpu-iron": [{"computeResourceName": "r", "count": 2}]},  # not asked for
        {"cpu": [{"computeResourceName": "r", "count": 1}]},
        {"gpu-gold": [{"resourceName": "memory", "amount": "1G"}, {"computeResourceName": "r", "count": 2}]},
        {"gpu-gold": [{"computeResourceName": "r", "count": 3, "member": 0}]},  # a group and a half
    ],
)
def test_records_that_are_refused(api, record):
    """14-BIND-05, 14-BIND-08: a record is about what the container asks for, and adds up to it."""
    assert api("POST", PODS, pod({"gpu-gold": 2, "cpu": 1}, record=record)).code == 422


def test_counts_fit_32_bits(api):
    """14-BIND-05"""
    record = {"gpu-gold": [{"computeResourceName": "r", "count": 2**31}]}
    assert api("POST", PODS, pod({"gpu-gold": 2**31}, record=record)).code in (400, 422)


def test_a_record_does_not_change(api):
    """14-BIND-03: nor is it lost when a client writes the pod that knows nothing of it."""
    record = {
        "gpu-gold": [{"computeResourceName": "r", "count": 1}, {"computeResourceName": "s", "count": 1}]
    }
    made = api.made(PODS, pod({"gpu-gold": 2}, record=record))
    container = made["spec"]["containers"][0]
    assert container["allocatedComputeResources"] == record
    container["allocatedComputeResources"] = {"gpu-gold": [{"computeResourceName": "s", "count": 2}]}
    assert api("PUT", f"{PODS}/p", made).code == 422
    del container["allocatedComputeResources"]
    made["metadata"]["labels"] = {"a": "b"}
    written = api("PUT", f"{PODS}/p", made)
    assert written.code == 200
    assert written.body["spec"]["containers"][0]["allocatedComputeResources"] == record


def on_server(server):
    client = server.client()
    return client.resource("", "v1", "nodes", namespaced=False), client.resource("", "v1", "pods")


def test_with_the_gate_off_nothing_new_begins_and_nothing_is_lost():
    """14-API-18"""

    async def story():
        store = MemoryStore()
        async with api_server(store) as on:
            nodes, pods = on_server(on)
            await nodes.create(node(entry()))
            record = {"gpu-gold": [{"computeResourceName": "r", "count": 1}]}
            await pods.create(pod({"gpu-gold": 1}, record=record))
        off = Options(gates=Gates({compute.limits.GATE: False}))
        async with api_server(store, off) as server:
            nodes, pods = on_server(server)
            assert (await nodes.get("n1")).fields["status"]["computeResources"]
            kept = (await pods.get("p", "default")).fields["spec"]["containers"][0]
            assert kept["allocatedComputeResources"] == record
            fresh = await nodes.create(node(entry(), name="n2"))
            assert "computeResources" not in fresh.fields["status"]
            for limits in ({"gpu-gold": 1}, {"cpu": 1, "gpu-gold": 1}):
                with pytest.raises(Exception, match="standard resource type or fully qualified"):
                    await pods.create(pod(limits, "q"))
        await store.close()

    asyncio.run(story())


def annotated(name="p", **limits):
    record = {"c": {"gpu-gold": [{"computeResourceName": f"{RAW}-0", "count": 1}]}}
    made = pod(limits or {"gpu-gold": "1"}, name)
    made["metadata"]["annotations"] = {compute.limits.RECORD_ANNOTATION: json.dumps(record)}
    return made


def test_a_record_is_not_written_as_an_annotation_where_there_is_a_field_for_it(api):
    """14-BIND-03, 14-BIND-12: nobody would guard what it takes, and it could be changed at any time."""
    where = [f"metadata.annotations[{compute.limits.RECORD_ANNOTATION}]"]
    assert api.refused(PODS, annotated()) == where
    api.made(PODS, pod({"gpu-gold": "1"}))
    patch = {"metadata": {"annotations": annotated()["metadata"]["annotations"]}}
    for path in (f"{PODS}/p", f"{PODS}/p/status"):
        answer = api("PATCH", path, patch, kind="application/merge-patch+json")
        assert (answer.code, [field for field, _ in answer.causes]) == (422, where)


def test_a_server_without_the_field_keeps_the_record_as_the_annotation_that_it_is():
    """14-BIND-12: as any Kubernetes does with annotations of a Binding. With the gate on again it stays."""

    async def story() -> None:
        store = MemoryStore()
        key = compute.limits.RECORD_ANNOTATION
        said = annotated()["metadata"]["annotations"]
        off = Options(gates=Gates({compute.limits.GATE: False}))
        async with api_server(store, off) as server:
            _, pods = on_server(server)
            await pods.create(pod({"resourceclass.compute.allot.dev/gpu-gold": "1"}))
            await pods.bind("p", "default", "n1", annotations=said)
            bound = (await pods.get("p", "default")).fields
            assert (bound["spec"]["nodeName"], bound["metadata"]["annotations"][key]) == ("n1", said[key])
        async with api_server(store) as server:
            _, pods = on_server(server)
            patched = await pods.patch("p", {"metadata": {"labels": {"a": "b"}}}, "default")
            assert patched.fields["metadata"]["annotations"][key] == said[key]
        await store.close()

    asyncio.run(story())
