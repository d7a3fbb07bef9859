"""Pods that a CNI plugin gives addresses of their own: shown, told to containers, and asked by probes.

The plugin of these stories wires each pod to the machine, so that it is reached as any other would reach it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from allot.nodeagent.runtimes import CannotStart
from containerd import CONTAINERD_2, IMAGE, Containerd, containerd

from .plugins import until
from .runtimes.cri_stories import runtime_of, script
from .world import NS, World, tell

HOST, LIE = "127.0.0.1", "10.1.1.1"
POD_IP = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
POD_IPS = {"name": "POD_IPS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIPs"}}}
HOST_IP = {"name": "HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}
SAYS = "echo $POD_IP $POD_IPS $HOST_IP; exec sleep 300"


@pytest.fixture(scope="module", params=["", CONTAINERD_2], ids=["containerd 1.7", "containerd 2"])
def daemon(request: pytest.FixtureRequest) -> Iterator[Containerd]:
    with containerd(is_wired=True, folder=request.param) as running:
        yield running


def story(daemon: Containerd, play: Callable[[World], Awaitable[None]]) -> None:
    async def whole(here: World) -> None:
        here.runtime, here.image, here.cdi = f"cri://{daemon.socket}", IMAGE, daemon.cdi
        await play(here)

    tell(whole, within_s=240)


def main(text: str, **more: Any) -> dict[str, Any]:
    env = [POD_IP, POD_IPS, HOST_IP]
    return {"name": "main", "image": IMAGE, "command": ["sh", "-c", text], "env": env, **more}


async def shown(here: World, name: str = "p") -> str:
    """The one address of a pod."""
    status = await here.status(name)
    address = str(status.get("podIP", ""))
    assert status.get("podIPs", []) == ([{"ip": address}] if address else []), status
    return address


async def lie(here: World, name: str) -> None:
    """Somebody says another address, so that it is seen who says it again."""
    patch = {"status": {"podIP": LIE, "podIPs": [{"ip": LIE}]}}
    await here.pods.patch(name, patch, NS, subresource="status")


async def until_shown(here: World, address: str) -> None:
    async def is_so() -> bool:
        return await shown(here) == address

    await until(is_so)


async def is_ready(here: World, name: str) -> bool:
    return bool((await here.state(name)).get("ready"))


async def end(here: World, *names: str) -> None:
    for name in names:
        await here.pods.delete(name, NS, grace_period_s=1)
        await here.until_gone(name)


def test_a_pod_shows_its_own_address_and_one_with_the_machines_network_the_nodes(daemon: Containerd):
    """And what a container is told of it is what others read."""

    async def play(here: World) -> None:
        async with here.agent():
            await here.pod("", containers=[main(SAYS)])
            await here.pod("", "guest", containers=[main(SAYS)], hostNetwork=True)
            for name in ("p", "guest"):
                await here.until_phase("Running", name)
            address = await shown(here)
            assert address.startswith("10.") and await shown(here, "guest") == HOST
            assert [(await here.status(name))["hostIP"] for name in ("p", "guest")] == [HOST, HOST]
            assert await here.first_words() == f"{address} {address} {HOST}\n"
            assert await here.first_words("guest") == f"{HOST} {HOST} {HOST}\n"
            await end(here, "p", "guest")
            await until(lambda: daemon.left() == [])

    story(daemon, play)


def test_the_address_is_still_the_pods_for_an_agent_that_begins_anew_and_after_its_end(daemon: Containerd):
    """N5: also of one whose containers have ended, whose sandbox is there or is not."""

    async def play(here: World) -> None:
        async with here.agent():
            await here.pod("", containers=[main(SAYS)])
            await here.pod("", "short", containers=[main("true")])
            await here.until_phase("Running")
            await here.until_phase("Succeeded", "short")
            before = [await shown(here, name) for name in ("p", "short")]
            assert len(set(before)) == 2 and HOST not in before
        for name in ("p", "short"):
            await lie(here, name)
        async with here.agent():
            await until_shown(here, before[0])
            assert await shown(here, "short") in (before[1], LIE), "it is never the node's"
            await end(here, "p", "short")

    story(daemon, play)


def test_after_a_reboot_a_pod_has_another_address_and_says_so(daemon: Containerd):
    """Its sandbox is gone, and the next one is another's: in the status, and for the container."""

    async def play(here: World) -> None:
        async with here.agent():
            await here.pod("", containers=[main(SAYS)], restartPolicy="Always")
            await here.until_phase("Running")
            before = await shown(here)
            assert await here.first_words() == f"{before} {before} {HOST}\n"
            await asyncio.to_thread(daemon.crash)
            await asyncio.to_thread(daemon.start)

            async def has_another() -> bool:
                return (await here.state()).get("restartCount") == 1 and await shown(here) != before

            await until(has_another)
            after = await shown(here)
            assert after not in ("", before, HOST)
            assert await here.first_words() == f"{after} {after} {HOST}\n"
        await lie(here, "p")
        async with here.agent():
            await until_shown(here, after)
            await end(here, "p")
            await until(lambda: daemon.left() == [])

    story(daemon, play)


def test_probes_ask_where_others_would(daemon: Containerd):
    """Who listens at the pod's address alone is ready; who listens at loopback alone is not. So do hooks."""

    async def play(here: World) -> None:
        often = {"periodSeconds": 1, "timeoutSeconds": 5}
        by_http = {"httpGet": {"port": 8080, "path": "/tmp/page"}, **often}
        by_tcp = {"tcpSocket": {"port": 8080}, **often}
        text = "echo fine > /tmp/page; exec httpd -f -p {}:8080 -h /"
        outside, inside = text.format("$POD_IP"), text.format("127.0.0.1")
        async with here.agent():
            hook = {"preStop": {"httpGet": {"port": 8080, "path": "/tmp/page"}}}
            pods = {
                "http": main(outside, readinessProbe=by_http, lifecycle=hook),
                "tcp": main(outside, readinessProbe=by_tcp),
                "http-inside": main(inside, readinessProbe=by_http),
                "tcp-inside": main(inside, readinessProbe=by_tcp),
            }
            for name, container in pods.items():
                await here.pod("", name, containers=[container])
            for name in ("http", "tcp"):
                await until(lambda name=name: is_ready(here, name))
            for name in ("http-inside", "tcp-inside"):
                await here.until_phase("Running", name)
            events = here.client.resource("", "v1", "events")

            async def told(reason: str) -> set[str]:
                said = [one.fields for one in (await events.list(NS)).objects]
                return {one["involvedObject"]["name"] for one in said if one["reason"] == reason}

            async def are_told() -> bool:
                return await told("Unhealthy") >= {"http-inside", "tcp-inside"}

            await until(are_told)
            assert not await is_ready(here, "http-inside") and not await is_ready(here, "tcp-inside")
            await end(here, *pods)
            assert "http" not in await told("FailedPreStopHook")

    story(daemon, play)


def test_a_port_of_a_pod_in_its_own_network_can_be_forwarded_to(daemon: Containerd):
    """Into the pod: whoever listens at its loopback alone is reached too, and the machine's ports are not."""

    async def play() -> None:
        uid = str(uuid4())
        async with runtime_of(daemon).attached() as runtime:
            try:
                text = "echo fine > /tmp/page; exec httpd -f -p 127.0.0.1:8080 -h /tmp"
                spec = script(text, uid, sandbox={"host_network": False})
                (address,) = await runtime.address(spec.pod) or ()
                await runtime.start(spec)
                assert await runtime.addresses() == {uid: (address,)}

                async def is_served() -> bool:
                    try:
                        reader, writer = await runtime.connect(uid, 8080)
                        writer.write(b"GET /page HTTP/1.0\r\n\r\n")
                        answer = await reader.read()
                        writer.close()
                    except OSError:
                        return False
                    return answer.endswith(b"fine\n")

                await until(is_served)
            finally:
                await runtime.remove(uid)
            assert await runtime.addresses() == {}

    asyncio.run(asyncio.wait_for(play(), 120))


def test_a_network_that_cannot_be_made_is_a_reason_to_wait(daemon: Containerd):
    """The pod says which, and is tried again: nothing of it is left half made."""

    async def play() -> None:
        plugin = daemon.home / "cni-bin" / "own"
        works = plugin.read_text()
        uid = str(uuid4())
        async with runtime_of(daemon).attached() as runtime:
            spec = script("true", uid, sandbox={"host_network": False})
            try:
                plugin.write_text("#!/bin/sh\nexit 1\n")
                with pytest.raises(CannotStart) as wrong:
                    await runtime.address(spec.pod)
                assert wrong.value.reason == "CreatePodSandboxError"
                plugin.write_text(works)
                assert await runtime.address(spec.pod)
            finally:
                plugin.write_text(works)
                await runtime.remove(uid)

    asyncio.run(asyncio.wait_for(play(), 120))
