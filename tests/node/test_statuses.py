"""What is written about a pod, and what is left as it was."""

from typing import Any

import pytest

from allot.api import Object, Quantity
from allot.node import NOTHING, Container, Observed, Running, Terminated, Waiting, statuses
from allot.node.admission import Refusal

from .objects import pod

NOW, LATER = "2026-11-15T08:00:00Z", "2026-11-15T08:01:00Z"
SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": NOW}
MAIN = Container("main", Running(NOW), id="x://1", image_id="x/app")
UP = Observed((MAIN,), addresses=("10.0.0.2",))


def conditions(status: dict[str, Any]) -> dict[str, str]:
    return {one["type"]: one["status"] for one in status["conditions"]}


def laid(over: Object, status: dict[str, Any]) -> Object:
    return over.changed({"status": status})


def started(**more: Any) -> Object:
    one = pod(status={"conditions": [SCHEDULED], "reason": "Waited", "message": "long"}, **more)
    return laid(one, statuses.observed(one, UP, NOW))


def test_a_started_pod_is_ready_with_an_address_and_keeps_other_conditions():
    status = started().fields["status"]
    assert status["phase"] == "Running" and status["startTime"] == NOW
    assert "reason" not in status and "message" not in status
    assert (status["podIP"], status["podIPs"]) == ("10.0.0.2", [{"ip": "10.0.0.2"}])
    assert SCHEDULED in status["conditions"]
    ready = ("Initialized", "PodReadyToStartContainers", "ContainersReady", "Ready")
    assert dict.fromkeys(ready, "True").items() <= conditions(status).items()
    (container,) = status["containerStatuses"]
    assert container == {
        "name": "main",
        "image": "app:1",
        "imageID": "x/app",
        "containerID": "x://1",
        "restartCount": 0,
        "ready": True,
        "started": True,
        "state": {"running": {"startedAt": NOW}},
    }


def test_a_pod_with_several_addresses_shows_the_first_one_and_all():
    """And another of them later; while none is known, the last that was stays."""
    both = [{"ip": "10.0.0.2"}, {"ip": "fd00::2"}]
    status = statuses.observed(started(), UP._replace(addresses=("10.0.0.2", "fd00::2")), LATER)
    assert (status["podIP"], status["podIPs"]) == ("10.0.0.2", both)
    shown = laid(started(), {"podIP": "10.0.0.2", "podIPs": both})
    assert "podIPs" not in statuses.observed(shown, UP._replace(addresses=("10.0.0.2", "fd00::2")), LATER)
    assert "podIP" not in statuses.observed(shown, UP._replace(addresses=()), LATER)
    later = statuses.observed(shown, UP._replace(addresses=("10.0.0.3",)), LATER)
    assert (later["podIP"], later["podIPs"]) == ("10.0.0.3", [{"ip": "10.0.0.3"}])


def test_what_somebody_left_without_a_name_or_type_is_no_hindrance():
    """The server takes a status with such entries."""
    nameless = {"status": "True"}
    one = pod(status={"conditions": [nameless], "containerStatuses": [{"ready": True}]})
    told = statuses.observed(one, UP, NOW)["conditions"]
    assert nameless in told and "Ready" in {each.get("type") for each in told}
    assert statuses.explained(one, "ClaimsNotReady", "claim c is not allocated") is not None


def test_an_init_container_that_is_done_counts_as_ready_and_another_does_not():
    done = Terminated(0, NOW, NOW)
    first = [{"name": "init", "image": "a"}]
    seen = UP._replace(init_containers=(Container("init", done),))
    status = statuses.observed(pod(spec={"initContainers": first}), seen, NOW)
    (init,) = status["initContainerStatuses"]
    assert init["ready"] and not init["started"] and init["image"] == "a"
    (main,) = statuses.ended(pod(), Observed((MAIN._replace(state=done),)), NOW)["containerStatuses"]
    assert not main["ready"]


def test_a_pod_ends_with_the_code_of_its_containers():
    for code, phase in ((0, "Succeeded"), (3, "Failed")):
        seen = Observed((MAIN._replace(state=Terminated(code, NOW, LATER)),))
        end = statuses.ended(started(), seen, LATER)
        assert end["phase"] == phase and "reason" not in end
        assert conditions(end)["Ready"] == conditions(end)["ContainersReady"] == "False"
        (container,) = end["containerStatuses"]
        told = container["state"]["terminated"]
        assert (told["exitCode"], told["startedAt"], told["finishedAt"]) == (code, NOW, LATER)
    late = seen._replace(reason="DeadlineExceeded")
    assert statuses.ended(started(), late, LATER)["reason"] == "DeadlineExceeded"


def test_one_container_that_failed_fails_the_pod():
    ends = tuple(Container(str(code), Terminated(code, NOW, NOW)) for code in (0, 1))
    assert statuses.ended(pod(), Observed(ends), NOW)["phase"] == "Failed"


def test_of_a_pod_that_never_ran_only_the_phase_is_told():
    for never in (NOTHING, Observed((Container("main", Waiting("CreateContainerConfigError")),))):
        end = statuses.ended(pod(), never, LATER)
        assert end["phase"] == "Failed"
        assert "containerStatuses" not in end


def test_a_container_that_waits_for_its_next_run_makes_the_pod_unready_and_no_more():
    down = MAIN._replace(state=Waiting("CrashLoopBackOff"), last=Terminated(3, NOW, LATER), restarts=1, id="")
    status = statuses.observed(started(), Observed((down,), addresses=("10.0.0.2",)), LATER)
    assert "phase" not in status and "startTime" not in status and "podIP" not in status
    assert conditions(status)["Ready"] == "False" and conditions(status)["Initialized"] == "True"
    (container,) = status["containerStatuses"]
    assert container["lastState"]["terminated"]["exitCode"] == 3 and container["restartCount"] == 1
    assert "containerID" not in container


def test_containers_that_cannot_begin_say_why_and_the_pod_stays_in_its_phase():
    seen = Observed((Container("main", Waiting("Bad", "wish")),), host="10.0.0.1")
    status = statuses.observed(pod(), seen, NOW)
    assert "phase" not in status and "podIP" not in status
    assert status["startTime"] == NOW, "its node has it"
    assert (status["hostIP"], status["hostIPs"]) == ("10.0.0.1", [{"ip": "10.0.0.1"}])
    assert conditions(status)["Ready"] == "False"


def test_what_a_container_left_and_was_given_is_told():
    end = Terminated(1, NOW, LATER, "OOMKilled", "too much", "x://1")
    amounts = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    seen = Observed((MAIN._replace(state=end, resources=amounts),))
    (container,) = statuses.ended(started(), seen, LATER)["containerStatuses"]
    told = container["state"]["terminated"]
    assert (told["reason"], told["message"], told["containerID"]) == ("OOMKilled", "too much", "x://1")
    assert (container["resources"], container["allocatedResources"]) == (amounts, {"cpu": "1"})


def test_a_pod_that_was_ended_for_its_own_sake_has_failed_whatever_its_containers_say():
    done = MAIN._replace(state=Terminated(0, NOW, LATER))
    late = Observed((done,), reason="DeadlineExceeded", message="too long")
    end = statuses.ended(started(), late, LATER)
    assert (end["phase"], end["reason"], end["message"]) == ("Failed", "DeadlineExceeded", "too long")
    never = Observed((Container("main", Waiting("ErrImagePull")),), reason="DeadlineExceeded")
    assert never.has_ended, "what never began need not end"


def test_an_ephemeral_container_is_told_of_and_is_never_ready():
    debug = Container("debug", Running(NOW))
    one = pod(spec={"ephemeralContainers": [{"name": "debug", "image": "b"}]})
    (told,) = statuses.observed(one, UP._replace(ephemeral_containers=(debug,)), NOW)[
        "ephemeralContainerStatuses"
    ]
    assert (told["image"], told["ready"], told["started"]) == ("b", False, True)
    assert Observed((MAIN._replace(state=Terminated(0, NOW, NOW)),), ephemeral_containers=(debug,)).runs


def test_probes_decide_whether_a_container_that_runs_has_started_and_is_ready():
    slow = UP._replace(containers=(MAIN._replace(is_started=False, is_ready=False),))
    status = statuses.observed(pod(), slow, NOW)
    (container,) = status["containerStatuses"]
    assert (container["started"], container["ready"]) == (False, False)
    assert status["phase"] == "Running" and conditions(status)["Ready"] == "False"


def test_a_newer_spec_is_told_of():
    one = started(metadata={"generation": 1})
    assert one.fields["status"]["observedGeneration"] == 1
    assert not statuses.is_doubted(one, UP)
    assert statuses.is_doubted(one.changed({"metadata": {"generation": 2}}), UP)


def test_an_explanation_is_not_given_twice():
    said = statuses.explained(pod(), "ClaimsNotReady", "claim c is not allocated")
    assert said is not None
    told = laid(pod(), said)
    assert statuses.explained(told, "ClaimsNotReady", "claim c is not allocated") is None
    assert statuses.explained(told, "ClaimsNotReady", "claim c does not exist") is not None


def test_a_condition_that_stays_keeps_its_time():
    again = statuses.observed(started(), UP, LATER)
    assert {one["lastTransitionTime"] for one in again["conditions"]} == {NOW}


def test_a_refusal_is_told_in_the_words_of_a_kubelet():
    refusal = Refusal("cpu", *map(Quantity.of, (1, 8, 8)))
    assert statuses.refused(refusal) == {
        "phase": "Failed",
        "reason": "OutOfcpu",
        "message": refusal.message,
    }


@pytest.mark.parametrize(
    ("seen", "shown", "is_doubted"),
    [
        (UP, {"Ready": "True", "ContainersReady": "True"}, False),
        (UP, {"Ready": "False", "ContainersReady": "True"}, True),
        (UP, {}, True),
        (Observed((Container("main", Waiting("Slow", "")),)), {}, False),
    ],
)
def test_readiness_that_the_node_did_not_report_is_found(seen, shown, is_doubted):
    conditions = [SCHEDULED, *({"type": type, "status": status} for type, status in shown.items())]
    assert statuses.is_doubted(pod(status={"conditions": conditions}), seen) is is_doubted
