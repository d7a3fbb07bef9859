"""A tour with the real kubectl: everything that people type on their first day."""

import json
import re

import pytest

from components import binary
from e2e.process import Kubectl, ServerProcess

CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu, labels: {team: blue}}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.example.com
        selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]
"""

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "app:1"}]}
"""

CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red}
"""

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1}
              color: {type: string, default: red}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = ServerProcess(tmp_path_factory.mktemp("kubectl") / "data")
    yield server
    assert server.stop() == 0


@pytest.fixture
def kubectl(server, request):
    """kubectl in a namespace of the test's own."""
    everywhere = Kubectl(binary("kubectl"), server.kubeconfig)
    name = re.sub(r"[^a-z]+", "-", request.node.name.removeprefix("test_"))[:40].strip("-")
    everywhere("create", "namespace", name)

    def run(*arguments, **options):
        return everywhere("--namespace", name, *arguments, **options)

    run.start = lambda *arguments: everywhere.start("--namespace", name, *arguments)
    run.namespace = name
    return run


def test_looks_around(kubectl):
    assert re.search(r"Server Version: v1\.37", kubectl("version"))
    resources = kubectl("api-resources")
    for plural in ("pods", "resourceclaims", "deviceclasses", "resourceslices", "deployments", "leases"):
        assert re.search(rf"^{plural} ", resources, re.M), resources
    assert "resource.k8s.io/v1beta1" in kubectl("api-versions").split()
    explained = kubectl("explain", "resourceclaim.spec.devices.requests.exactly")
    assert "deviceClassName" in explained and "selectors" in explained
    assert "replicas" in kubectl("explain", "deployment.spec")
    assert kubectl("auth", "can-i", "create", "resourceclaims").strip() == "yes"
    assert kubectl("auth", "can-i", "get", "pods", "--as", "nobody", fails=True).strip() == "no"
    assert "allot-admin" in kubectl("auth", "whoami")
    assert kubectl("get", "--raw", "/readyz") == "ok"
    assert "is running at" in kubectl("cluster-info")


def test_creates_and_gets_in_every_form(kubectl):
    kubectl("create", "-f", "-", stdin=CLAIM)
    assert "AlreadyExists" in kubectl("create", "-f", "-", stdin=CLAIM, fails=True)
    kubectl("create", "configmap", "made", "--from-literal=a=b")
    kubectl("create", "secret", "generic", "hidden", "--from-literal=a=b")
    kubectl("create", "deployment", "web", "--image=app:1", "--replicas=0")
    assert json.loads(kubectl("get", "deployment", "web", "-o", "json"))["spec"]["replicas"] == 0
    assert re.search(r"^gpu +pending", kubectl("get", "resourceclaims"), re.M)
    wide = kubectl("get", "resourceclaims", "-o", "wide")
    assert wide.split("\n")[0].split() == ["NAME", "STATE", "AGE", "DEVICES", "NODE", "CLASS", "PODS"]
    assert json.loads(kubectl("get", "resourceclaim", "gpu", "-o", "json"))["metadata"]["name"] == "gpu"
    assert "kind: ResourceClaim" in kubectl("get", "resourceclaim", "gpu", "-o", "yaml")
    assert kubectl("get", "resourceclaim", "-o", "name").strip() == "resourceclaim.resource.k8s.io/gpu"
    path = "{.items[0].spec.devices.requests[0].name}"
    assert kubectl("get", "resourceclaims", "-o", f"jsonpath={path}") == "gpu"
    assert kubectl("get", "resourceclaims", "-o", "custom-columns=N:.metadata.name").split() == ["N", "gpu"]
    template = "{{range .items}}{{.metadata.name}}{{end}}"
    assert kubectl("get", "resourceclaims", "-o", f"go-template={template}") == "gpu"
    assert "gpu" in kubectl("get", "resourceclaims", "-l", "team=blue")
    assert "No resources" in kubectl("get", "resourceclaims", "-l", "team in (red)")
    assert "gpu" in kubectl("get", "resourceclaims", "--field-selector", "metadata.name=gpu")
    assert "No resources" in kubectl("get", "resourceclaims", "--field-selector", "metadata.name=other")
    assert kubectl.namespace in kubectl("get", "resourceclaims", "-A")
    assert "team=blue" in kubectl("get", "resourceclaims", "--show-labels")
    assert "made" in kubectl("get", "cm", "--sort-by=.metadata.name", "--chunk-size=1")
    assert "hidden" in kubectl("get", "cm,secret")
    assert "NotFound" in kubectl("get", "resourceclaim", "other", fails=True)
    described = kubectl("describe", "resourceclaim", "gpu")
    assert "gpu.example.com" in described and "Labels:" in described


def test_applies_from_the_client_and_shows_differences(kubectl):
    assert "created" in kubectl("apply", "-f", "-", stdin=CONFIG)
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=CONFIG)
    changed = CONFIG.replace("red", "blue")
    assert "+  color: blue" in kubectl("diff", "-f", "-", stdin=changed, fails=True)
    assert "configured" in kubectl("apply", "-f", "-", stdin=changed)
    removed = CONFIG.replace("color: red", "shape: round")
    kubectl("apply", "-f", "-", stdin=removed)
    data = json.loads(kubectl("get", "configmap", "settings", "-o", "json"))["data"]
    assert data == {"shape": "round"}
    assert "replaced" in kubectl("replace", "-f", "-", stdin=CONFIG)
    assert "configured" in kubectl("apply", "--dry-run=server", "-f", "-", stdin=changed)
    assert kubectl("get", "configmap", "settings", "-o", "jsonpath={.data.color}") == "red"


def test_applies_what_it_got(kubectl):
    """A list, as `get -o yaml` prints it."""
    for name in ("one", "two"):
        kubectl("create", "configmap", name)
    printed = kubectl("get", "configmaps", "one", "two", "-o", "yaml")
    assert "kind: List" in printed
    assert "configmap/two configured" in kubectl("apply", "-f", "-", stdin=printed)
    kubectl("delete", "configmap", "one", "two")
    assert "configmap/two created" in kubectl("create", "-f", "-", stdin=printed)


def test_applies_on_the_server_and_meets_a_conflict(kubectl):
    apply = ("apply", "--server-side", "-f", "-")
    kubectl(*apply, "--field-manager=one", stdin=DEPLOYMENT)
    kubectl(*apply, "--field-manager=two", stdin=DEPLOYMENT)
    wanted = DEPLOYMENT.replace("replicas: 2", "replicas: 5")
    refused = kubectl(*apply, "--field-manager=two", stdin=wanted, fails=True)
    assert "conflict" in refused and '"one"' in refused and ".spec.replicas" in refused
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "2"
    kubectl(*apply, "--field-manager=two", "--force-conflicts", stdin=wanted)
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "5"


def test_edits_by_every_kind_of_patch(kubectl):
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)

    def patch(kind, text):
        kubectl("patch", "deployment", "web", f"--type={kind}", "-p", text)
        return json.loads(kubectl("get", "deployment", "web", "-o", "json"))

    assert patch("merge", '{"spec":{"replicas":3}}')["spec"]["replicas"] == 3
    by_path = (
        '[{"op":"test","path":"/spec/replicas","value":3},{"op":"replace","path":"/spec/replicas","value":4}]'
    )
    assert patch("json", by_path)["spec"]["replicas"] == 4
    second = '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}'
    containers = patch("strategic", second)["spec"]["template"]["spec"]["containers"]
    assert sorted(one["name"] for one in containers) == ["main", "side"]
    kubectl("patch", "deployment", "web", "--type=json", "-p", by_path, fails=True)
    assert "invalid" in kubectl("patch", "deployment", "web", "-p", '{"spec":{"replicas":-1}}', fails=True)
    kubectl("label", "deployment", "web", "team=blue")
    kubectl("label", "deployment", "web", "team=red", fails=True)
    kubectl("label", "deployment", "web", "team=red", "--overwrite")
    kubectl("annotate", "deployment", "web", "note=hello")
    kubectl("set", "image", "deployment/web", "main=app:2")
    kubectl("scale", "deployment", "web", "--replicas=7", "--current-replicas=4")
    final = json.loads(kubectl("get", "deployment", "web", "-o", "json"))
    assert final["metadata"]["labels"]["team"] == "red"
    assert final["metadata"]["annotations"]["note"] == "hello"
    assert final["spec"]["replicas"] == 7
    kubectl("label", "deployment", "web", "team-")


def test_watches_and_waits(kubectl):
    watching = kubectl.start("get", "configmaps", "-w", "-o", "name")
    try:
        kubectl("create", "-f", "-", stdin=CONFIG)
        assert watching.stdout.readline().strip() == "configmap/settings"
        kubectl("patch", "configmap", "settings", "-p", '{"data":{"color":"blue"}}')
        assert watching.stdout.readline().strip() == "configmap/settings"
    finally:
        watching.kill()
        watching.wait()
        watching.stdout.close()
    kubectl("wait", "configmap/settings", "--for=jsonpath={.data.color}=blue", "--timeout=10s")
    deleting = kubectl.start("wait", "configmap/settings", "--for=delete", "--timeout=20s")
    kubectl("delete", "configmap", "settings")
    assert deleting.wait(20) == 0
    deleting.stdout.close()


def test_taints_cordons_and_drains(kubectl):
    node = f"node-{kubectl.namespace}"
    kubectl(
        "create",
        "-f",
        "-",
        stdin=json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}),
    )
    kubectl("taint", "node", node, "gpu=yes:NoSchedule")
    kubectl("taint", "node", node, "gpu=yes:NoSchedule-")
    kubectl("cordon", node)
    assert "SchedulingDisabled" in kubectl("get", "node", node)
    kubectl("uncordon", node)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "app:1"}]},
    }
    kubectl("create", "-f", "-", stdin=json.dumps(pod))
    assert "web" in kubectl("get", "pods", "--field-selector", f"spec.nodeName={node}")
    said = kubectl("drain", node, "--force", "--grace-period=0", "--timeout=30s")
    assert "evicting pod" in said and "drained" in said
    assert "No resources" in kubectl("get", "pods")


def test_a_disruption_budget_stops_an_eviction(kubectl):
    kubectl("create", "poddisruptionbudget", "keep", "--selector=app=web", "--min-available=1")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "app:1"}]},
    }
    kubectl("create", "-f", "-", stdin=json.dumps(pod))
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    counts = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "disruptionsAllowed": 0}
    for what, status in (("pod/web", ready), ("pdb/keep", {**counts, "observedGeneration": 1})):
        patch = json.dumps({"status": status})
        kubectl("patch", what, "--subresource=status", "--type=merge", "-p", patch)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}}
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/web/eviction"
    refused = kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction), fails=True)
    assert "disruption budget" in refused


def test_deletes_and_leaves_orphans(kubectl):
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    kubectl("create", "-f", "-", stdin=CONFIG)
    assert "deleted" in kubectl("delete", "configmap", "settings", "--dry-run=server")
    kubectl("delete", "configmap", "settings")
    assert "NotFound" in kubectl("delete", "configmap", "settings", fails=True)
    kubectl("delete", "configmap", "settings", "--ignore-not-found")
    kubectl("delete", "deployment", "web", "--cascade=orphan", "--wait=false")
    left = json.loads(kubectl("get", "deployment", "web", "-o", "json"))
    assert left["metadata"]["finalizers"] == ["orphan"]
    kubectl("patch", "deployment", "web", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert "No resources" in kubectl("get", "deployments")
    kubectl("create", "configmap", "a", "--from-literal=x=1")
    kubectl("delete", "configmaps", "--all")
    assert "NotFound" in kubectl("get", "configmap", "a", fails=True)


def test_defines_a_kind_and_uses_it(kubectl):
    kubectl("create", "-f", "-", stdin=DEFINITION)
    kubectl("wait", "crd/widgets.example.com", "--for=condition=established", "--timeout=10s")
    widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: %s}\n"
    assert "spec.size" in kubectl("create", "-f", "-", stdin=widget % "0", fails=True)
    assert "unknown field" in kubectl("create", "-f", "-", stdin=widget % "1, shape: round", fails=True)
    kubectl("create", "-f", "-", stdin=widget % "3")
    assert kubectl("get", "wd").split() == ["NAME", "SIZE", "w", "3"]
    assert kubectl("get", "widget", "w", "-o", "jsonpath={.spec.color}") == "red"
    assert "size" in kubectl("explain", "widget.spec")
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=widget % "4")
    kubectl("delete", "crd", "widgets.example.com", "--timeout=20s")
    assert "NotFound" in kubectl("get", "crd", "widgets.example.com", fails=True)


def test_bad_objects_are_refused_in_plain_words(kubectl):
    assert "undefined field 'foo'" in kubectl(
        "create",
        "-f",
        "-",
        stdin=CLAIM.replace('device.driver == "gpu.example.com"', "device.foo"),
        fails=True,
    )
    assert "unknown field" in kubectl(
        "create", "-f", "-", stdin=CLAIM.replace("spec:", "sepc: 1\nspec:"), fails=True
    )
    assert "Forbidden" in kubectl("get", "pods", "--as", "stranger", fails=True)


def test_sends_several_requests_as_one(kubectl, tmp_path):
    path = f"/api/v1/namespaces/{kubectl.namespace}/configmaps"
    requests = [{"method": "POST", "path": path, "body": {"metadata": {"name": name}}} for name in "ab"]
    document = {
        "apiVersion": "transaction.allot.dev/v1alpha1",
        "kind": "Transaction",
        "spec": {"requests": requests},
    }
    file = tmp_path / "both.json"
    file.write_text(json.dumps(document))
    where = "/apis/transaction.allot.dev/v1alpha1/transactions"
    answer = json.loads(kubectl("create", "--raw", where, "-f", str(file)))
    assert [one["code"] for one in answer["status"]["results"]] == [201, 201]
    assert kubectl("get", "configmaps", "-o", "name").split() == ["configmap/a", "configmap/b"]
    said = kubectl("create", "--raw", where, "-f", str(file), fails=True)
    assert "spec.requests[0]" in said and "already exists" in said
    assert "contentType" in kubectl("explain", "transactions.spec.requests")
