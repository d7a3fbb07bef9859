"""Deployments, cascades, namespaces and tainted devices with the real kubectl, against `allot controllers`.

No node runs pods here: a thread plays the kubelet and makes every pod ready, except
those whose image says that they are broken.
"""

import asyncio
import contextlib
import json
import re
import signal
import threading
from typing import Any

import pytest

from allot.api import errors
from allot.client import Client, HttpsTransport, kubeconfig
from components import binary
from e2e.process import Controllers, Kubectl, ServerProcess

TIME = "--timeout=40s"


class Kubelet(threading.Thread):
    def __init__(self, server: ServerProcess) -> None:
        super().__init__(daemon=True)
        self._access = kubeconfig.load(server.kubeconfig)
        self._ending = threading.Event()

    def run(self) -> None:
        asyncio.run(self._run())

    def stop(self) -> None:
        self._ending.set()
        if self.is_alive():
            self.join(10)

    async def _run(self) -> None:
        client = Client(HttpsTransport(self._access))
        pods = client.resource("", "v1", "pods")
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        ready = {"status": {"phase": "Running", "conditions": [condition]}}
        while not self._ending.is_set():
            for pod in (await pods.list(field_selector="status.phase=Pending")).objects:
                if "broken" not in str(pod.fields["spec"]):
                    with contextlib.suppress(errors.NotFound, errors.Conflict):
                        await pods.patch(pod.name, ready, pod.namespace, subresource="status")
            await asyncio.sleep(0.05)
        await client.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = ServerProcess(tmp_path_factory.mktemp("workloads") / "data")
    controllers = Controllers(server, "workloads")
    kubelet = Kubelet(server)
    try:
        controllers.await_ready()
        kubelet.start()
        yield server
    finally:
        kubelet.stop()
        ended = controllers.end(signal.SIGTERM), server.stop()
    assert ended == (0, 0)


@pytest.fixture
def kubectl(server, request):
    """kubectl in a namespace of the test's own."""
    everywhere = Kubectl(binary("kubectl"), server.kubeconfig)
    name = re.sub(r"[^a-z]+", "-", request.node.name.removeprefix("test_"))[:40].strip("-")
    everywhere("create", "namespace", name)

    def run(*arguments, **options):
        return everywhere("--namespace", name, *arguments, **options)

    run.everywhere = everywhere
    run.namespace = name
    return run


def items(kubectl, what: str) -> list[dict[str, Any]]:
    return json.loads(kubectl("get", what, "-o", "json"))["items"]


def images(kubectl) -> list[str]:
    return [one["spec"]["containers"][0]["image"] for one in items(kubectl, "pods")]


def rolled_out(kubectl) -> None:
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", TIME)


def test_a_deployment_is_created_scaled_rolled_undone_and_restarted(kubectl):
    kubectl("create", "deployment", "web", "--image=app:1", "--replicas=3")
    rolled_out(kubectl)
    kubectl("wait", "--for=condition=available", "deployment/web", TIME)
    assert re.search(r"^web +3/3 +3 +3 ", kubectl("get", "deployment", "web"), re.M)
    kubectl("scale", "deployment/web", "--replicas=5", TIME)
    rolled_out(kubectl)
    assert len(images(kubectl)) == 5

    kubectl("set", "image", "deployment/web", "app=app:2")
    kubectl("annotate", "deployment/web", "kubernetes.io/change-cause=a newer app")
    rolled_out(kubectl)
    assert images(kubectl) == ["app:2"] * 5
    history = kubectl("rollout", "history", "deployment/web")
    assert re.search(r"^1 .*\n2 +a newer app$", history, re.M), history
    assert "app:1" in kubectl("rollout", "history", "deployment/web", "--revision=1")

    assert "rolled back" in kubectl("rollout", "undo", "deployment/web")
    rolled_out(kubectl)
    assert images(kubectl) == ["app:1"] * 5
    before = {one["metadata"]["uid"] for one in items(kubectl, "pods")}
    kubectl("rollout", "restart", "deployment/web")
    rolled_out(kubectl)
    assert not before & {one["metadata"]["uid"] for one in items(kubectl, "pods")}
    assert "Scaling" in kubectl("describe", "deployment", "web")


def test_a_paused_rollout_goes_on_when_resumed(kubectl):
    kubectl("create", "deployment", "web", "--image=app:1", "--replicas=2")
    rolled_out(kubectl)
    kubectl("rollout", "pause", "deployment/web")
    kubectl("set", "image", "deployment/web", "app=app:2")
    kubectl("scale", "deployment/web", "--replicas=3")
    kubectl("wait", "--for=jsonpath={.status.replicas}=3", "deployment/web", TIME)
    assert set(images(kubectl)) == {"app:1"}
    kubectl("rollout", "resume", "deployment/web")
    rolled_out(kubectl)
    assert images(kubectl) == ["app:2"] * 3


def test_a_rollout_that_gets_stuck_is_told(kubectl):
    kubectl("create", "deployment", "web", "--image=app:1", "--replicas=2")
    rolled_out(kubectl)
    kubectl("patch", "deployment", "web", "-p", '{"spec": {"progressDeadlineSeconds": 2}}')
    kubectl("set", "image", "deployment/web", "app=broken:1")
    assert "exceeded its progress deadline" in kubectl(
        "rollout", "status", "deployment/web", TIME, fails=True
    )
    assert images(kubectl).count("app:1") == 2


@pytest.mark.parametrize("how", ["background", "foreground"])
def test_what_a_deployment_owns_goes_with_it(kubectl, how):
    kubectl("create", "deployment", "web", "--image=app:1", "--replicas=3")
    rolled_out(kubectl)
    kubectl("delete", "deployment", "web", f"--cascade={how}", TIME)
    if how == "foreground":  # it was the last to go
        assert items(kubectl, "pods") == items(kubectl, "replicasets") == []
    kubectl("wait", "--for=delete", "pods", "--all", TIME)
    kubectl("wait", "--for=delete", "replicasets", "--all", TIME)


def test_orphans_stay_and_are_adopted_again(kubectl):
    kubectl("create", "deployment", "web", "--image=app:1", "--replicas=2")
    rolled_out(kubectl)
    before = {one["metadata"]["uid"] for one in items(kubectl, "pods")}
    kubectl("delete", "deployment", "web", "--cascade=orphan", TIME)
    (left,) = items(kubectl, "replicasets")
    assert "ownerReferences" not in left["metadata"]
    kubectl("create", "deployment", "web", "--image=app:1", "--replicas=2")
    rolled_out(kubectl)
    assert {one["metadata"]["uid"] for one in items(kubectl, "pods")} == before
    (adopted,) = items(kubectl, "replicasets")
    assert adopted["metadata"]["uid"] == left["metadata"]["uid"]
    assert adopted["metadata"]["ownerReferences"][0]["kind"] == "Deployment"


def test_a_namespace_goes_with_all_that_is_in_it(kubectl):
    kubectl("create", "deployment", "web", "--image=app:1", "--replicas=3")
    kubectl("create", "configmap", "settings", "--from-literal=a=b")
    rolled_out(kubectl)
    kubectl("wait", "--for=create", "serviceaccount/default", TIME)
    kubectl.everywhere("delete", "namespace", kubectl.namespace, TIME)
    assert "NotFound" in kubectl.everywhere("get", "namespace", kubectl.namespace, fails=True)
    assert kubectl("get", "pods,configmaps,deployments").strip().startswith("No resources found")


# -- devices that are tainted -------------------------------------------------------------------

HELD = """
apiVersion: v1
kind: Pod
metadata: {name: training}
spec:
  nodeName: somewhere
  containers: [{name: main, image: "app:1"}]
  resourceClaims: [{name: gpu, resourceClaimName: gpu}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
"""

RULE = """
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: broken}
spec:
  deviceSelector: {driver: gpu.example.com, pool: shelf}
  taint: {key: example.com/broken, effect: None}
"""


def reads(path: str, value: str = "") -> str:
    return f"--for=jsonpath={path}={value}" if value else f"--for=jsonpath={path}"


def test_an_administrator_asks_what_a_taint_would_do_and_then_does_it(kubectl):
    """From outside: the dry run, the eviction, and what both leave to read."""
    kubectl("create", "-f", "-", stdin=HELD)
    uid = kubectl("get", "pod", "training", "-o", "jsonpath={.metadata.uid}")
    result = {"request": "r", "driver": "gpu.example.com", "pool": "shelf", "device": "gpu-0"}
    consumer = {"resource": "pods", "name": "training", "uid": uid}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]}
    patch = ("patch", "resourceclaim", "gpu", "--subresource=status", "--type=merge", "-p")
    kubectl(*patch, json.dumps({"status": status}))

    kubectl("apply", "-f", "-", stdin=RULE)
    reason = "{.status.conditions[0].reason}"
    kubectl("wait", "devicetaintrule/broken", reads(reason, "NoEffect"), TIME)
    told = kubectl("describe", "devicetaintrule", "broken")
    assert "1 allocated device selected. 1 pod would be evicted in 1 namespace" in told
    assert kubectl("get", "pod", "training", "-o", "jsonpath={.metadata.deletionTimestamp}") == ""

    kubectl("apply", "-f", "-", stdin=RULE.replace("effect: None", "effect: NoExecute"))
    kubectl("wait", "pod/training", reads("{.metadata.deletionTimestamp}"), TIME)
    target = '{.status.conditions[?(@.type=="DisruptionTarget")].reason}'
    assert kubectl("get", "pod", "training", "-o", f"jsonpath={target}") == "DeletionByDeviceTaintManager"
    kubectl("wait", "devicetaintrule/broken", reads(reason, "Completed"), TIME)
    assert "1 pod evicted since starting the controller." in kubectl("describe", "devicetaintrule", "broken")
    said = kubectl("get", "events", "--field-selector=reason=DeviceTaintManagerEviction")
    assert "device gpu.example.com/shelf/gpu-0 of claim gpu is tainted" in said
    kubectl("delete", "devicetaintrule", "broken")
