"""Drivers are told in an order that a crash cannot spoil, over real sockets and with a real checkpoint."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from allot.api import Object
from allot.base import MachineFiles, Metrics, SystemClock
from allot.node import NotReady, Unfinished
from allot.nodeagent import preparing
from allot.nodeagent.checkpoint import NAME, BadCheckpoint, decode
from allot.nodeagent.counting import Counts
from allot.nodeagent.keeping import Keeper
from allot.nodeagent.preparing import Preparing
from allot.nodeagent.registry_loop import Registry
from allot.wire import UnixSockets
from node.objects import claim

from .plugins import DRIVER, V1, V1BETA1, Plugin, until


@dataclass
class Node:
    root: Path
    registry: Registry
    plugins: list[Plugin] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.metrics = Metrics()
        counts = Counts(self.metrics, SystemClock())
        self.agent = Preparing(Keeper(self.root, MachineFiles()), self.registry, counts)

    async def plugin(self, driver: str = DRIVER, **more: object) -> Plugin:
        plugin = Plugin(self.root, driver, name=driver.split(".")[0], **more)
        self.plugins.append(plugin)
        await plugin.start()
        await until(lambda: self.registry.drivers.is_there(driver))
        return plugin

    def on_disk(self) -> dict[str, list[str]]:
        """Claims, and the pods that use them."""
        path = self.root / NAME
        entries = decode(path.read_bytes()) if path.exists() else ()
        return {entry.claim.name: sorted(entry.pods) for entry in entries}


def given(name: str, *drivers: str, **more: object) -> Object:
    device = {"request": "r", "pool": "pool", "device": "d", **more}
    results = [{"driver": one, **device} for one in drivers or (DRIVER,)]
    return claim(name, status={"allocation": {"devices": {"results": results}}})


@asynccontextmanager
async def running() -> AsyncIterator[Node]:
    with tempfile.TemporaryDirectory(prefix="prep") as folder:
        registry = Registry(UnixSockets(), Path(folder) / "plugins_registry", lambda driver: None)
        task = asyncio.create_task(registry.run())
        node = Node(Path(folder), registry)
        try:
            yield node
        finally:
            for plugin in node.plugins:
                await plugin.stop()
            task.cancel()
            await asyncio.wait((task,))


def tell(play: Callable[[Node], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with running() as node:
            await play(node)

    asyncio.run(asyncio.wait_for(whole(), 90))


def test_each_driver_is_told_of_all_its_claims_in_one_call():
    """two plugins: prepare and unprepare"""

    async def play(node: Node) -> None:
        gpu, nic = await node.plugin(), await node.plugin("nic.example.com")
        claims = [given("a", DRIVER, "nic.example.com"), given("b")]
        devices = await node.agent.prepare("p", claims)
        assert devices == {
            "uid-a": ("example.com/gpu=a", "example.com/gpu=a"),
            "uid-b": ("example.com/gpu=b",),
        }
        assert (gpu.told, nic.told) == (["prepare a,b"], ["prepare a"])
        (entry, _) = node.agent.told.of("p")
        assert entry.parts[DRIVER].devices[0].requests == ("r",), "sub-requests belong to their request"
        await node.agent.unprepare("p")
        assert (gpu.told[1:], nic.told[1:]) == (["unprepare a,b"], ["unprepare a"])
        assert node.on_disk() == {}

    tell(play)


def test_a_claim_is_on_disk_before_any_driver_hears_of_it_and_until_each_has_let_go():
    async def play(node: Node) -> None:
        seen = []
        await node.plugin(before=lambda what: seen.append((what, node.on_disk())))
        await node.agent.prepare("p", [given("a")])
        await node.agent.unprepare("p")
        assert seen == [("prepare", {"a": ["p"]}), ("unprepare", {"a": ["p"]})]

    tell(play)


def test_nobody_is_told_anything_while_one_driver_is_missing():
    async def play(node: Node) -> None:
        gpu = await node.plugin()
        with pytest.raises(NotReady, match=r"DRA driver nic.example.com is not registered") as missing:
            await node.agent.prepare("p", [given("a", DRIVER, "nic.example.com")])
        assert not isinstance(missing.value, Unfinished)
        assert gpu.told == []
        assert node.on_disk() == {}

    tell(play)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"fails": "no such device"}, "claim a: DRA driver gpu.example.com: no such device"),
        ({"forgets": True}, "claim a: DRA driver gpu.example.com did not answer for it"),
        ({"delay_s": 60.0}, "DEADLINE_EXCEEDED"),
    ],
)
def test_a_driver_that_fails_is_told_again_until_it_does_not(wrong, says, monkeypatch):
    """run if prepare fails then succeeds; if unprepare fails then succeeds; pending if it times out"""
    monkeypatch.setattr(preparing, "CALL_S", 1.0)

    async def play(node: Node) -> None:
        gpu = await node.plugin(**wrong)
        with pytest.raises(Unfinished, match=says):
            await node.agent.prepare("p", [given("a")])
        assert node.on_disk() == {"a": ["p"]}
        gpu.fails, gpu.forgets, gpu.delay_s = "", False, 0.0
        await node.agent.prepare("p", [given("a")])
        for name, value in wrong.items():
            setattr(gpu, name, value)
        with pytest.raises(NotReady, match=says):
            await node.agent.unprepare("p")
        assert node.on_disk() == {"a": ["p"]}
        gpu.fails, gpu.forgets, gpu.delay_s = "", False, 0.0
        await node.agent.unprepare("p")
        assert node.on_disk() == {}

    tell(play)


def test_of_two_drivers_only_the_one_that_failed_is_told_again():
    """two plugins, one of them failing"""

    async def play(node: Node) -> None:
        gpu, nic = await node.plugin(), await node.plugin("nic.example.com", fails="not yet")
        claims = [given("a", DRIVER, "nic.example.com")]
        with pytest.raises(Unfinished, match="not yet"):
            await node.agent.prepare("p", claims)
        nic.fails = ""
        await node.agent.prepare("p", claims)
        assert (gpu.told, nic.told) == (["prepare a"], ["prepare a"] * 2)
        nic.fails = "not yet"
        with pytest.raises(NotReady):
            await node.agent.unprepare("p")
        nic.fails = ""
        await node.agent.unprepare("p")
        assert (gpu.told[1:], nic.told[2:]) == (["unprepare a"], ["unprepare a"] * 2)

    tell(play)


def test_after_a_restart_drivers_are_told_again_and_keep_what_they_have():
    """retry prepare and unprepare after Kubelet restart"""

    async def play(node: Node) -> None:
        gpu = await node.plugin()
        await node.agent.prepare("p", [given("a")])
        node.restart()
        assert node.agent.devices("p") == {"uid-a": ("example.com/gpu=a",)}
        await node.agent.prepare_again("p")
        assert gpu.told == ["prepare a"] * 2
        node.restart()
        await node.agent.unprepare("p")
        assert gpu.told[2:] == ["unprepare a"]
        assert gpu.held == set()

    tell(play)


def test_a_claim_that_two_pods_share_is_unprepared_with_the_last_of_them():
    async def play(node: Node) -> None:
        gpu = await node.plugin()
        for pod in ("p", "q"):
            await node.agent.prepare(pod, [given("a")])
        assert node.on_disk() == {"a": ["p", "q"]}
        node.restart()
        await node.agent.unprepare("p")
        assert node.on_disk() == {"a": ["q"]}
        assert gpu.told == ["prepare a"], "the other pod runs on, whoever looks after it"
        await node.agent.unprepare("q")
        assert gpu.told == ["prepare a", "unprepare a"]

    tell(play)


@pytest.mark.parametrize("version", [V1, V1BETA1])
def test_the_share_of_a_device_is_known_and_stays_known(version):
    """Device ShareID results; the old version has none"""

    async def play(node: Node) -> None:
        await node.plugin(versions=(version,), share="5f0d")
        await node.agent.prepare("p", [given("a")])
        expected = "5f0d" if version == V1 else ""
        for _ in range(2):
            (entry,) = node.agent.told.of("p")
            assert entry.parts[DRIVER].devices[0].share_id == expected
            node.restart()

    tell(play)


@pytest.mark.parametrize(
    ("skipped", "told"),
    [
        (["*"], []),
        (["NodePrepareResources", "NodeUnprepareResources"], []),
        (["NodePrepareResources"], ["unprepare a"]),
        (["NodeUnprepareResources"], ["prepare a"]),
    ],
)
def test_operations_that_a_driver_does_without_are_left_out_also_after_a_restart(skipped, told):
    """Optional node operations: bypass prepare and unprepare with plugin; bypass unprepare only"""

    async def play(node: Node) -> None:
        gpu = await node.plugin()
        await node.agent.prepare("p", [given("a", skipNodeOperations=skipped)])
        assert node.on_disk() == {"a": ["p"]}
        prepared = node.metrics.text()
        node.restart()
        await node.agent.unprepare("p")
        assert gpu.told == told
        assert node.on_disk() == {}
        for what, text in (("prepare", prepared), ("unprepare", node.metrics.text())):
            line = f'dra_node_{what}_skips_total{{driver_name="{DRIVER}"}} 1'
            assert (line in text) == (f"{what} a" not in told), text

    tell(play)


@pytest.mark.parametrize("skipped", [["*"], ["NodeUnprepareResources"], []])
def test_without_its_driver_a_claim_is_ready_only_if_the_driver_does_without_everything(skipped):
    """Optional node operations: bypass prepare when All; fails when not set, and when unprepare only"""

    async def play(node: Node) -> None:
        claims = [given("a", skipNodeOperations=skipped)]
        if skipped == ["*"]:
            assert await node.agent.prepare("p", claims) == {"uid-a": ()}
            await node.agent.unprepare("p")
            return
        with pytest.raises(NotReady, match="is not registered on this node"):
            await node.agent.prepare("p", claims)

    tell(play)


def test_what_a_kubelet_counts_is_counted_under_its_names(monkeypatch):
    """two plugins: metrics"""
    monkeypatch.setattr(preparing, "CALL_S", 1.0)

    async def play(node: Node) -> None:
        gpu, _ = await node.plugin(), await node.plugin("nic.example.com")
        gpu.fails = "not yet"
        claims = [given("a", DRIVER, "nic.example.com"), given("b")]
        with pytest.raises(Unfinished):
            await node.agent.prepare("p", claims)
        gpu.fails, gpu.delay_s = "", 30.0
        with pytest.raises(Unfinished):
            await node.agent.prepare("p", claims)
        gpu.delay_s = 0.0
        await node.agent.prepare("p", claims)
        text = node.metrics.text()
        service = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
        for line in (
            'dra_operations_duration_seconds_count{operation_name="PrepareResources",is_error="true"} 2',
            'dra_operations_duration_seconds_count{operation_name="PrepareResources",is_error="false"} 1',
            _calls(DRIVER, f"{service}/NodePrepareResources", "OK", 2),
            _calls(DRIVER, f"{service}/NodePrepareResources", "DeadlineExceeded", 1),
            _calls("nic.example.com", f"{service}/NodePrepareResources", "OK", 1),
            f'dra_resource_claims_in_use{{driver_name="{DRIVER}"}} 2',
            'dra_resource_claims_in_use{driver_name="nic.example.com"} 1',
            'dra_resource_claims_in_use{driver_name="<any>"} 2',
            'is_error="false",le="0.1"} 1',
            'is_error="false",le="40"} 1',
        ):
            assert line in text, (line, text)
        await node.agent.unprepare("p")
        text = node.metrics.text()
        assert 'operation_name="UnprepareResources",is_error="false"} 1' in text
        assert 'dra_resource_claims_in_use{driver_name="<any>"} 0' in text

    tell(play)


def _calls(driver: str, method: str, code: str, count: int) -> str:
    labels = f'driver_name="{driver}",method_name="{method}",grpc_status_code="{code}"'
    return f"dra_grpc_operations_duration_seconds_count{{{labels}}} {count}"


def test_a_pod_stays_while_a_driver_of_its_is_not_there_to_let_go():
    async def play(node: Node) -> None:
        gpu = await node.plugin()
        await node.agent.prepare("p", [given("a")])
        await gpu.stop()
        await until(lambda: not node.registry.drivers.names)
        with pytest.raises(NotReady, match="is not registered"):
            await node.agent.unprepare("p")
        assert node.on_disk() == {"a": ["p"]}
        await gpu.start()
        await until(lambda: node.registry.drivers.is_there(DRIVER))
        await node.agent.unprepare("p")
        assert gpu.held == set()

    tell(play)


def test_a_driver_of_the_old_version_is_spoken_to_in_it():
    async def play(node: Node) -> None:
        await node.plugin(versions=(V1BETA1,))
        assert await node.agent.prepare("p", [given("a")]) == {"uid-a": ("example.com/gpu=a",)}
        await node.agent.unprepare("p")

    tell(play)


def test_no_driver_is_told_what_cannot_be_written_down():
    async def play(node: Node) -> None:
        gpu = await node.plugin()
        (node.root / NAME).mkdir()
        with pytest.raises(Unfinished, match=r"cannot be written down: .*dra_manager_state"):
            await node.agent.prepare("p", [given("a")])
        assert gpu.told == []

    tell(play)


def test_an_agent_does_not_begin_with_a_checkpoint_that_it_cannot_read(tmp_path):
    (tmp_path / NAME).write_text("{}")
    with pytest.raises(BadCheckpoint, match="drain the node"):
        Keeper(tmp_path, MachineFiles())


def test_what_comes_at_one_moment_is_written_together(tmp_path):
    writes = []

    class Counted(MachineFiles):
        def write(self, path: Path, content: bytes) -> None:
            writes.append(content)
            super().write(path, content)

    async def play() -> None:
        keeper = Keeper(tmp_path, Counted())
        await asyncio.gather(*(keeper.keep() for _ in range(50)))
        assert len(writes) == 2, "the first, and one for all who came while it was written"

    asyncio.run(play())
