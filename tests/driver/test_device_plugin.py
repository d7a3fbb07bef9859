"""Device plugins of the kit: under our agent, and under a kubelet that the test plays."""

import asyncio
import logging
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from allot.driver import Allotted, Choice, Counted, DevicePlugin, Edits, Mount, Node, plugged
from allot.driver.claims import DeviceNode
from allot.wire import CallFailed, Channel, Code, UnixSockets, cdi
from allot.wire import deviceplugin as wire

GPU = "example.com/gpu"
NODE = Node("worker")
SOON_S = 30


@pytest.fixture
def root() -> Iterator[Path]:
    folder = tempfile.mkdtemp(prefix="dp")  # short: sockets lie below it
    yield Path(folder)
    shutil.rmtree(folder, ignore_errors=True)


def two(node: Node) -> list[Counted]:
    return [Counted("a", numa=(0, 1)), Counted("b", is_healthy=False)]


def told(ids: tuple[str, ...]) -> Edits:
    return Edits(env=(f"GPUS={','.join(ids)}",))


class Kubelet:
    """What a plugin needs of one."""

    def __init__(self, root: Path, refuses: str = "") -> None:
        self.directory = root / "device-plugins"
        self.refuses = refuses
        self.heard: list[wire.RegisterRequest] = []
        self.came = asyncio.Event()

    async def __aenter__(self) -> "Kubelet":
        self.directory.mkdir(exist_ok=True, parents=True)
        for left in self.directory.glob("*.sock"):
            left.unlink()
        handlers = [wire.REGISTER.by(self._register)]
        self.server = await UnixSockets().serve(str(self.directory / "kubelet.sock"), handlers)
        return self

    async def __aexit__(self, *why: object) -> None:
        await self.server.close()

    async def _register(self, asked: wire.RegisterRequest) -> wire.Empty:
        self.heard.append(asked)
        self.came.set()
        if self.refuses:
            raise CallFailed(Code.INVALID_ARGUMENT, self.refuses)
        return wire.Empty()

    async def plugin(self) -> Channel:
        await asyncio.wait_for(self.came.wait(), SOON_S)
        return UnixSockets().dial(str(self.directory / self.heard[-1].endpoint))


async def first(channel: Channel) -> tuple[wire.Device, ...]:
    async for said in channel.stream(wire.LIST_AND_WATCH, wire.Empty()):
        return said.devices
    raise AssertionError("it says nothing")


def played(root: Path, plugin: DevicePlugin, play) -> None:
    async def whole() -> None:
        async with Kubelet(root) as kubelet, plugged(plugin, NODE, root):
            channel = await kubelet.plugin()
            await play(channel)
            await channel.close()

    asyncio.run(asyncio.wait_for(whole(), 2 * SOON_S))


def test_what_the_author_declares_is_listed(root):
    async def play(channel: Channel) -> None:
        near = wire.TopologyInfo((wire.NumaNode(0), wire.NumaNode(1)))
        assert await first(channel) == (
            wire.Device("a", wire.HEALTHY, near),
            wire.Device("b", wire.UNHEALTHY),
        )

    played(root, DevicePlugin(GPU, two, told), play)


def test_each_change_is_told_to_whoever_listens(root):
    """PLUG2."""
    change = asyncio.Event()

    async def devices(node: Node) -> AsyncIterator[Sequence[Counted]]:
        yield [Counted("a")]
        await change.wait()
        yield [Counted("a", is_healthy=False)]

    async def play(channel: Channel) -> None:
        heard = channel.stream(wire.LIST_AND_WATCH, wire.Empty())
        assert (await anext(heard)).devices == (wire.Device("a", wire.HEALTHY),)
        change.set()
        assert (await anext(heard)).devices == (wire.Device("a", wire.UNHEALTHY),)
        assert await first(channel) == (wire.Device("a", wire.UNHEALTHY),)  # who comes later

    played(root, DevicePlugin(GPU, devices, told), play)


def test_the_answer_says_everything_that_a_plugin_can_say(root):
    def allocate(ids: tuple[str, ...]) -> Allotted:
        edits = Edits(
            env=("A=1",),
            device_nodes=(DeviceNode("/dev/a"),),
            mounts=(Mount("/host", "/in", ("ro", "bind")),),
        )
        return Allotted(edits, ("example.com/gpu=a",), {"note": "1"})

    async def play(channel: Channel) -> None:
        request = wire.AllocateRequest((wire.ContainerAllocateRequest(("a",)),))
        answer = await channel.call(wire.ALLOCATE, request, timeout_s=SOON_S)
        assert answer.container_responses == (
            wire.ContainerAllocateResponse(
                {"A": "1"},
                (wire.Mount("/in", "/host", True),),
                (wire.DeviceSpec("/dev/a", "/dev/a", "rwm"),),
                {"note": "1"},
                (wire.CdiDevice("example.com/gpu=a"),),
            ),
        )

    played(root, DevicePlugin(GPU, two, allocate), play)


def test_what_a_plugin_has_no_word_for_is_refused_and_not_lost(root):
    def allocate(ids: tuple[str, ...]) -> Edits:
        return Edits(hooks=(cdi.Hook("createRuntime", "/bin/true"),))

    async def play(channel: Channel) -> None:
        request = wire.AllocateRequest((wire.ContainerAllocateRequest(("a",)),))
        with pytest.raises(CallFailed, match="cannot answer with hooks: write a CDI spec"):
            await channel.call(wire.ALLOCATE, request, timeout_s=SOON_S)

    played(root, DevicePlugin(GPU, two, allocate), play)


def test_an_exception_of_the_author_is_the_error_of_that_call_alone(root):
    """PLUG3."""

    def allocate(ids: tuple[str, ...]) -> Edits:
        if ids == ("b",):
            raise RuntimeError("b is on fire")
        return told(ids)

    async def play(channel: Channel) -> None:
        async def ask(id: str) -> wire.AllocateResponse:
            request = wire.AllocateRequest((wire.ContainerAllocateRequest((id,)),))
            return await channel.call(wire.ALLOCATE, request, timeout_s=SOON_S)

        with pytest.raises(CallFailed, match="b is on fire"):
            await ask("b")
        assert (await ask("a")).container_responses[0].envs == {"GPUS": "a"}

    played(root, DevicePlugin(GPU, two, allocate), play)


def test_what_the_author_does_not_write_the_kubelet_does_not_ask_for(root):
    started: list[tuple[str, ...]] = []

    def prefer(choice: Choice) -> list[str]:
        return [*choice.included, *reversed(choice.available)][: choice.count]

    async def play(channel: Channel) -> None:
        options = await channel.call(wire.GET_OPTIONS, wire.Empty(), timeout_s=SOON_S)
        assert options == wire.DevicePluginOptions(True, True)
        one = wire.ContainerPreferredAllocationRequest(("a", "b", "c"), ("a",), 2)
        answer = await channel.call(
            wire.GET_PREFERRED, wire.PreferredAllocationRequest((one,)), timeout_s=SOON_S
        )
        assert answer.container_responses[0].device_ids == ("a", "c")
        await channel.call(wire.PRE_START, wire.PreStartContainerRequest(("a",)), timeout_s=SOON_S)
        assert started == [("a",)]

    async def play_without(channel: Channel) -> None:
        options = await channel.call(wire.GET_OPTIONS, wire.Empty(), timeout_s=SOON_S)
        assert options == wire.DevicePluginOptions()

    played(root, DevicePlugin(GPU, two, told, prefer, started.append), play)
    played(root, DevicePlugin(GPU, two, told), play_without)


def test_a_plugin_registers_with_each_kubelet_and_makes_its_socket_anew(root):
    """PLUG1: a kubelet that begins removes every socket."""

    async def whole() -> None:
        async with plugged(DevicePlugin(GPU, two, told), NODE, root) as work:
            for _ in range(2):
                async with Kubelet(root) as kubelet:
                    channel = await kubelet.plugin()
                    assert len(await first(channel)) == 2
                    await channel.close()
                    await asyncio.sleep(1)
                    assert len(kubelet.heard) == 1
                    assert kubelet.heard[0].resource_name == GPU
                    assert work.registered.is_set()

    asyncio.run(asyncio.wait_for(whole(), 4 * SOON_S))


def test_a_plugin_that_was_killed_does_not_take_the_socket_that_it_left_for_its_own(root):
    async def whole() -> None:
        async with Kubelet(root) as kubelet:
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(str(kubelet.directory / f"{GPU.replace('/', '_')}.sock"))
            async with plugged(DevicePlugin(GPU, two, told), NODE, root):
                channel = await kubelet.plugin()
                assert len(await first(channel)) == 2
                await channel.close()

    asyncio.run(asyncio.wait_for(whole(), 2 * SOON_S))


def test_a_kubelet_that_refuses_is_asked_again(root, caplog, monkeypatch):
    monkeypatch.setattr("allot.driver.device_plugin.AGAIN_S", 0.2)

    async def whole() -> None:
        async with Kubelet(root) as kubelet:
            kubelet.refuses = "not today"
            async with plugged(DevicePlugin(GPU, two, told), NODE, root) as work:
                await kubelet.plugin()
                assert not work.registered.is_set()
                kubelet.refuses = ""
                await asyncio.wait_for(work.registered.wait(), SOON_S)

    with caplog.at_level(logging.WARNING):
        asyncio.run(asyncio.wait_for(whole(), 2 * SOON_S))
    assert "not today" in caplog.text


def test_the_name_of_a_socket_fits_into_an_address(root):
    long = root / ("x" * 60)

    async def whole() -> None:
        name = "example.com/" + "g" * 60
        async with Kubelet(long) as kubelet, plugged(DevicePlugin(name, two, told), NODE, long):
            channel = await kubelet.plugin()
            assert len(await first(channel)) == 2
            await channel.close()

    asyncio.run(asyncio.wait_for(whole(), 2 * SOON_S))


@pytest.mark.parametrize(
    ("words", "resource", "count"),
    [
        (["-m", "allot.cli", "driver", "sim", "--fleet", "plugin"], GPU, 8),
        (["examples/device_plugin.py"], "mine.example/licence", 4),
    ],
    ids=["sim", "example"],
)
def test_a_plugin_is_a_program_that_needs_no_credential(root, words, resource, count):
    async def whole() -> None:
        async with Kubelet(root) as kubelet:
            program = await asyncio.create_subprocess_exec(
                sys.executable,
                *(*words, "--node", "plugin-0", "--root", str(root)),
                cwd=Path(__file__).parents[2],
                env={"PATH": "/usr/bin:/bin", "HOME": str(root), "KUBECONFIG": str(root / "none")},
                stdout=asyncio.subprocess.PIPE,
            )
            assert program.stdout is not None
            try:
                assert await program.stdout.readline() == b"ready\n"
                channel = await kubelet.plugin()
                assert kubelet.heard[0].resource_name == resource
                assert len(await first(channel)) == count
                await channel.close()
            finally:
                program.terminate()
                assert await program.wait() == 0

    asyncio.run(asyncio.wait_for(whole(), 2 * SOON_S))


@pytest.mark.parametrize("name", ["cpu", "example.com", "requests.x/y", "kubernetes.io/gpu", "a/b/c"])
def test_a_name_that_no_pod_could_ask_for_is_refused_at_once(name):
    with pytest.raises(ValueError, match="cannot be the name of a resource"):
        DevicePlugin(name, two, told)
