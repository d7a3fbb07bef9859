"""examples/own-slices.yaml: a driver with the role allot:driver writes slices of its own node only."""

from pathlib import Path

import pytest
import yaml

from allot.api import User, errors
from apiserver.admission.test_policies import Cluster

ACCOUNT = "system:serviceaccount:my-driver:my-driver"
NODE_NAME = "authentication.kubernetes.io/node-name"
TEXT = (Path(__file__).parents[3] / "examples/own-slices.yaml").read_text()


def driver(node, name=ACCOUNT):
    return User(name, ("system:authenticated",), extra={NODE_NAME: (node,)} if node else {})


def piece(node, name):
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]}
    return {"metadata": {"name": name}, "spec": spec}


@pytest.fixture
def slices(allot_server):
    """As somebody."""
    here = Cluster(allot_server)
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "allot:driver"}
    for name in (ACCOUNT, "other-driver"):
        subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}]
        bindings = allot_server.client().resource(
            "rbac.authorization.k8s.io", "v1", "clusterrolebindings", namespaced=False
        )
        made = {"metadata": {"name": name.replace(":", "-")}, "roleRef": role, "subjects": subjects}
        here.run(bindings.create(made))
    here.enforce(*yaml.safe_load_all(TEXT))

    def of(user):
        found = allot_server.client(user).resource(
            "resource.k8s.io", "v1", "resourceslices", namespaced=False
        )
        return here.run, found

    return of


def test_a_driver_has_its_own_slices_and_touches_nobody_elses(slices):
    run, own = slices(driver("a"))
    _, other = slices(driver("b"))
    run(own.create(piece("a", "of-a")))
    run(own.patch("of-a", {"metadata": {"labels": {"x": "y"}}}))
    with pytest.raises(errors.Forbidden, match="a driver on node b does not write slices of node a"):
        run(other.delete("of-a"))
    with pytest.raises(errors.Forbidden, match="a driver on node b does not write slices of node a"):
        run(other.patch("of-a", {"metadata": {"labels": {"x": "z"}}}))
    with pytest.raises(errors.Forbidden, match="a driver on node b does not write slices of node a"):
        run(other.create(piece("a", "forged")))
    run(own.delete("of-a"))


def test_a_token_that_says_no_node_is_told_so(slices):
    run, own = slices(driver(""))
    with pytest.raises(errors.Forbidden, match="the driver's token says no node"):
        run(own.create(piece("a", "of-a")))


def test_drivers_that_are_not_named_are_left_alone(slices):
    run, other = slices(driver("", "other-driver"))
    run(other.create(piece("a", "of-a")))
    run(other.delete("of-a"))
