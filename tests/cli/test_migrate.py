"""allot migrate, on a cluster that runs."""

import time
from typing import Any

import pytest

from allot.cli.main import main
from allot.client import Patch
from allot.testing import cluster

GPU = "nvidia.com/gpu"


@pytest.fixture
def here():
    """Each test its own: what one of them leaves for later is what another one would be told of."""
    with cluster(fleet="plain", nodes=1) as running:
        yield running


def resource(here: Any, group: str, version: str, plural: str, namespaced: bool = True) -> Any:
    return here.client().resource(group, version, plural, namespaced=namespaced)


def migrate(here: Any, capsys: Any, *arguments: str) -> tuple[int, str, str]:
    status = main(["migrate", *arguments, "--kubeconfig", str(here.kubeconfig)])
    told = capsys.readouterr()
    return status, told.out, told.err


def test_classic_templates_become_structured_ones(here, capsys):
    old = resource(here, "resource.k8s.io", "v1alpha1", "resourceclaimtemplates")
    spec = {"spec": {"resourceClassName": "fast"}}
    here.run(old.create({"metadata": {"name": "t"}, "spec": spec}, "default"))
    assert migrate(here, capsys, "claims")[0] == 1, "nothing is said of the class"
    asked = ("claims", "--class", "fast=gpu.example.com")
    status, said, _ = migrate(here, capsys, *asked, "--dry-run")
    assert (status, said) == (0, "resourceclaimtemplates/t: replaced by a structured one\n")
    new = resource(here, "resource.k8s.io", "v1", "resourceclaimtemplates")
    assert "resourceClassName" in here.run(new.get("t", "default")).fields["spec"]["spec"]
    assert migrate(here, capsys, *asked)[0] == 0
    after = here.run(new.get("t", "default")).fields["spec"]["spec"]
    assert after["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu.example.com"
    assert migrate(here, capsys, *asked) == (0, "", "")


def test_workloads_move_to_a_class(here, capsys):
    """14-RAW-07: a dry run lists which pods would change path, and changes nothing."""
    deployments = resource(here, "apps", "v1", "deployments")
    pods = resource(here, "", "v1", "pods")
    container = {"name": "main", "image": "none", "resources": {"limits": {GPU: "1"}}}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    here.run(deployments.create({"metadata": {"name": "web"}, "spec": spec}, "default"))
    deadline_s = time.monotonic() + 60
    while not (found := here.run(pods.list("default", label_selector="app=web")).objects):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    name = found[0].name
    asked = ("classes", "--resource", GPU, "--to", "gpu-gold")
    status, _, said = migrate(here, capsys, *asked)
    assert (status, "there is no class gpu-gold" in said) == (1, True)
    classes = resource(here, "compute.allot.dev", "v1alpha1", "resourceclasses", namespaced=False)
    here.run(classes.create({"metadata": {"name": "gpu-gold"}, "spec": {"resourceName": GPU}}))
    before = here.run(deployments.get("web", "default")).metadata.generation
    status, said, notes = migrate(here, capsys, *asked, "--dry-run")
    assert (status, said) == (0, f"Deployment web: asks for gpu-gold; pods change path: {name}\n")
    assert "matches no device of any node now" in notes
    assert here.run(deployments.get("web", "default")).metadata.generation == before
    assert migrate(here, capsys, *asked)[0] == 0
    after = here.run(deployments.get("web", "default")).fields["spec"]["template"]["spec"]["containers"][0]
    assert after["resources"]["limits"] == {"gpu-gold": "1"}


def test_a_node_goes_from_a_plugin_to_a_driver(here, capsys):
    """14-RAW-07, NODEWISE2: step by step, each time as far as it goes."""
    nodes = resource(here, "", "v1", "nodes", namespaced=False)
    slices = resource(here, "resource.k8s.io", "v1", "resourceslices", namespaced=False)
    classes = resource(here, "resource.k8s.io", "v1", "deviceclasses", namespaced=False)
    pods = resource(here, "", "v1", "pods")
    here.run(nodes.create({"metadata": {"name": "worker"}, "status": {"capacity": {GPU: "1"}}}))
    container = {"name": "main", "image": "none", "resources": {"limits": {GPU: "1"}}}
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "worker", "containers": [container]}}
    here.run(pods.create(pod, "default"))
    asked = ("plugins", "--resource", GPU, "--node", "worker")
    assert "no DeviceClass has extendedResourceName" in migrate(here, capsys, *asked)[2]
    here.run(classes.create({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}))
    dry = migrate(here, capsys, *asked, "--dry-run")
    assert dry[:2] == (
        3,
        "node worker: closed for new pods\n"
        "pod default/p: changes path; evicted, and nobody makes it anew: create it again yourself\n"
        "run it again when these are gone\n",
    )
    assert "unschedulable" not in here.run(nodes.get("worker")).fields["spec"]
    assert not here.run(pods.get("p", "default")).metadata.deletion_timestamp
    assert migrate(here, capsys, *asked)[:2] == dry[:2]
    assert here.run(nodes.get("worker")).fields["spec"]["unschedulable"] is True
    assert here.run(pods.get("p", "default")).metadata.deletion_timestamp
    here.run(pods.delete("p", "default", grace_period_s=0))
    assert migrate(here, capsys, *asked)[1] == f"stop the device plugin of {GPU} on node worker\n"
    gone = {"status": {"capacity": {GPU: "0"}}}
    here.run(nodes.patch("worker", gone, type=Patch.MERGE, subresource="status"))
    assert "start the driver on node worker" in migrate(here, capsys, *asked)[1]
    pool = {"name": "worker", "generation": 1, "resourceSliceCount": 1}
    devices = {"driver": "gpu.example.com", "nodeName": "worker", "pool": pool, "devices": [{"name": "a"}]}
    here.run(slices.create({"metadata": {"name": "s"}, "spec": devices}))
    assert migrate(here, capsys, *asked)[0] == 0
    after = here.run(nodes.get("worker")).fields
    assert "unschedulable" not in after["spec"]
    assert not after["metadata"].get("annotations")


def test_what_the_server_does_not_take_is_not_given_up(here, capsys):
    """A quota over the class that is to take the place: the template of before stays."""
    old = resource(here, "resource.k8s.io", "v1alpha1", "resourceclaims")
    quotas = resource(here, "", "v1", "resourcequotas")
    here.run(old.create({"metadata": {"name": "dear"}, "spec": {"resourceClassName": "dear"}}, "default"))
    hard = {"dear.example.com.deviceclass.resource.k8s.io/devices": "0"}
    here.run(quotas.create({"metadata": {"name": "none"}, "spec": {"hard": hard}}, "default"))
    before = here.run(old.get("dear", "default"))
    status, _, said = migrate(here, capsys, "claims", "--class", "dear=dear.example.com")
    after = here.run(old.get("dear", "default"))
    assert (status, "exceeded quota" in said, after.uid) == (1, True, before.uid)
    here.run(quotas.delete("none", "default"))
    assert migrate(here, capsys, "claims", "--class", "dear=dear.example.com")[0] == 0
    assert here.run(old.get("dear", "default")).uid != before.uid


def test_who_may_only_read_is_told_so_and_nothing_changes(here, capsys):
    """The dry run works with these rights, also where lists of nodes' devices are not served at all."""
    rights = "rbac.authorization.k8s.io"
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
    role = {"apiGroup": rights, "kind": "ClusterRole", "name": "reader"}
    subject = {"apiGroup": rights, "kind": "User", "name": "reader"}
    roles = resource(here, rights, "v1", "clusterroles", namespaced=False)
    here.run(roles.create({"metadata": {"name": "reader"}, "rules": [rule]}))
    bindings = resource(here, rights, "v1", "clusterrolebindings", namespaced=False)
    here.run(bindings.create({"metadata": {"name": "reader"}, "roleRef": role, "subjects": [subject]}))
    classes = resource(here, "resource.k8s.io", "v1", "deviceclasses", namespaced=False)
    here.run(classes.create({"metadata": {"name": "fpga"}, "spec": {"extendedResourceName": "x.com/fpga"}}))
    nodes = resource(here, "", "v1", "nodes", namespaced=False)
    here.run(nodes.create({"metadata": {"name": "mine"}, "status": {"capacity": {"x.com/fpga": "1"}}}))
    claims = resource(here, "resource.k8s.io", "v1alpha1", "resourceclaims")
    here.run(claims.create({"metadata": {"name": "held"}, "spec": {"resourceClassName": "slow"}}, "default"))
    reader = str(here.kubeconfig_of("reader"))
    for asked, planned in (
        (("claims", "--class", "slow=gpu.example.com"), "resourceclaims/held: replaced"),
        (("plugins", "--resource", "x.com/fpga", "--node", "mine"), "node mine: closed"),
    ):
        deadline_s = time.monotonic() + 60
        while main(["migrate", *asked, "--dry-run", "--kubeconfig", reader]) not in (0, 3):
            assert time.monotonic() < deadline_s, capsys.readouterr().err
            time.sleep(0.05)
        assert planned in capsys.readouterr().out
        assert main(["migrate", *asked, "--kubeconfig", reader]) == 1
        told = capsys.readouterr().err
        assert "forbidden" in told
        assert "Traceback" not in told
    assert "unschedulable" not in here.run(nodes.get("mine")).fields["spec"]
    assert here.run(claims.get("held", "default")).fields["spec"] == {
        "resourceClassName": "slow",
        "allocationMode": "WaitForFirstConsumer",
    }
    stranger = str(here.kubeconfig_of("stranger"))
    assert main(["migrate", "classes", "--resource", GPU, "--to", "x", "--kubeconfig", stranger]) == 1
    assert "forbidden" in capsys.readouterr().err
