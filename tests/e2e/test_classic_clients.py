"""Classic claims and clients that others wrote, unchanged: kubectl, the official client and lightkube."""

import json
import re

import kubernetes
import lightkube
import lightkube.config.kubeconfig
import pytest
from lightkube.resources.resource_v1 import ResourceClaim

from components import binary
from e2e.process import Kubectl, ServerProcess

STORY = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gpuparameters.gpu.example.com}
spec:
  group: gpu.example.com
  scope: Namespaced
  names: {plural: gpuparameters, kind: GpuParameters}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [memory]
        properties: {memory: {type: string, pattern: "^[0-9]+Gi$"}}
---
apiVersion: resource.k8s.io/v1alpha1
kind: ResourceClass
metadata: {name: acme-gpu}
driverName: gpu.example.com
parametersRef: {apiGroup: gpu.example.com, kind: GpuInit, name: fast}
suitableNodes: {nodeSelectorTerms: [{matchExpressions: [{key: gpu, operator: Exists}]}]}
---
apiVersion: resource.k8s.io/v1alpha1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec:
  metadata: {labels: {team: blue}}
  spec:
    resourceClassName: acme-gpu
    parametersRef: {apiGroup: gpu.example.com, kind: GpuParameters, name: two}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: a, image: "app:1", resources: {claims: [{name: gpu}]}}
  - {name: b, image: "app:1", resources: {claims: [{name: gpu}]}}
  resourceClaims: [{name: gpu, source: {resourceClaimTemplateName: gpu}}]
"""

CLAIM = """
apiVersion: resource.k8s.io/v1alpha1
kind: ResourceClaim
metadata: {name: shared}
spec: {resourceClassName: acme-gpu, allocationMode: Immediate}
"""

ALLOCATED = {
    "status": {
        "driverName": "gpu.example.com",
        "allocation": {"resourceHandle": "h", "shareable": True},
        "reservedFor": [{"resource": "pods", "name": "web", "uid": "u"}],
    }
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = ServerProcess(tmp_path_factory.mktemp("classic") / "data")
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def kubectl(server):
    run = Kubectl(binary("kubectl"), server.kubeconfig)
    for kind, body in (("story", STORY), ("claim", CLAIM)):
        assert "created" in run("create", "-f", "-", stdin=body), kind
    patch = json.dumps(ALLOCATED)
    run(
        "patch",
        "resourceclaims.v1alpha1.resource.k8s.io",
        "shared",
        "--subresource=status",
        "--type=merge",
        "-p",
        patch,
    )
    return run


def test_kubectl_creates_and_lists_a_class_with_its_parameters(kubectl):
    """3063-STORY-03, 3063-GOAL-04, 3063-PARAM-01, 3063-PARAM-03: the parameters need not exist yet."""
    assert re.search(r"^acme-gpu +gpu\.example\.com ", kubectl("get", "resourceclasses"), re.M)
    wide = kubectl("get", "resourceclasses", "-o", "wide")
    assert "GpuInit.gpu.example.com/fast" in wide
    listed = kubectl("api-resources", "--api-group=resource.k8s.io")
    for plural in ("resourceclasses", "podschedulings", "resourceclaims"):
        assert re.search(rf"^{plural} ", listed, re.M), listed
    assert "resource.k8s.io/v1alpha1" in kubectl("api-versions").split()


def test_kubectl_explains_every_field(kubectl):
    for what, said in (
        ("resourceclass", "driverName"),
        ("resourceclass.parametersRef", "namespace"),
        ("podscheduling.spec", "potentialNodes"),
        ("podscheduling.status.resourceClaims", "unsuitableNodes"),
    ):
        explained = kubectl("explain", what, "--api-version=resource.k8s.io/v1alpha1")
        assert said in explained and "<empty>" not in explained, explained
    explained = kubectl("explain", "resourceclaim.spec", "--api-version=resource.k8s.io/v1alpha1")
    assert "WaitForFirstConsumer" in explained
    assert "16 KiB" in kubectl("explain", "resourceclaim.status.allocation")


def test_parameters_are_held_to_the_schema_of_their_own_kind(kubectl):
    """3063-PARAM-06."""
    body = {
        "apiVersion": "gpu.example.com/v1",
        "kind": "GpuParameters",
        "metadata": {"name": "bad"},
        "memory": "much",
    }
    assert "memory" in kubectl("create", "-f", "-", stdin=json.dumps(body), fails=True)
    good = {**body, "metadata": {"name": "two"}, "memory": "2Gi"}
    assert "created" in kubectl("create", "-f", "-", stdin=json.dumps(good))


def test_a_pod_of_the_time_is_stored_in_todays_words(kubectl):
    entries = json.loads(kubectl("get", "pod", "web", "-o", "json"))["spec"]["resourceClaims"]
    assert entries == [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]


def test_kubectl_applies_labels_and_shows_states(kubectl):
    assert "shared configured" in kubectl("apply", "-f", "-", stdin=CLAIM)
    kubectl("label", "resourceclaim", "shared", "seen=yes")
    assert re.search(r"^shared +allocated,reserved ", kubectl("get", "resourceclaims"), re.M)
    assert "acme-gpu" in kubectl("get", "resourceclaims", "-o", "wide")
    assert "gpu.example.com" in kubectl("describe", "resourceclaim", "shared")


def whole(kubectl):
    return json.loads(kubectl("get", "resourceclaims.v1alpha1.resource.k8s.io", "shared", "-o", "json"))


def same(before, after):
    assert after["spec"] == before["spec"]
    assert after["status"] == before["status"]


def test_the_official_client_writes_back_what_it_read_and_hurts_nothing(server, kubectl):
    """Its types drop what they do not know."""
    claims = kubernetes.client.ResourceV1Api(kubernetes.config.new_client_from_config(str(server.kubeconfig)))
    before = whole(kubectl)
    read = claims.read_namespaced_resource_claim("shared", "default")
    assert not hasattr(read.spec, "resource_class_name")
    read.metadata.annotations = {"official": "was here"}
    claims.replace_namespaced_resource_claim("shared", "default", read)
    read = claims.read_namespaced_resource_claim("shared", "default")
    claims.replace_namespaced_resource_claim_status("shared", "default", read)
    after = whole(kubectl)
    same(before, after)
    assert after["metadata"]["annotations"]["official"] == "was here"


def test_lightkube_writes_back_what_it_read_and_hurts_nothing(server, kubectl):
    config = lightkube.config.kubeconfig.KubeConfig.from_file(server.kubeconfig)
    light = lightkube.Client(config=config, namespace="default")
    before = whole(kubectl)
    read = light.get(ResourceClaim, "shared")
    read.metadata.labels = {"light": "kube"}
    light.replace(read)
    after = whole(kubectl)
    same(before, after)
    assert after["metadata"]["labels"] == {"light": "kube"}


def test_a_server_that_was_killed_has_everything_when_it_is_back(server, kubectl):
    """3063-STATE-04: status is stored as durably as spec."""
    before = whole(kubectl)
    server.kill()
    server.start()
    after = whole(kubectl)
    same(before, after)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert "acme-gpu" in kubectl("get", "resourceclasses")
