"""The conditions of a pod that its node keeps."""

from typing import Any

from allot.node import Container, Observed, Running, Terminated, Waiting, readiness
from allot.node.readiness import Said

from .objects import pod

NOW, LATER = "2026-11-15T08:00:00Z", "2026-11-15T08:01:00Z"
UP = Container("main", Running(NOW))
DOWN = Container("main", Waiting("ContainerCreating"))
INIT = {"initContainers": [{"name": "init", "image": "a"}]}
SIDE = {"initContainers": [{"name": "init", "image": "a", "restartPolicy": "Always"}]}


def test_a_pod_whose_containers_have_not_begun_says_which_it_waits_for():
    found = readiness.wanted(pod(), Observed((DOWN,)))
    unready = Said("False", "ContainersNotReady", "containers with unready status: [main]")
    assert found == {
        "PodScheduled": Said("True"),
        "PodReadyToStartContainers": Said("False"),
        "Initialized": Said("True"),
        "ContainersReady": unready,
        "Ready": unready,
    }


def test_a_pod_is_initialized_when_its_init_containers_are_done():
    waiting = Said("False", "ContainersNotInitialized", "containers with incomplete status: [init]")
    for state, expected in (
        (Waiting("ContainerCreating"), waiting),
        (Running(NOW), waiting),
        (Terminated(1, NOW, NOW), waiting),
        (Terminated(0, NOW, NOW), Said("True")),
    ):
        found = readiness.wanted(pod(spec=INIT), Observed((DOWN,), (Container("init", state),)))
        assert found["Initialized"] == expected
        has_begun = "False" if isinstance(state, Waiting) else "True"
        assert found["PodReadyToStartContainers"].status == has_begun


def test_a_sidecar_has_to_start_and_counts_for_readiness():
    side = Container("init", Running(NOW), is_started=False, is_ready=False)
    found = readiness.wanted(pod(spec=SIDE), Observed((DOWN,), (side,)))
    assert found["Initialized"].status == "False"
    started = side._replace(is_started=True)
    found = readiness.wanted(pod(spec=SIDE), Observed((UP,), (started,)))
    assert found["Initialized"].status == "True"
    assert found["Ready"].message == "containers with unready status: [init]"
    assert readiness.ready(pod(spec=SIDE), Observed((UP,), (started._replace(is_ready=True),)))[
        "Ready"
    ] == Said("True")


def test_a_container_whose_probe_fails_makes_the_pod_unready():
    found = readiness.ready(pod(), Observed((UP._replace(is_ready=False),)))
    assert {said.status for said in found.values()} == {"False"}


def test_a_readiness_gate_holds_up_the_pod_and_not_its_containers():
    gates = {"readinessGates": [{"conditionType": "example.com/lb"}]}

    def ready(*conditions: dict[str, Any]) -> Said:
        found = readiness.ready(pod(spec=gates, status={"conditions": list(conditions)}), Observed((UP,)))
        assert found["ContainersReady"] == Said("True")
        return found["Ready"]

    assert ready().reason == "ReadinessGatesNotReady"
    assert 'readiness gate "example.com/lb" does not exist.' in ready().message
    assert 'is not "True".' in ready({"type": "example.com/lb", "status": "False"}).message
    assert ready({"type": "example.com/lb", "status": "True"}) == Said("True")


def test_after_the_end_nothing_is_ready():
    done = Observed((Container("main", Terminated(0, NOW, NOW)),))
    found = readiness.after_the_end(pod(), done, is_well=True)
    assert found["Ready"] == found["ContainersReady"] == Said("False", "PodCompleted")
    assert found["Initialized"] == Said("True", "PodCompleted")
    assert readiness.after_the_end(pod(), done, is_well=False)["Ready"] == Said("False", "PodFailed")


def test_a_reason_may_change_while_the_time_of_the_last_change_stays():
    was = {"type": "Ready", "status": "False", "lastTransitionTime": NOW, "reason": "Old"}
    (found,) = readiness.laid_over(pod(status={"conditions": [was]}), {"Ready": Said("False", "New")}, LATER)
    assert (found["reason"], found["lastTransitionTime"]) == ("New", NOW)
    (found,) = readiness.laid_over(pod(status={"conditions": [was]}), {"Ready": Said("True")}, LATER)
    assert found == {"type": "Ready", "status": "True", "lastTransitionTime": LATER}
