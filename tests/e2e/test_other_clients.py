"""Clients that others wrote, unchanged: the official one and lightkube."""

import threading

import kubernetes
import lightkube
import lightkube.config.kubeconfig
import pytest
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Pod
from lightkube.resources.resource_v1 import DeviceClass, ResourceClaim
from lightkube.types import PatchType

from e2e.process import ServerProcess


@pytest.fixture
def server(tmp_path):
    server = ServerProcess(tmp_path / "data")
    yield server
    assert server.stop() == 0


@pytest.fixture
def official(server):
    return kubernetes.config.new_client_from_config(str(server.kubeconfig))


@pytest.fixture
def light(server):
    config = lightkube.config.kubeconfig.KubeConfig.from_file(server.kubeconfig)
    return lightkube.Client(config=config, namespace="default", field_manager="tester")


def claim_body(name):
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request]}},
    }


def test_the_official_client_creates_reads_changes_and_deletes(official):
    core = kubernetes.client.CoreV1Api(official)
    claims = kubernetes.client.ResourceV1Api(official)
    body = {"metadata": {"name": "a"}, "data": {"x": "1"}}
    assert core.create_namespaced_config_map("default", body).metadata.uid
    assert core.read_namespaced_config_map("a", "default").data == {"x": "1"}
    core.patch_namespaced_config_map("a", "default", {"data": {"y": "2"}})
    assert core.read_namespaced_config_map("a", "default").data == {"x": "1", "y": "2"}
    core.replace_namespaced_config_map("a", "default", body)
    assert [item.metadata.name for item in core.list_namespaced_config_map("default").items] == ["a"]
    with pytest.raises(kubernetes.client.exceptions.ApiException) as refused:
        core.create_namespaced_config_map("default", body)
    assert refused.value.status == 409
    core.delete_namespaced_config_map("a", "default")
    assert core.list_namespaced_config_map("default").items == []
    claims.create_namespaced_resource_claim("default", claim_body("c"))
    read = claims.read_namespaced_resource_claim("c", "default")
    assert read.spec.devices.requests[0].exactly.count == 1
    assert claims.list_resource_claim_for_all_namespaces().items[0].metadata.name == "c"


def test_the_official_client_applies(official):
    dynamic = kubernetes.dynamic.DynamicClient(official)
    configs = dynamic.resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
    made = configs.server_side_apply(body=body, name="a", namespace="default", field_manager="one")
    assert made.data.x == "1"
    taken = {**body, "data": {"x": "2"}}
    with pytest.raises(kubernetes.client.exceptions.ApiException) as refused:
        configs.server_side_apply(body=taken, name="a", namespace="default", field_manager="two")
    assert refused.value.status == 409
    forced = configs.server_side_apply(
        body=taken, name="a", namespace="default", field_manager="two", force_conflicts=True
    )
    assert forced.data.x == "2"


def test_the_official_client_watches_across_a_restart(server, official):
    """S2: what happened while the server was away is seen when it is back."""
    core = kubernetes.client.CoreV1Api(official)
    seen: list[str] = []
    done = threading.Event()

    def watch():
        version = "0"
        while not done.is_set():
            try:
                stream = kubernetes.watch.Watch().stream(
                    core.list_namespaced_config_map, "default", resource_version=version, timeout_seconds=30
                )
                for event in stream:
                    version = event["object"].metadata.resource_version
                    seen.append(event["object"].metadata.name)
                    if seen[-1] == "last":
                        done.set()
                        return
            except Exception:  # the server is away; any transport error may come of it
                done.wait(0.1)

    core.create_namespaced_config_map("default", {"metadata": {"name": "first"}})
    watcher = threading.Thread(target=watch)
    watcher.start()
    while not seen:
        done.wait(0.02)
    server.kill()
    server.start()
    core.create_namespaced_config_map("default", {"metadata": {"name": "second"}})
    core.create_namespaced_config_map("default", {"metadata": {"name": "last"}})
    watcher.join(30)
    assert seen == ["first", "second", "last"]


def test_lightkube_creates_reads_changes_and_deletes(light):
    light.create(ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "1"}))
    assert light.get(ConfigMap, "a").data == {"x": "1"}
    light.patch(ConfigMap, "a", {"data": {"y": "2"}}, patch_type=PatchType.MERGE)
    assert {config.metadata.name: config.data for config in light.list(ConfigMap)} == {
        "a": {"x": "1", "y": "2"}
    }
    pod = Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(containers=[Container(name="c", image="app:1")]))
    assert light.create(pod).status.phase == "Pending"
    light.delete(ConfigMap, "a")
    with pytest.raises(lightkube.ApiError) as missing:
        light.get(ConfigMap, "a")
    assert missing.value.status.code == 404


def test_lightkube_applies_and_watches(light):
    applied = light.apply(ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "1"}))
    version = applied.metadata.resourceVersion
    other = ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "2"})
    with pytest.raises(lightkube.ApiError) as refused:
        light.apply(other, field_manager="another")
    assert refused.value.status.code == 409
    light.apply(other, field_manager="another", force=True)
    light.create(DeviceClass.from_dict({"metadata": {"name": "gpu.example.com"}, "spec": {}}))
    light.create(ResourceClaim.from_dict(claim_body("c")))
    assert light.get(ResourceClaim, "c").spec.devices.requests[0].exactly.count == 1
    for event, config in light.watch(ConfigMap, resource_version=version, server_timeout=10):
        assert (event, config.data) == ("MODIFIED", {"x": "2"})
        break
