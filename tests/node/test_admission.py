"""Who fits on a node, and what is said to those who do not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import Quantity, core
from allot.node.admission import Admission

from .objects import pod

GPU = "example.com/gpu"
OFFERED = {"cpu": "4", "memory": "8Gi", "pods": "3", GPU: "2"}


def asking(name: str, requests: dict[str, str], node: str = "n", **more: Any) -> core.Pod:
    container = {"name": "main", "image": "app:1", "resources": {"requests": requests}}
    spec = {"containers": [container], **more.pop("spec", {})}
    return pod(name, node=node, spec=spec, **more).view(core.Pod)


def served(*names: str) -> dict[str, Any]:
    """The status of a pod for which DRA serves these resources."""
    mappings = [{"containerName": "main", "resourceName": name, "requestName": "r"} for name in names]
    return {"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": mappings}}


@pytest.mark.parametrize(
    ("requests", "reason", "numbers"),
    [
        ({"cpu": "3500m"}, "OutOfcpu", "cpu, requested: 3500, used: 1000, capacity: 4000"),
        (
            {"memory": "8Gi"},
            "OutOfmemory",
            "memory, requested: 8589934592, used: 1048576, capacity: 8589934592",
        ),
        ({GPU: "2"}, f"OutOf{GPU}", f"{GPU}, requested: 2, used: 1, capacity: 2"),
        (
            {"example.com/fpga": "1"},
            "OutOfexample.com/fpga",
            "example.com/fpga, requested: 1, used: 0, capacity: 0",
        ),
        (
            {"memory": "9Gi", "cpu": "9", GPU: "9"},
            "OutOfcpu",
            "cpu, requested: 9000, used: 1000, capacity: 4000",
        ),
    ],
)
def test_who_does_not_fit_is_told_what_is_missing(requests, reason, numbers):
    admission = Admission()
    assert admission.admit(asking("a", {"cpu": "1", "memory": "1Mi", GPU: "1"}), OFFERED) is None
    refusal = admission.admit(asking("b", requests), OFFERED)
    assert refusal is not None
    assert refusal.reason == reason
    assert refusal.message == f"Pod was rejected: Node didn't have enough resource: {numbers}"


def test_a_pod_that_asks_for_nothing_takes_a_place():
    admission = Admission()
    for name in "abc":
        assert admission.admit(asking(name, {"cpu": "0"}), OFFERED) is None
    refusal = admission.admit(asking("d", {}), OFFERED)
    assert refusal is not None and refusal.reason == "OutOfpods"
    assert admission.admit(asking("d", {}, node="another"), OFFERED) is None


def test_room_is_free_again_when_its_pod_has_ended():
    admission = Admission()
    first, second = asking("a", {GPU: "2"}), asking("b", {GPU: "1"})
    assert admission.admit(first, OFFERED) is None
    assert admission.admit(second, OFFERED) is not None
    admission.release(first)
    assert admission.admit(second, OFFERED) is None


def test_who_would_fit_once_others_have_left_is_known_and_not_counted():
    admission = Admission()
    first, second = asking("a", {GPU: "1"}), asking("b", {GPU: "1", "cpu": "3"})
    for one in (first, second):
        assert admission.admit(one, OFFERED) is None
    newcomer = asking("c", {GPU: "1", "cpu": "2"})
    assert not admission.would_fit(newcomer, OFFERED, [])
    assert not admission.would_fit(newcomer, OFFERED, [first])  # devices there are then, but no cpu
    assert admission.would_fit(newcomer, OFFERED, [second])
    assert not admission.would_fit(newcomer, OFFERED, [asking("unknown", {GPU: "1", "cpu": "3"})])
    refusal = admission.admit(newcomer, OFFERED)
    assert refusal is not None and refusal.reason == "OutOfcpu"


def test_room_that_was_given_is_not_taken_back():
    """ADMIT1: a node that has less now keeps whom it has, and takes nobody else."""
    admission = Admission()
    first = asking("a", {GPU: "2"})
    assert admission.admit(first, OFFERED) is None
    less = {**OFFERED, GPU: "1"}
    assert admission.admit(first, less) is None
    refusal = admission.admit(asking("b", {GPU: "1"}), less)
    assert refusal is not None and "used: 2, capacity: 1" in refusal.message
    assert admission.admit(asking("c", {"cpu": "1"}), less) is None  # it asks for none of that


def test_who_ran_before_is_counted_even_if_it_does_not_fit():
    admission = Admission()
    for name in ("a", "b", "c"):
        admission.count(asking(name, {GPU: "1"}), OFFERED)
    refusal = admission.admit(asking("d", {GPU: "1"}), {**OFFERED, "pods": "9"})
    assert refusal is not None and "used: 3, capacity: 2" in refusal.message


def test_what_a_claim_stands_behind_is_not_the_nodes_to_count():
    """5004-ACT-02: resource by resource; where a device plugin counts it, a left-over name says nothing."""
    admission = Admission()
    plain = {name: amount for name, amount in OFFERED.items() if name != GPU}
    assert admission.admit(asking("a", {GPU: "5"}, status=served(GPU)), plain) is None
    assert GPU not in admission.used("n")
    other = admission.admit(asking("b", {GPU: "1", "example.com/fpga": "1"}, status=served(GPU)), plain)
    assert other is not None and other.reason == "OutOfexample.com/fpga"
    counted = admission.admit(asking("c", {GPU: "5"}, status=served(GPU)), OFFERED)
    assert counted is not None and counted.reason == f"OutOf{GPU}"


def test_init_containers_sidecars_and_overhead_count_as_they_do_for_the_scheduler():
    def container(name: str, cpu: str, **more: str) -> dict[str, Any]:
        return {"name": name, "image": "a", "resources": {"requests": {"cpu": cpu}}, **more}

    first = [container("side", "1", restartPolicy="Always"), container("once", "2500m")]
    whole = asking("a", {"cpu": "1"}, spec={"initContainers": first, "overhead": {"cpu": "500m"}})
    admission = Admission()
    assert admission.admit(whole, OFFERED) is None
    assert admission.used("n")["cpu"] == Quantity.parse("4")


def test_a_node_that_says_nothing_of_itself_takes_everybody():
    admission = Admission()
    assert admission.admit(asking("a", {"cpu": "1000"}), {}) is None


MOVES = st.lists(
    st.tuples(
        st.sampled_from(["admit", "count", "release", "forget"]),
        st.sampled_from("abcde"),
        st.sampled_from("nm"),
        st.integers(0, 3),
        st.integers(0, 2),
    )
)


@given(MOVES)
def test_what_is_used_is_the_sum_over_those_who_are_there(moves):
    """ADMIT1 to ADMIT3 against a count from nothing."""
    admission = Admission()
    there: dict[str, dict[str, tuple[int, int]]] = {"n": {}, "m": {}}
    for move, name, node, cpu, gpus in moves:
        one, here = asking(name, {"cpu": str(cpu), GPU: str(gpus)}, node), there[node]
        sums = (len(here), sum(c for c, _ in here.values()), sum(g for _, g in here.values()))
        if move == "admit":
            fits = sums[0] < 3 and (not cpu or cpu + sums[1] <= 4) and (not gpus or gpus + sums[2] <= 2)
            assert (admission.admit(one, OFFERED) is None) == (fits or name in here)
            if fits:
                here.setdefault(name, (cpu, gpus))
        elif move == "count":
            admission.count(one, OFFERED)
            here.setdefault(name, (cpu, gpus))
        elif move == "release":
            admission.release(one)
            here.pop(name, None)
        else:
            admission.forget(node)
            here.clear()
        for where, pods in there.items():
            used = {name: amount for name, amount in admission.used(where).items() if amount}
            wanted = {
                "pods": len(pods),
                "cpu": sum(c for c, _ in pods.values()),
                GPU: sum(g for _, g in pods.values()),
            }
            assert used == {name: Quantity.of(amount) for name, amount in wanted.items() if amount}


def recorded(name: str, asked: str, *entries: dict[str, Any]) -> core.Pod:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {asked: "1"}}}
    container["allocatedComputeResources"] = {asked: [*entries]}
    return pod(name, node="n", spec={"containers": [container]}).view(core.Pod)


@pytest.mark.parametrize("asked", ["gpu-gold", "nvidia.com/gpu"])
def test_what_compute_resources_serve_is_not_looked_up_in_what_the_node_counts(asked):
    """14-AGENT-03"""
    one = recorded("p", asked, {"computeResourceName": "nvidia.com/gpu-0123456789abcdef", "count": 1})
    assert Admission().admit(one, OFFERED) is None


def test_what_a_group_has_of_the_nodes_own_counts():
    """14-GROUP-03: a card and 5Gi of memory as one thing to ask for; two do not fit."""
    card = {"computeResourceName": "sfc.com/nic-0123456789abcdef", "count": 1, "member": 0}
    memory = {"resourceName": "memory", "amount": "5Gi", "member": 1}
    admission = Admission()
    assert admission.admit(recorded("p", "nic-super", card, memory), OFFERED) is None
    refusal = admission.admit(recorded("q", "nic-super", card, memory), OFFERED)
    assert refusal is not None
    assert refusal.reason == "OutOfmemory"
