"""S5: a node publishes its own devices, in pools of its own, and makes no pod a mirror pod."""

import pytest

from allot.apiserver import identities

DRIVER = "gpu.example.com"
NODE, OTHER = identities.node("n1"), identities.node("n2")
VERSIONS = ("v1", "v1beta1", "v1beta2")
WAYS = ("create", "apply")
EVERYWHERE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "x", "operator": "Exists"}]}]}


def slices(version="v1"):
    return f"/apis/resource.k8s.io/{version}/resourceslices"


def slice_(name="s", *, version="v1", pool="n1", generation=1, top=None, **where):
    made = {"name": pool, "generation": generation, "resourceSliceCount": 1}
    device = {"name": "gpu-0", **({"basic": {}} if version == "v1beta1" else {})}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": DRIVER, "pool": made, "devices": [device], **where},
        **(top or {}),
    }


def publish(api, body, user=identities.ADMIN, way="create"):
    version = body["apiVersion"].rpartition("/")[2]
    if way == "create":
        return api("POST", slices(version), body, user=user)
    path = f"{slices(version)}/{body['metadata']['name']}"
    return api("PATCH", path, body, user=user, media="application/apply-patch+yaml", fieldManager="kubelet")


@pytest.fixture
def nodes(api):
    for name in ("n1", "n2"):
        assert api("POST", "/api/v1/nodes", {"metadata": {"name": name}}).status == 201


@pytest.mark.parametrize("version", VERSIONS)
def test_a_node_publishes_its_own_devices(api, nodes, version):
    made = publish(api, slice_(version=version, nodeName="n1"), NODE)
    assert made.status == 201, made.body
    newer = {**made.body, "spec": slice_(version=version, nodeName="n1", generation=2)["spec"]}
    assert api("PUT", f"{slices(version)}/s", newer, user=NODE).status == 200
    merge = {"spec": {"pool": {"generation": 3}}}
    answer = api("PATCH", f"{slices(version)}/s", merge, user=NODE, media="application/merge-patch+json")
    assert answer.status == 200, answer.body
    second = publish(api, slice_("t", version=version, pool="n1/more", nodeName="n1"), NODE)
    assert second.status == 201, second.body
    assert api("DELETE", f"{slices(version)}/s", user=NODE).status == 200


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "top", [{"nodeName": "n1"}, {"spec.nodeName": "n1"}, {"status": {"nodeName": "n1"}}, {}]
)
@pytest.mark.parametrize(
    "where",
    [
        {"allNodes": True},
        {"nodeSelector": EVERYWHERE},
        {"nodeName": "n2"},
        {"perDeviceNodeSelection": True},
        {"nodename": "n1", "allNodes": True},
        {"metadata": {"nodeName": "n1"}, "allNodes": True},
        {},
    ],
    ids=str,
)
def test_a_field_that_is_not_the_one_says_nothing(api, nodes, version, way, top, where):
    """Only `spec.nodeName` says whose a slice is."""
    body = slice_(version=version, top=top, **where)
    if "perDeviceNodeSelection" in where:
        device = body["spec"]["devices"][0]
        device.get("basic", device)["nodeName"] = "n1"
    answer = publish(api, body, NODE, way)
    assert answer.status == 403, answer.body
    assert api("GET", f"{slices()}/s").status == 404


@pytest.mark.parametrize("version", VERSIONS)
def test_a_slice_does_not_leave_its_node(api, nodes, version):
    assert publish(api, slice_(version=version, nodeName="n1"), NODE).status == 201
    for change in (
        {"spec": {"nodeName": None, "allNodes": True}},
        {"spec": {"nodeName": "n2"}},
        {"nodeName": "n1", "spec": {"nodeName": None, "allNodes": True}},
    ):
        answer = api("PATCH", f"{slices(version)}/s", change, user=NODE, media="application/merge-patch+json")
        assert answer.status == 403, answer.body


def test_a_slice_of_the_network_is_not_a_nodes_because_of_a_field_that_nobody_knows(api, nodes):
    """Such slices may be stored from earlier versions."""
    assert publish(api, slice_(allNodes=True, top={"nodeName": "n1"})).status == 201
    for method, body in (("GET", None), ("DELETE", None), ("PUT", slice_(nodeName="n1"))):
        assert api(method, f"{slices()}/s", body, user=NODE).status == 403


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("generation", [0, 1, 99])
@pytest.mark.parametrize(
    "there, owner",
    [
        ({"nodeName": "n2"}, 'node "n2"'),
        ({"allNodes": True}, "a driver"),
        ({"nodeSelector": EVERYWHERE}, "a driver"),
    ],
    ids=["of a node", "of all nodes", "of some nodes"],
)
def test_a_pool_of_others_is_not_taken_over(api, nodes, version, way, generation, there, owner):
    """A higher generation would outdate what they publish."""
    assert publish(api, slice_("theirs", pool="shared", **there)).status == 201
    taken = slice_(version=version, pool="shared", generation=generation, nodeName="n1")
    answer = publish(api, taken, NODE, way)
    assert answer.status == 403, answer.body
    if way == "create":  # a patch of what is not there is refused before
        assert f"belongs to {owner}" in answer.body["message"]
    other_driver = {**taken, "spec": {**taken["spec"], "driver": "nic.example.com"}}
    assert publish(api, other_driver, NODE).status == 201, "a pool of that name of another driver is another"


def test_nobody_is_in_a_nodes_pool_before_it(api, nodes):
    for pool in ("n2", "n2/gpus"):
        answer = publish(api, slice_("early", pool=pool, nodeName="n1"), NODE)
        assert answer.status == 403, answer.body
        assert 'belongs to node "n2"' in answer.body["message"]
        assert publish(api, slice_(f"own-{len(pool)}", pool=pool, nodeName="n2"), OTHER).status == 201


def test_a_slice_is_not_renewed_once_others_have_the_pool(api, nodes):
    made = publish(api, slice_(pool="p", nodeName="n1"), NODE)
    assert made.status == 201
    assert publish(api, slice_("more", pool="p", allNodes=True)).status == 201
    newer = {**made.body, "spec": slice_(pool="p", nodeName="n1", generation=2)["spec"]}
    assert api("PUT", f"{slices()}/s", newer, user=NODE).status == 403
    assert api("DELETE", f"{slices()}/s", user=NODE).status == 200


def test_of_two_nodes_at_once_one_has_the_pool(api, nodes):
    """The second is refused although no slice was there when it began."""
    import asyncio

    async def race():
        bodies = [
            (slice_(f"of-{node}", pool="p", nodeName=node), user)
            for node, user in (("n1", NODE), ("n2", OTHER))
        ]
        return await asyncio.gather(*(api.ask("POST", slices(), body, user) for body, user in bodies))

    assert sorted(answer.status for answer in api.run(race())) == [201, 403]


MIRROR = "kubernetes.io/config.mirror"


@pytest.fixture
def pod(api, nodes):
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
    made = api("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "web"}, "spec": spec})
    assert made.status == 201, made.body
    return made.body


def changed(api, pod, annotations, user, way, subresource):
    path = f"/api/v1/namespaces/default/pods/web{subresource}"
    metadata = {"annotations": annotations}
    match way:
        case "update":
            return api("PUT", path, {**pod, "metadata": {**pod["metadata"], **metadata}}, user=user)
        case "apply":
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", **metadata}}
            media = "application/apply-patch+yaml"
            return api("PATCH", path, body, user=user, media=media, fieldManager="kubelet", force="true")
    return api("PATCH", path, {"metadata": metadata}, user=user, media=f"application/{way}-patch+json")


@pytest.mark.parametrize("way", ["update", "merge", "strategic-merge", "apply"])
@pytest.mark.parametrize("value", ["", "x"])
@pytest.mark.parametrize(
    "user, subresource", [(NODE, "/status"), (identities.ADMIN, "/status"), (identities.ADMIN, "")]
)
def test_a_pod_does_not_become_a_mirror_pod(api, pod, way, value, user, subresource):
    """GRAPH2: a node could lose its way to what the pod needs, and the pod its account and its claims."""
    answer = changed(api, pod, {MIRROR: value}, user, way, subresource)
    assert answer.status == 422, answer.body
    assert answer.causes == [(f"metadata.annotations[{MIRROR}]", "FieldValueForbidden")]
    assert changed(api, pod, {"note": value}, user, way, subresource).status == 200


@pytest.mark.parametrize("way", ["update", "merge", "strategic-merge"])
@pytest.mark.parametrize("value", [None, "y"])
@pytest.mark.parametrize(
    "user, subresource", [(NODE, "/status"), (identities.ADMIN, "/status"), (identities.ADMIN, "")]
)
def test_a_mirror_pod_stays_one(api, nodes, way, value, user, subresource):
    """Else it would open the paths that it names."""
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
    metadata = {"name": "web", "annotations": {MIRROR: "x"}}
    made = api("POST", "/api/v1/namespaces/default/pods", {"metadata": metadata, "spec": spec})
    assert made.status == 201, made.body
    annotations = {} if way == "update" and value is None else {MIRROR: value}
    answer = changed(api, made.body, annotations, user, way, subresource)
    assert answer.status == 422, answer.body
