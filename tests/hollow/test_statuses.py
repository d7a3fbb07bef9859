"""What is written about a pod, and what is left as it was."""

from typing import Any

from allot.api import Object
from allot.hollow import statuses
from node.objects import pod

NOW, LATER = "2026-11-15T08:00:00Z", "2026-11-15T08:01:00Z"
SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": NOW}


def conditions(status: dict[str, Any]) -> dict[str, str]:
    return {one["type"]: one["status"] for one in status["conditions"]}


def laid(over: Object, status: dict[str, Any]) -> Object:
    return over.changed({"status": status})


def started(**more: Any) -> Object:
    one = pod(status={"conditions": [SCHEDULED]}, **more)
    return laid(one, statuses.started(one, "10.0.0.2", NOW))


def test_a_started_pod_is_ready_with_an_address_and_keeps_other_conditions():
    status = started().fields["status"]
    assert status["phase"] == "Running"
    assert (status["podIP"], status["podIPs"]) == ("10.0.0.2", [{"ip": "10.0.0.2"}])
    assert SCHEDULED in status["conditions"]
    assert conditions(status)["Ready"] == "True"
    (container,) = status["containerStatuses"]
    assert container["ready"] and container["state"] == {"running": {"startedAt": NOW}}


def test_what_somebody_left_without_a_name_or_type_is_no_hindrance():
    """The server takes a status with such entries."""
    nameless = {"status": "True"}
    one = pod(status={"conditions": [nameless], "containerStatuses": [{"ready": True}]})
    told = statuses.started(one, "10.0.0.2", NOW)["conditions"]
    assert nameless in told and "Ready" in {each.get("type") for each in told}
    assert statuses.crashed(one, 1, NOW)["containerStatuses"][0]["restartCount"] == 0


def test_init_containers_are_done_and_sidecars_run():
    first = [{"name": "init", "image": "a"}, {"name": "side", "image": "b", "restartPolicy": "Always"}]
    status = started(spec={"initContainers": first}).fields["status"]
    init, side = status["initContainerStatuses"]
    assert init["state"]["terminated"]["reason"] == "Completed"
    assert "running" in side["state"]
    end = statuses.exited(started(spec={"initContainers": first}), 0, "", LATER)
    assert all("terminated" in one["state"] for one in end["initContainerStatuses"])


def test_a_pod_ends_with_the_code_of_its_containers():
    for code, phase in ((0, "Succeeded"), (3, "Failed")):
        end = statuses.exited(started(), code, "", LATER)
        assert end["phase"] == phase
        assert conditions(end)["Ready"] == "False"
        (container,) = end["containerStatuses"]
        told = container["state"]["terminated"]
        assert (told["exitCode"], told["startedAt"], told["finishedAt"]) == (code, NOW, LATER)
        assert not container["ready"]


def test_of_a_pod_that_never_ran_only_the_phase_is_told():
    end = statuses.exited(pod(), statuses.STOPPED, "", LATER)
    assert end["phase"] == "Failed"
    assert "containerStatuses" not in end


def test_a_restart_is_counted_and_its_reason_kept():
    down = laid(started(), statuses.crashed(started(), 3, LATER))
    (container,) = down.fields["status"]["containerStatuses"]
    assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert conditions(down.fields["status"])["Ready"] == "False"
    up = laid(down, statuses.revived(down, LATER))
    (container,) = up.fields["status"]["containerStatuses"]
    assert container["restartCount"] == 1
    assert container["lastState"]["terminated"]["exitCode"] == 3
    assert conditions(up.fields["status"])["Ready"] == "True"
    again = laid(up, statuses.crashed(up, 3, LATER))
    (container,) = laid(again, statuses.revived(again, LATER)).fields["status"]["containerStatuses"]
    assert container["restartCount"] == 2


def test_an_explanation_is_not_given_twice():
    said = statuses.explained(pod(), "ClaimsNotReady", "claim c is not allocated")
    assert said is not None
    told = laid(pod(), said)
    assert statuses.explained(told, "ClaimsNotReady", "claim c is not allocated") is None
    assert statuses.explained(told, "ClaimsNotReady", "claim c does not exist") is not None


def test_a_condition_that_stays_keeps_its_time():
    up = started()
    again = statuses.started(up, "10.0.0.2", LATER)
    assert {one["lastTransitionTime"] for one in again["conditions"]} == {NOW}
