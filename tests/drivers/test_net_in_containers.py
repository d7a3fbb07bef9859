"""An interface in a container that is a process of the machine: by the hook of a CDI spec, and back."""

import asyncio
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import rights
from allot.driver import Edits
from allot.drivers import net
from allot.drivers.net import moving
from allot.nodeagent import CannotStart, ContainerSpec, ProcessRuntime, SandboxSpec
from nodeagent.plugins import until

PAIR = f"tq{os.getpid() % 100000}"
pytestmark = rights.needs_root("only root may move network interfaces")


def container(hook, name, script, *, host_network=False):
    pod = SandboxSpec(f"uid-{host_network}", "pod", "default", host_network=host_network)
    return ContainerSpec(pod, name, 0, ("sh", "-c", script), edits=Edits(hooks=(hook,)))


async def printed(runtime, spec):
    attempt = await runtime.start(spec)

    async def is_over():
        (found,) = [one for one in await runtime.attempts() if one.name == spec.name]
        return found.finished_at is not None

    await until(is_over)
    return await asyncio.to_thread(Path(attempt.log).read_text)


def test_containers_of_a_pod_find_the_interface_in_its_network_until_it_is_given_back():
    async def story():
        with TemporaryDirectory(prefix="net") as folder:
            here = net.MachineInterfaces(Path(folder, "given"))
            hook = here.hook(PAIR, "claim", True, ["10.9.7.7/24"], ["10.9.7.1/24"])
            async with ProcessRuntime(Path(folder, "c")).attached() as runtime:
                sees = f"ip -br addr show dev {PAIR}"
                for name in ("first", "second"):
                    assert "10.9.7.7/24" in await printed(runtime, container(hook, name, sees))
                here.back(PAIR, "claim", True)
                assert not moving.has(moving.host_end(PAIR)) and not here.is_given(PAIR)
                await runtime.remove("uid-False")

    asyncio.run(asyncio.wait_for(story(), 90))


def test_a_container_on_the_machines_network_does_not_start_and_says_why():
    async def story():
        with TemporaryDirectory(prefix="net") as folder:
            hook = net.MachineInterfaces(Path(folder, "given")).hook(PAIR, "claim", True, [])
            async with ProcessRuntime(Path(folder, "c")).attached() as runtime:
                with pytest.raises(CannotStart, match="has no network namespace of its own to move it to"):
                    await runtime.start(container(hook, "main", "true", host_network=True))

    asyncio.run(asyncio.wait_for(story(), 90))
