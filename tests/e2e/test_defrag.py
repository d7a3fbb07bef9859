"""`allot defrag --apply` against `allot up`: a claim that waits fits after one pod has moved."""

import json

from components import binary
from e2e.process import Kubectl, allot
from e2e.test_up import TIME, Up

SMALL = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: slice}
spec:
  spec:
    devices:
      requests:
      - name: part
        exactly:
          deviceClassName: mig.example.com
          selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].profile == "1g.10gb"'}}]
"""

SERVICE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: 1
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      resourceClaims: [{name: part, resourceClaimTemplateName: slice}]
      containers: [{name: main, image: "app:1", resources: {claims: [{name: part}]}}]
"""

BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: NAME}
spec: {minAvailable: 1, selector: {matchLabels: {app: NAME}}}
"""

BIG = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: all-four}
spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu.example.com, count: 4}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: big}
spec:
  resourceClaims: [{name: gpus, resourceClaimName: all-four}]
  containers: [{name: main, image: "app:1", resources: {claims: [{name: gpus}]}}]
"""


def test_a_claim_that_waits_fits_after_one_pod_has_moved(tmp_path):
    """Two nodes with four GPUs in parts, and a seventh of a GPU is taken on each: all four of one node cannot
    be had. A disruption budget keeps one of the two pods; the other is moved, and the claim has its node."""
    up = Up(tmp_path / "data", "--fleet", "mig", "--nodes", "2")
    try:
        kubectl = Kubectl(binary("kubectl"), up.kubeconfig)
        kubectl("apply", "-f", "-", stdin=SMALL)
        for name, other in (("keep", "mig-1"), ("moves", "mig-0")):
            kubectl("cordon", other)
            kubectl("apply", "-f", "-", stdin=SERVICE.replace("NAME", name))
            kubectl("rollout", "status", f"deployment/{name}", TIME)
            kubectl("uncordon", other)
        kubectl("apply", "-f", "-", stdin=BUDGET.replace("NAME", "keep"))
        kubectl("wait", "pdb/keep", "--for=jsonpath={.status.currentHealthy}=1", TIME)
        kubectl("apply", "-f", "-", stdin=BIG)
        kubectl("wait", "pod/big", "--for=condition=PodScheduled=false", TIME)
        reach = ("--kubeconfig", str(up.kubeconfig))

        report = allot("defrag", *reach)
        assert report.returncode == 0
        assert "as much free capacity would allow 4xH100-SXM5-80GB" in report.stdout, report.stdout

        looked = allot("defrag", "--pod", "big", "--json", *reach)
        (move,) = json.loads(looked.stdout)["moves"]
        assert (move["from"], move["to"]) == ("mig-1", "mig-0") and move["pod"].startswith("default/moves-")
        assert move["alsoPlaced"] == {"default/big": "mig-1"}
        assert (
            kubectl("get", "pods", "-l", "app=moves", "-o", "jsonpath={.items[*].spec.nodeName}") == "mig-1"
        )

        done = allot("defrag", "--pod", "big", "--apply", "--yes", *reach)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "placed   another default/moves-" in done.stdout
        assert "fits     default/big  on mig-1" in done.stdout
        kubectl("wait", "pod/big", "--for=condition=Ready", TIME)
        where = "jsonpath={range .items[*]}{.metadata.labels.app}{.spec.nodeName} {end}"
        assert kubectl("get", "pods", "-o", where).split() == ["mig-1", "keepmig-0", "movesmig-0"]
        kubectl("rollout", "status", "deployment/moves", TIME)
    finally:
        up.kill()
