"""A pod in `kubectl get pods`."""

import pytest

from .objects import container, pod, row


def seen(status, *, deleted=False, **spec):
    fields = pod(**spec)
    fields["metadata"]["creationTimestamp"] = "2026-11-15T07:59:00Z"
    if deleted:
        fields["metadata"]["deletionTimestamp"] = "2026-11-15T07:59:30Z"
    return row("pods", {**fields, "status": status})


def state(name="main", ready=False, restarts=0, **kind):
    return {"name": name, "ready": ready, "restartCount": restarts, "state": kind}


RUNNING = {"running": {}}


def ended(code=0, **more):
    return {"terminated": {"exitCode": code, **more}}


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"phase": "Pending"}, "Pending"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({"phase": "Running", "containerStatuses": [state(ready=True, **RUNNING)]}, "Running"),
        (
            {"phase": "Pending", "containerStatuses": [state(waiting={"reason": "ImagePullBackOff"})]},
            "ImagePullBackOff",
        ),
        ({"phase": "Succeeded", "containerStatuses": [state(**ended(reason="Completed"))]}, "Completed"),
        ({"phase": "Failed", "containerStatuses": [state(**ended(3))]}, "ExitCode:3"),
        ({"phase": "Failed", "containerStatuses": [state(**ended(137, signal=9))]}, "Signal:9"),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            "SchedulingGated",
        ),
    ],
)
def test_status_is_what_stands_in_the_way(status, shown):
    assert seen(status)["Status"] == shown


def test_a_finished_container_beside_a_running_one():
    containers = [state("a", **ended(reason="Completed")), state("b", ready=True, **RUNNING)]
    status = {"phase": "Running", "containerStatuses": containers}
    assert seen(status)["Status"] == "NotReady"
    assert seen({**status, "conditions": [{"type": "Ready", "status": "True"}]})["Status"] == "Running"


def test_a_pod_that_is_going():
    running = {"phase": "Running", "containerStatuses": [state(ready=True, **RUNNING)]}
    assert seen(running, deleted=True)["Status"] == "Terminating"
    assert seen({**running, "reason": "NodeLost"}, deleted=True)["Status"] == "Unknown"
    assert seen({"phase": "Succeeded"}, deleted=True)["Status"] == "Succeeded"


def test_init_containers_are_shown_until_they_are_done():
    spec = {"initContainers": [container("a"), container("b")]}

    def with_init(*statuses):
        return seen({"phase": "Pending", "initContainerStatuses": list(statuses)}, **spec)["Status"]

    assert with_init(state("a", **RUNNING), state("b")) == "Init:0/2"
    assert with_init(state("a", **ended()), state("b", **RUNNING)) == "Init:1/2"
    assert with_init(state("a", **ended(1))) == "Init:ExitCode:1"
    assert with_init(state("a", **ended(1, reason="Error"))) == "Init:Error"
    assert with_init(state("a", waiting={"reason": "CrashLoopBackOff"})) == "Init:CrashLoopBackOff"
    assert with_init(state("a", **ended()), state("b", **ended())) == "Pending"


def test_sidecars_count_among_the_ready():
    spec = {"initContainers": [container("side", restartPolicy="Always")]}
    side = {**state("side", ready=True, restarts=2, **RUNNING), "started": True}
    status = {
        "phase": "Running",
        "initContainerStatuses": [side],
        "containerStatuses": [state(ready=True, **RUNNING)],
    }
    cells = seen(status, **spec)
    assert (cells["Ready"], cells["Status"], cells["Restarts"]) == ("2/2", "Running", "2")


def test_restarts_say_how_long_ago_the_last_was():
    last = {"terminated": {"finishedAt": "2026-11-15T07:55:00Z"}}
    main = {**state(ready=True, restarts=3, **RUNNING), "lastState": last}
    assert seen({"phase": "Running", "containerStatuses": [main]})["Restarts"] == "3 (5m ago)"


def test_the_wide_columns():
    gates = [{"conditionType": "a"}, {"conditionType": "b"}]
    status = {
        "phase": "Running",
        "podIP": "10.0.0.9",
        "nominatedNodeName": "n2",
        "conditions": [{"type": "a", "status": "True"}],
    }
    cells = seen(status, nodeName="n1", readinessGates=gates)
    assert [cells[name] for name in ("Age", "IP", "Node", "Nominated Node", "Readiness Gates")] == [
        "60s",
        "10.0.0.9",
        "n1",
        "n2",
        "1/2",
    ]
