"""Workloads that ask for a raw resource move to a class over it."""

from typing import Any

import pytest

from allot.generations.rawnames import Around, plan

GPU, GOLD = "nvidia.com/gpu", "gpu-gold"


def resource_class(name: str = GOLD, raw: str = GPU, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"resourceName": raw, **spec}}


def spec(resource: str = GPU) -> dict[str, Any]:
    amounts = {resource: "2", "cpu": "1"}
    containers = [
        {"name": "main", "resources": {"limits": amounts, "requests": amounts}},
        {"name": "side", "resources": {}},
    ]
    return {"containers": containers}


def made(kind: str, name: str, owner: str = "", **members: Any) -> dict[str, Any]:
    owners = [{"uid": owner, "controller": True}] if owner else []
    return {
        "kind": kind,
        "metadata": {"name": name, "uid": f"u-{name}", "ownerReferences": owners},
        **members,
    }


def deployment(name: str = "web", resource: str = GPU) -> dict[str, Any]:
    return made("Deployment", name, spec={"template": {"spec": spec(resource)}})


DEVICES = {"resourceName": GPU, "properties": {"model": "v100"}, "allocatableDevices": ["a"]}
NODE = {"metadata": {"name": "n"}, "status": {"computeResources": [DEVICES]}}
HERE = Around(
    workloads=(
        deployment(),
        made("ReplicaSet", "web-1", "u-web", spec={"template": {"spec": spec()}}),
        made("Job", "once", spec={"template": {"spec": spec()}}),
        deployment("other", "example.com/nic"),
    ),
    pods=(made("Pod", "web-1-a", "u-web-1", spec=spec()), made("Pod", "alone", spec=spec())),
    quotas=({"metadata": {"name": "q"}, "spec": {"hard": {GPU: "100"}}},),
    nodes=(NODE,),
)


def test_what_makes_pods_moves_and_its_pods_are_named():
    """14-RAW-07, RAW2: what it makes pods by follows; what cannot be changed is told."""
    found = plan(GPU, GOLD, [resource_class()], HERE)
    (move,) = found.moves
    assert (move.kind, move.name, move.pods) == ("Deployment", "web", ("web-1-a",))
    amounts = {GPU: None, GOLD: "2"}
    changed = [{"name": "main", "resources": {"limits": amounts, "requests": amounts}}]
    assert move.patch == {"spec": {"template": {"spec": {"containers": changed}}}}
    assert [words.partition(":")[0] for words in found.stay] == ["Job once", "Pod alone"]
    assert found.notes == (
        f"quota q counts {GPU} (100) and not {GOLD}: give the class its share, pods that move: 1",
    )


@pytest.mark.parametrize("name", [GOLD, f"requests.{GOLD}", f"resourceclass.compute.allot.dev/{GOLD}"])
def test_a_quota_that_counts_the_class_already_is_not_complained_of(name):
    """Quota's second step, done before the workloads move."""
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {GPU: "90", name: "4"}}}
    around = Around(workloads=(deployment("a"),), nodes=(NODE,), quotas=(quota,))
    assert plan(GPU, GOLD, [resource_class()], around).notes == ()


def test_a_part_may_move_first():
    """Quota's second step: some workloads by class, the others as before."""
    many = Around(workloads=(deployment("a"), deployment("b")), nodes=(NODE,))
    assert [one.name for one in plan(GPU, GOLD, [resource_class()], many, ["b"]).moves] == ["b"]


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        ([], "there is no class gpu-gold"),
        ([resource_class(raw="example.com/nic")], "is over example.com/nic"),
        ([resource_class(scope="Cluster")], "is of the cluster"),
        ([resource_class(resourceSelector=[{}])], "nobody can use class gpu-gold"),
    ],
)
def test_nothing_moves_to_a_class_that_would_not_serve(classes, words):
    """RAW1"""
    assert words in plan(GPU, GOLD, classes, HERE).refused


def test_nothing_moves_while_a_device_is_advertised_twice():
    """14-MIX-02, 14-RAW-07, RAW3"""
    twice = {"type": "DevicesAdvertisedTwice", "status": "True", "message": "a is b"}
    wrong = {"metadata": {"name": "n"}, "status": {"computeResources": [DEVICES], "conditions": [twice]}}
    found = plan(GPU, GOLD, [resource_class()], Around(HERE.workloads, nodes=(wrong,)))
    assert (found.refused, found.moves) == ("node n: a is b", ())


def test_a_class_that_matches_nothing_now_is_told():
    picky = resource_class(
        resourceSelector=[{"matchExpressions": [{"key": "model", "operator": "In", "values": ["p100"]}]}]
    )
    found = plan(GPU, GOLD, [picky], HERE)
    assert (
        found.notes[0] == "class gpu-gold matches no device of any node now: pods that ask for it will wait"
    )


def test_cron_jobs_are_changed_where_their_pods_are():
    cron = made("CronJob", "nightly", spec={"jobTemplate": {"spec": {"template": {"spec": spec()}}}})
    (move,) = plan(GPU, GOLD, [resource_class()], Around(workloads=(cron,), nodes=(NODE,))).moves
    inner = move.patch["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert inner["containers"][0]["resources"]["limits"] == {GPU: None, GOLD: "2"}


def test_a_container_that_asks_under_both_names_asks_for_as_much_as_before():
    both = spec()
    both["containers"][0]["resources"] = {"limits": {GPU: "2", GOLD: "1"}}
    workload = made("Deployment", "web", spec={"template": {"spec": both}})
    (move,) = plan(GPU, GOLD, [resource_class()], Around((workload,), nodes=(NODE,))).moves
    (changed,) = move.patch["spec"]["template"]["spec"]["containers"]
    assert changed["resources"] == {"limits": {GPU: None, GOLD: "3"}}


def test_a_name_that_nothing_has_is_told():
    """A slip of the pen would else look like a migration that is done."""
    found = plan(GPU, GOLD, [resource_class()], HERE, ["web", "wbe"])
    assert (found.refused, found.moves) == (f"no workload wbe asks for {GPU}", ())


def test_a_class_may_be_named_as_other_servers_take_it():
    """14-ASK-08, 14-OPEN-05: a plain Kubernetes refuses bare names."""
    name = f"resourceclass.compute.allot.dev/{GOLD}"
    (move,) = plan(GPU, name, [resource_class()], HERE).moves
    (changed,) = move.patch["spec"]["template"]["spec"]["containers"]
    assert changed["resources"]["limits"] == {GPU: None, name: "2"}
    assert "there is no class gpu-silver" in plan(GPU, "gpu-silver", [resource_class()], HERE).refused


def test_replication_controllers_move_as_well():
    one = made("ReplicationController", "old", spec={"template": {"spec": spec()}})
    (move,) = plan(GPU, GOLD, [resource_class()], Around((one,), nodes=(NODE,))).moves
    assert move.kind == "ReplicationController"
