"""`autoscaler.shrinking`: a node goes when all of its pods, with their claims, find places elsewhere."""

from allot.autoscaler.shrinking import Shrinking, shrink
from planning.clusters import Cluster, Fields, claim, cluster, hardware, pod

from .test_packing import simulated


def user(name: str, node: str, *devices: str, owner: str = "web", **spec: object) -> list[Fields]:
    used = claim(f"c-{name}", count=len(devices), devices=devices, node=node, users=[name])
    return [used, pod(name, claim=f"c-{name}", node=node, owner=owner, **spec)]


def shrunk(here: Cluster, *candidates: str, spare: int = 9) -> Shrinking:
    names = [node.name for node in here.reading.snapshot.nodes()]
    return shrink(simulated(here), candidates or names, {"g": spare}, dict.fromkeys(names, "g"))


def gone(found: Shrinking) -> list[str]:
    return [one.node for one in found.removals]


def test_a_node_goes_whose_pods_fit_elsewhere_with_their_claims():
    """AUTO-11: two devices are used of sixteen; the other node stays, since pods are to come to it."""
    here = cluster(*hardware("gpu", 2), *user("a", "gpu-0", "gpu-0"), *user("b", "gpu-1", "gpu-5"))
    found = shrunk(here)
    assert gone(found) == ["gpu-0"]
    assert found.removals[0].moves == {"uid-Pod-a": "gpu-1"}
    assert found.kept == {"gpu-1": "pods of another node are to come"}


def test_a_node_stays_whose_pods_would_find_no_devices():
    """Y2: there is room for the pods, and not for their claims."""
    full = [f"gpu-{at}" for at in range(8)]
    here = cluster(*hardware("gpu", 2), *user("a", "gpu-0", "gpu-0"), *user("b", "gpu-1", *full))
    found = shrunk(here)
    assert not found.removals
    assert found.kept["gpu-0"] == "pod default/a would find no other place"


def test_pods_that_share_a_claim_move_together():
    """AUTO-12: the claim has no devices once both have left; the first that is placed finds it some."""
    shared = claim("both", count=2, devices=["gpu-0", "gpu-1"], node="gpu-0", users=["a", "b"])
    pods = [pod(name, claim="both", node="gpu-0", owner="web") for name in ("a", "b")]
    found = shrunk(cluster(*hardware("gpu", 2), shared, *pods), "gpu-0")
    assert found.removals[0].moves == {"uid-Pod-a": "gpu-1", "uid-Pod-b": "gpu-1"}


def test_what_nobody_makes_anew_keeps_its_node_and_daemons_do_not():
    bare = cluster(*hardware("gpu", 2), pod("bare", node="gpu-0"), pod("d", node="gpu-1", owner="daemon"))
    found = shrunk(bare)
    assert gone(found) == ["gpu-1"] and found.kept["gpu-0"] == "nobody makes pod default/bare anew"


def test_a_budget_and_a_wish_keep_a_node():
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 1},
    }
    a, b = user("a", "gpu-0", "gpu-0"), user("b", "gpu-1", "gpu-0")
    found = shrunk(cluster(*hardware("gpu", 3), budget, *a, *b), "gpu-0", "gpu-1")
    assert gone(found) == ["gpu-0"]  # the budget is used up by then
    wish = pod("w", node="gpu-0", owner="web")
    wish["metadata"]["annotations"] = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    assert shrunk(cluster(*hardware("gpu", 2), wish), "gpu-0").kept == {
        "gpu-0": "pod default/w is not to be evicted"
    }


def test_an_immediate_claim_keeps_its_node_used_or_not():
    """AUTO-14, 4381-SIM-16: it stays allocated there, as it would in reality."""
    held = claim("c", devices=["gpu-0"], node="gpu-0")
    held["spec"] = {
        "resourceClassName": "classic",
        "allocationMode": "Immediate",
        "devices": {"requests": [{"name": "classic", "exactly": {"deviceClassName": "classic", "count": 1}}]},
    }
    held["status"]["driverName"] = "classic.example.com"
    found = shrunk(cluster(*hardware("gpu", 2), held), "gpu-0")
    assert found.kept == {"gpu-0": "claim default/c stays allocated here, whoever uses it"}


def test_a_group_keeps_as_many_as_it_must_have():
    found = shrunk(cluster(*hardware("gpu", 3)), spare=2)
    assert gone(found) == ["gpu-0", "gpu-1"]
    assert found.kept == {"gpu-2": "its group has no more than it must have"}
