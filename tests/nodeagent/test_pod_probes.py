"""Probes of real containers: who is ready, who is started again, and what is said about it."""

import socket
from typing import Any

from .plugins import until
from .world import NS, World, tell


def main(script: str, **more: Any) -> dict[str, Any]:
    return {"name": "main", "image": "none", "command": ["sh", "-c", script], **more}


def checks(path: object, **more: Any) -> dict[str, Any]:
    """A probe that succeeds while a file is there."""
    return {"exec": {"command": ["test", "-e", str(path)]}, "periodSeconds": 1, "timeoutSeconds": 20, **more}


async def ready(here: World, name: str = "p") -> str:
    conditions = (await here.status(name)).get("conditions") or ()
    return next((one["status"] for one in conditions if one["type"] == "Ready"), "")


async def events(here: World, reason: str) -> list[dict[str, Any]]:
    found = await here.client.resource("", "v1", "events").list(NS)
    return [dict(one.fields) for one in found.objects if one.fields["reason"] == reason]


async def until_ready(here: World, wanted: str) -> None:
    async def is_so() -> bool:
        return await ready(here) == wanted

    await until(is_so)


def test_a_pod_is_ready_while_its_readiness_probe_succeeds():
    async def play(here: World) -> None:
        async with here.agent():
            fine = here.folder / "fine"
            probe = checks(fine, failureThreshold=1)
            await here.pod("", containers=[main("sleep 300", readinessProbe=probe)])
            await here.until_phase("Running")
            state = await here.state()
            assert (state["started"], state["ready"]) == (True, False)
            assert await ready(here) == "False"
            fine.touch()
            await until_ready(here, "True")
            assert (await here.state())["ready"]
            fine.unlink()
            await until_ready(here, "False")
            assert (await here.state())["restartCount"] == 0, "readiness kills nobody"
            (said, *_) = await events(here, "Unhealthy")
            assert said["message"].startswith("Readiness probe failed")
            assert said["involvedObject"]["fieldPath"] == "spec.containers{main}"
            assert said["source"] == {"component": "kubelet", "host": "worker"}

    tell(play)


def test_a_container_whose_liveness_probe_fails_is_ended_and_started_again():
    async def play(here: World) -> None:
        async with here.agent():
            fine = here.folder / "fine"
            fine.touch()
            heard = here.folder / "heard"
            script = f"trap 'echo term >> {heard}; exit 7' TERM; while :; do sleep 0.05; done"
            probe = checks(fine, failureThreshold=2)
            await here.pod("", containers=[main(script, livenessProbe=probe)], restartPolicy="Always")
            await here.until_phase("Running")
            assert await ready(here) == "True"
            fine.unlink()

            async def restarted() -> bool:
                return bool((await here.state()).get("restartCount", 0) >= 1)

            await until(restarted)
            fine.touch()
            assert heard.read_text().startswith("term\n"), "it was told to end before"
            last = (await here.state())["lastState"]["terminated"]
            assert (last["exitCode"], last["reason"]) == (7, "Error")
            assert last["containerID"]
            (said, *_) = await events(here, "Killing")
            assert said["message"] == "Container main failed liveness probe, will be restarted"

    tell(play)


def test_one_that_does_not_hear_is_killed_after_the_grace_of_its_probe():
    async def play(here: World) -> None:
        async with here.agent():
            probe = checks(here.folder / "none", failureThreshold=1, terminationGracePeriodSeconds=1)
            script = "trap '' TERM; while :; do sleep 0.05; done"
            container = main(script, livenessProbe=probe)
            await here.pod("", containers=[container], terminationGracePeriodSeconds=3000)
            await here.until_phase("Failed")
            assert (await here.state())["state"]["terminated"]["exitCode"] == 137

    tell(play)


def test_before_a_container_has_started_nothing_else_is_asked():
    """Its liveness probe would have killed it."""

    async def play(here: World) -> None:
        async with here.agent():
            begun = here.folder / "begun"
            container = main(
                "sleep 300",
                startupProbe=checks(begun, failureThreshold=1000),
                livenessProbe=checks(begun, failureThreshold=1),
            )
            await here.pod("", containers=[container])
            await here.until_phase("Running")
            await until(lambda: _said(here, "Startup probe failed"))
            state = await here.state()
            assert (state["started"], state["ready"], state["restartCount"]) == (False, False, 0)
            begun.touch()
            await until_ready(here, "True")
            assert (await here.state())["started"]

    async def _said(here: World, text: str) -> bool:
        return any(one["message"].startswith(text) for one in await events(here, "Unhealthy"))

    tell(play)


def test_a_container_that_never_starts_is_killed():
    async def play(here: World) -> None:
        async with here.agent():
            probe = checks(here.folder / "none", failureThreshold=2, terminationGracePeriodSeconds=1)
            await here.pod("", containers=[main("sleep 300", startupProbe=probe)])
            await here.until_phase("Failed")
            said = [one["message"] for one in await events(here, "Killing")]
            assert "Container main failed startup probe, will be restarted" in said

    tell(play)


def test_containers_wait_for_a_sidecar_to_start():
    async def play(here: World) -> None:
        async with here.agent():
            begun = here.folder / "begun"
            side = {**main("sleep 300", startupProbe=checks(begun, failureThreshold=1000)), "name": "side"}
            side["restartPolicy"] = "Always"
            await here.pod("true", initContainers=[side], containers=[main("sleep 300")])

            async def runs() -> bool:
                return "running" in ((await here.state(container="side")).get("state") or {})

            await until(runs)
            assert (await here.state())["state"]["waiting"]["reason"] == "PodInitializing"
            status = await here.status()
            assert status["phase"] == "Pending"
            initialized = next(one for one in status["conditions"] if one["type"] == "Initialized")
            assert initialized["message"] == "containers with incomplete status: [side]"
            begun.touch()
            await here.until_phase("Running")
            await until_ready(here, "True")

    tell(play)


def test_http_and_tcp_probes_reach_the_container():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def play(here: World) -> None:
        async with here.agent():
            site = here.folder / "site"
            site.mkdir()
            (site / "index.html").write_text("hello")
            container = main(
                f"exec python3 -m http.server {port} --bind 127.0.0.1 --directory {site}",
                ports=[{"name": "web", "containerPort": port}],
                readinessProbe={"httpGet": {"port": "web"}, "periodSeconds": 1, "timeoutSeconds": 20},
                startupProbe={"tcpSocket": {"port": port}, "periodSeconds": 1, "failureThreshold": 60},
            )
            await here.pod("", containers=[container])
            await until_ready(here, "True")
            (site / "index.html").unlink()
            site.rmdir()
            await until_ready(here, "False")

    tell(play)


def test_who_was_ready_stays_so_when_the_agent_begins_anew():
    async def play(here: World) -> None:
        fine = here.folder / "fine"
        fine.touch()
        async with here.agent():
            probe = checks(fine, periodSeconds=1)
            await here.pod("", containers=[main("sleep 300", readinessProbe=probe)])
            await until_ready(here, "True")
        before = (await here.status())["conditions"]
        async with here.agent():
            seen: set[str] = set()

            async def looked() -> bool:
                seen.add(await ready(here))
                return len(seen) > 1 or bool(await events(here, "Unhealthy"))

            fine.unlink()
            await until(looked)
            assert [one for one in (await here.status())["conditions"] if one["type"] == "Ready"] == [
                one for one in before if one["type"] == "Ready"
            ], "one failure of three is none"

    tell(play)
