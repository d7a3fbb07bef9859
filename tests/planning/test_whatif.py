"""`planning.whatif` on clusters that were read: what is placed, evicted, left waiting and refused."""

import json
from pathlib import Path

import pytest
import yaml

from allot.planning import BadChange, BadManifest, telling

from .clusters import Fields, ask, claim, cluster, hardware, pod


def on_gpu_0(name: str, device: str, owner: str = "web") -> list[Fields]:
    used = claim(f"{name}-claim", devices=[device], node="gpu-0", users=[name])
    return [used, pod(name, claim=f"{name}-claim", node="gpu-0", owner=owner)]


def test_pods_of_a_drained_node_find_places_elsewhere_with_their_devices():
    here = cluster(*hardware("gpu", 2), *on_gpu_0("a", "gpu-0"), *on_gpu_0("b", "gpu-1"))
    answer = ask(here, "drain gpu-0")
    assert {one.pod for one in answer.evicted} == {"default/a", "default/b"}
    assert answer.placed == {"default/a": "gpu-1", "default/b": "gpu-1"}
    assert not answer.waiting and not answer.is_worse
    before, after = answer.nodes["gpu-1"]
    assert (before.pods, before.devices, after.pods, after.devices) == (0, 0, 2, 2)


def test_pods_that_find_no_place_are_told_why():
    """One GPU on the only other node: the second pod waits, as it would."""
    here = cluster(
        *hardware("gpu", 1), *hardware("edge", 1), *on_gpu_0("a", "gpu-0"), *on_gpu_0("b", "gpu-1")
    )
    answer = ask(here, "drain gpu-0")
    assert answer.placed == {"default/a": "edge-0"}
    assert list(answer.waiting) == ["default/b"]
    assert answer.waiting["default/b"].startswith("0/2 nodes are available")
    assert answer.is_worse


def test_pods_of_a_daemon_stay_and_bare_ones_are_lost():
    here = cluster(*hardware("gpu", 2), pod("d", node="gpu-0", owner="daemon"), pod("bare", node="gpu-0"))
    answer = ask(here, "drain gpu-0")
    assert [(one.pod, one.comes_back) for one in answer.evicted] == [("default/bare", False)]
    assert [one.pod for one in answer.lost] == ["default/bare"] and answer.is_worse
    gone = ask(here, "remove gpu-0")
    assert {one.pod for one in gone.lost} == {"default/bare", "default/d"}


def test_a_budget_keeps_pods_on_a_drained_node():
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 1},
    }
    here = cluster(*hardware("gpu", 2), budget, *on_gpu_0("a", "gpu-0"), *on_gpu_0("b", "gpu-1"))
    answer = ask(here, "drain gpu-0")
    assert len(answer.evicted) == 1
    assert list(answer.held.values()) == ["disruption budget keep lets no more pods go"]


def test_a_node_more_takes_pods_that_wait():
    waiting = [claim("c", count=8), pod("big", claim="c")]
    here = cluster(*hardware("gpu", 1), *on_gpu_0("a", "gpu-0"), *waiting)
    assert list(ask(here, "cordon gpu-0").waiting) == ["default/big"]
    answer = ask(here, "add like gpu-0")
    assert answer.placed == {"default/big": "gpu-0-1"}
    assert answer.nodes["gpu-0-1"][0].is_there is False


def test_what_would_happen_anyway_is_not_blamed_on_the_change():
    here = cluster(*hardware("gpu", 2), claim("c"), pod("next", claim="c"))
    answer = ask(here, "add 2 like gpu-1")
    assert answer.anyway == {"default/next": "gpu-0"} and not answer.placed


def test_copies_of_a_pod_get_claims_from_its_template(tmp_path: Path):
    path = tmp_path / "pod.yaml"
    path.write_text(yaml.safe_dump(pod("train", template="one-gpu")))
    answer = ask(cluster(*hardware("gpu", 2)), f"apply 17 {path}")
    assert len(answer.placed) == 16 and len(answer.waiting) == 1
    assert sum(pair[1].devices for pair in answer.nodes.values()) == 16


def test_a_deployment_stands_for_its_pods(tmp_path: Path):
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod("x", template="one-gpu")["spec"]}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    path = tmp_path / "deployment.yaml"
    path.write_text(
        yaml.safe_dump(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": spec}
        )
    )
    answer = ask(cluster(*hardware("gpu", 1)), f"apply {path}")
    assert answer.placed == {f"default/x-{number}": "gpu-0" for number in range(3)}


def test_a_pod_of_more_importance_evicts_and_that_is_said(tmp_path: Path):
    full = [one for number in range(8) for one in on_gpu_0(f"p{number}", f"gpu-{number}")]
    classes = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000}
    here = cluster(*hardware("gpu", 1), *full, {**classes, "metadata": {"name": "high"}})
    path = tmp_path / "pod.yaml"
    path.write_text(yaml.safe_dump(pod("vip", template="one-gpu", priorityClassName="high")))
    answer = ask(here, f"apply {path}")
    assert answer.placed == {"default/vip": "gpu-0"}
    (victim,) = answer.evicted
    assert victim.why == "room for default/vip" and list(answer.waiting) == [victim.pod]


def test_a_quota_refuses_what_comes_and_nothing_that_is_there(tmp_path: Path):
    path = tmp_path / "both.yaml"
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few"},
        "spec": {"hard": {"gpu.example.com.deviceclass.resource.k8s.io/devices": "2"}},
    }
    path.write_text(yaml.safe_dump_all([quota, *(pod(f"n{at}", template="one-gpu") for at in range(3))]))
    here = cluster(*hardware("gpu", 2), *on_gpu_0("a", "gpu-0"))
    answer = ask(here, f"apply {path}")
    assert list(answer.placed) == ["default/n0"]
    assert set(answer.refused) == {"claim default/n1-gpu", "claim default/n2-gpu"}
    assert "exceeded quota: few" in answer.refused["claim default/n1-gpu"]


@pytest.mark.parametrize(
    ("sentences", "evicted", "places"),
    [
        (["taint gpu-0 sick:NoExecute"], ["default/a"], {"default/a": "gpu-1"}),
        (["taint gpu-0 sick:NoSchedule"], [], {}),
        (["delete pod/a"], ["default/a"], {}),
        (["drain gpu-0", "cordon gpu-1", "uncordon gpu-1"], ["default/a"], {"default/a": "gpu-1"}),
        (
            ["drain gpu-0", "taint gpu-1 x:NoSchedule", "untaint gpu-1 x"],
            ["default/a"],
            {"default/a": "gpu-1"},
        ),
    ],
)
def test_sentences_do_what_they_say(sentences: list[str], evicted: list[str], places: dict[str, str]):
    answer = ask(cluster(*hardware("gpu", 2), *on_gpu_0("a", "gpu-0")), *sentences)
    assert [one.pod for one in answer.evicted] == evicted
    assert answer.placed == places


def test_a_taint_rule_ends_the_users_of_its_devices(tmp_path: Path):
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "broken"},
        "spec": {
            "deviceSelector": {"driver": "gpu.example.com", "pool": "gpu-0", "device": "gpu-0"},
            "taint": {"key": "broken", "effect": "NoExecute"},
        },
    }
    path = tmp_path / "rule.yaml"
    path.write_text(yaml.safe_dump(rule))
    here = cluster(*hardware("gpu", 1), *on_gpu_0("a", "gpu-0"), *on_gpu_0("b", "gpu-1"))
    answer = ask(here, f"apply {path}")
    assert [one.pod for one in answer.evicted] == ["default/a"] and answer.placed == {"default/a": "gpu-0"}


def test_a_device_that_fails_serves_nobody_and_its_holder_is_named():
    here = cluster(*hardware("edge", 1), claim("c"), pod("p", claim="c"))
    assert ask(here, "cordon edge-0").waiting and ask(here, "uncordon edge-0").anyway
    assert "default/p" in ask(here, "fail gpu.example.com/edge-0/gpu-0").waiting
    held = cluster(*hardware("gpu", 1), *on_gpu_0("a", "gpu-0"))
    assert ask(held, "fail gpu.example.com/gpu-0/gpu-0").notes == (
        "claim default/a-claim keeps gpu-0, which is not published",
    )


def test_the_cluster_that_was_read_stays_as_it_was():
    """IF2, 4381-SIM-17, AUTO-10: whatever is asked."""
    here = cluster(*hardware("gpu", 2), *on_gpu_0("a", "gpu-0"), claim("c", count=8), pod("p", claim="c"))
    snapshot = here.reading.snapshot
    before, nodes = snapshot.mark(), {node.name: dict(node.pods) for node in snapshot.nodes()}
    first = ask(here, "remove gpu-0", "add 2 like gpu-1")
    assert first.evicted and first.placed
    assert snapshot.moved_since(before) == frozenset() and snapshot.mark() == before
    assert {node.name: dict(node.pods) for node in snapshot.nodes()} == nodes
    assert ask(here, "remove gpu-0", "add 2 like gpu-1") == first


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("drain nowhere", "there is no node nowhere"),
        ("explode gpu-0", "is none of the changes"),
        ("add 0 like gpu-0", "is not a number"),
        ("taint gpu-0 what", "is not KEY"),
        ("untaint gpu-0 what", "has no taint what"),
        ("delete pod/none", "there is no pod default/none"),
        ("delete sofa/none", "is not KIND/NAME"),
        ("fail gpu.example.com/gpu-0/none", "no slice has a device"),
    ],
)
def test_what_cannot_be_done_is_said(sentence: str, why: str):
    with pytest.raises(BadChange, match=why):
        ask(cluster(*hardware("gpu", 1)), sentence)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "is empty"),
        ("kind: Sofa\napiVersion: v1\n", "no 'Sofa' of 'v1' is known"),
        ("kind: Pod\napiVersion: v1\n", "without metadata.name"),
        ("kind: Pod\napiVersion: v1\nmetadata: {name: x}\nspec: {containers: 7}\n", "Pod x: "),
        ("[}", "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, content: str, why: str):
    path = tmp_path / "x.yaml"
    path.write_text(content)
    with pytest.raises(BadManifest, match=why):
        ask(cluster(*hardware("gpu", 1)), f"apply {path}")


def test_the_answer_is_told_in_lines_and_a_table():
    here = cluster(*hardware("gpu", 2), *on_gpu_0("a", "gpu-0"), pod("bare", node="gpu-0"))
    answer = ask(here, "drain gpu-0")
    assert telling.text(answer).splitlines() == [
        "evicted  default/a  from gpu-0: gpu-0 is drained",
        "evicted  default/bare  from gpu-0: gpu-0 is drained; nobody makes it anew",
        "placed   default/a  on gpu-1",
        "",
        "NODE          PODS             DEVICES",
        "gpu-0            2 -> 0              1 -> 0",
        "gpu-1            0 -> 1              0 -> 1",
        "all nodes        2 -> 1",
        "no node          0 -> 0",
    ]
    assert json.loads(json.dumps(answer.as_json()))["placed"] == {"default/a": "gpu-1"}
