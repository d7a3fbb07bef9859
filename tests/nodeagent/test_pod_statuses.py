"""The status of a real pod, field by field, and what is said about it."""

import socket
from typing import Any

from .plugins import until
from .test_pod_probes import events, main
from .world import NS, World, tell


def by_type(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["type"]: one for one in status["conditions"]}


def test_the_status_of_a_pod_that_runs_has_all_that_a_kubelet_writes():
    async def play(here: World) -> None:
        async with here.agent():
            resources = {"requests": {"cpu": "10m"}, "limits": {"cpu": "500m", "memory": "64Mi"}}
            made = await here.pod("", containers=[main("sleep 300", resources=resources)])
            await here.until_phase("Running")
            status = await here.status()
            assert (status["hostIP"], status["hostIPs"]) == ("127.0.0.1", [{"ip": "127.0.0.1"}])
            assert (status["podIP"], status["podIPs"]) == ("127.0.0.1", [{"ip": "127.0.0.1"}])
            assert status["qosClass"] == "Burstable"
            assert status["startTime"] >= made.fields["metadata"]["creationTimestamp"]
            assert status["observedGeneration"] == made.fields["metadata"]["generation"]
            conditions = by_type(status)
            for type in (
                "PodScheduled",
                "PodReadyToStartContainers",
                "Initialized",
                "ContainersReady",
                "Ready",
            ):
                assert conditions[type]["status"] == "True", type
            (container,) = status["containerStatuses"]
            assert container["containerID"].startswith("process://")
            assert container["state"]["running"]["startedAt"]
            assert (container["ready"], container["started"], container["restartCount"]) == (True, True, 0)
            assert container["allocatedResources"] == {"cpu": "10m", "memory": "64Mi"}
            assert container["resources"] == {
                "requests": {"cpu": "10m", "memory": "64Mi"},
                "limits": {"cpu": "500m", "memory": "64Mi"},
            }

    tell(play)


def test_the_status_of_a_pod_that_is_done_says_so_in_every_condition():
    async def play(here: World) -> None:
        async with here.agent():
            await here.pod("true")
            await here.until_phase("Succeeded")
            status = await here.status()
            conditions = by_type(status)
            for type in ("ContainersReady", "Ready"):
                assert (conditions[type]["status"], conditions[type]["reason"]) == ("False", "PodCompleted")
            assert conditions["Initialized"]["status"] == "True"
            assert conditions["PodReadyToStartContainers"]["status"] == "False"
            assert status["podIP"] == "127.0.0.1", "where it was"
            end = status["containerStatuses"][0]["state"]["terminated"]
            assert (end["exitCode"], end["reason"]) == (0, "Completed")
            assert end["containerID"] == status["containerStatuses"][0]["containerID"]

    tell(play)


def test_a_pod_that_waits_says_for_which_containers():
    async def play(here: World) -> None:
        async with here.agent():
            env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "a"}}}]
            await here.pod("", containers=[main("true", env=env)])
            await here.until_waiting("CreateContainerConfigError")
            status = await here.status()
            assert status["phase"] == "Pending" and status["startTime"] and status["hostIP"] == "127.0.0.1"
            ready = by_type(status)["Ready"]
            assert (ready["status"], ready["reason"]) == ("False", "ContainersNotReady")
            assert ready["message"] == "containers with unready status: [main]"
            (said, *_) = await events(here, "Failed")
            assert said["type"] == "Warning" and 'configmaps "none" not found' in said["message"]

    tell(play)


def test_what_happens_to_a_container_is_told_in_the_words_of_a_kubelet():
    async def play(here: World) -> None:
        async with here.agent():
            await here.pod("exit 1", restartPolicy="Always")
            await here.until_waiting("CrashLoopBackOff")

            async def told() -> bool:
                return bool(await events(here, "BackOff"))

            await until(told)
            pod = await here.pods.get("p", NS)
            (said,) = await events(here, "BackOff")
            assert said["type"] == "Warning"
            assert said["message"] == f"Back-off restarting failed container main in pod p_{NS}({pod.uid})"
            for reason, message in (("Created", "Container created"), ("Started", "Container started")):
                (said,) = await events(here, reason)
                assert (said["type"], said["message"]) == ("Normal", message)
                assert said["count"] == 2, "it was started twice"

    tell(play)


def test_a_gate_holds_up_a_pod_until_somebody_opens_it():
    async def play(here: World) -> None:
        async with here.agent():
            gate = {"conditionType": "example.com/open"}
            await here.pod("sleep 300", readinessGates=[gate])
            await here.until_phase("Running")
            ready = by_type(await here.status())["Ready"]
            assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")
            opened = {"type": "example.com/open", "status": "True"}
            patch = {"status": {"conditions": [*(await here.status())["conditions"], opened]}}
            await here.pods.patch("p", patch, NS, subresource="status")

            async def is_ready() -> bool:
                return bool(by_type(await here.status())["Ready"]["status"] == "True")

            await until(is_ready)

    tell(play)


def test_a_container_is_added_to_a_pod_that_runs():
    """What kubectl debug does."""

    async def play(here: World) -> None:
        async with here.agent():
            await here.pod("sleep 300")
            await here.until_phase("Running")
            added = {**main("echo looking around; exit 5"), "name": "debug"}
            patch = {"spec": {"ephemeralContainers": [added]}}
            await here.pods.patch("p", patch, NS, subresource="ephemeralcontainers")

            async def is_done() -> bool:
                found = (await here.status()).get("ephemeralContainerStatuses") or [{}]
                return "terminated" in (found[0].get("state") or {})

            await until(is_done)
            (status,) = (await here.status())["ephemeralContainerStatuses"]
            assert (status["name"], status["state"]["terminated"]["exitCode"]) == ("debug", 5)
            assert (await here.status())["phase"] == "Running", "its end is nobody's concern"
            assert await here.log(container="debug") == "looking around\n"

    tell(play)


def test_an_added_container_ends_with_its_pod():
    async def play(here: World) -> None:
        async with here.agent():
            go = here.folder / "go"
            await here.pod(f"while [ ! -e {go} ]; do sleep 0.05; done")
            await here.until_phase("Running")
            added = {**main("trap 'exit 9' TERM; while :; do sleep 0.05; done"), "name": "debug"}
            patch = {"spec": {"ephemeralContainers": [added]}}
            await here.pods.patch("p", patch, NS, subresource="ephemeralcontainers")

            async def runs() -> bool:
                found = (await here.status()).get("ephemeralContainerStatuses") or [{}]
                return "running" in (found[0].get("state") or {})

            await until(runs)
            go.touch()
            await here.until_phase("Succeeded")
            (status,) = (await here.status())["ephemeralContainerStatuses"]
            assert status["state"]["terminated"]["exitCode"] == 9

    tell(play)


def test_a_pod_may_have_the_longest_name_that_there_is():
    """No host may be called so."""

    async def play(here: World) -> None:
        name = "n" * 253
        async with here.agent():
            await here.pod("hostname; echo $HOSTNAME", name=name)
            await here.until_phase("Succeeded", name)
            assert set((await here.log(name)).split()) <= {"n" * 63, socket.gethostname()}

    tell(play)
