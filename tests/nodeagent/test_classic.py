"""The agent and the plugin of a classic driver, over real sockets (KEP-3063)."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from allot.api import Object, encode
from allot.node import NotReady, Unfinished
from allot.nodeagent.counting import spelled
from allot.wire import CallFailed, Code, Server, UnixSockets, classic, registration

from .plugins import DRIVER, Plugin, until
from .test_preparing import Node, given, tell

NS = "default"


@dataclass
class ClassicPlugin:
    """One that notes what it is asked, and answers as the story says."""

    root: Path
    driver: str = DRIVER
    names: tuple[str, ...] = ("example.com/gpu=a",)
    fails: CallFailed | None = None
    delay_s: float = 0.0
    asked: list[classic.NodePrepareResourceRequest] = field(default_factory=list)
    released: list[classic.NodeUnprepareResourceRequest] = field(default_factory=list)
    statuses: list[registration.RegistrationStatus] = field(default_factory=list)
    servers: list[Server] = field(default_factory=list)

    async def start(self) -> "ClassicPlugin":
        service = str(self.root / "plugins" / "classic" / "plugin.sock")
        calls = [classic.PREPARE.by(self._prepare), classic.UNPREPARE.by(self._unprepare)]
        self.servers.append(await UnixSockets().serve(service, calls))

        async def info(asked: registration.InfoRequest) -> registration.PluginInfo:
            return registration.PluginInfo("ResourcePlugin", self.driver, service, ("1.0.0",))

        async def told(status: registration.RegistrationStatus) -> registration.RegistrationStatusResponse:
            self.statuses.append(status)
            return registration.RegistrationStatusResponse()

        path = str(self.root / "plugins_registry" / "classic-reg.sock")
        handlers = [registration.GET_INFO.by(info), registration.NOTIFY.by(told)]
        self.servers.append(await UnixSockets().serve(path, handlers))
        return self

    async def stop(self) -> None:
        for server in reversed(self.servers):
            await server.close()
        self.servers.clear()

    async def _prepare(
        self, asked: classic.NodePrepareResourceRequest
    ) -> classic.NodePrepareResourceResponse:
        self.asked.append(asked)
        await self._as_told()
        return classic.NodePrepareResourceResponse(self.names)

    async def _unprepare(
        self, asked: classic.NodeUnprepareResourceRequest
    ) -> classic.NodeUnprepareResourceResponse:
        self.released.append(asked)
        await self._as_told()
        return classic.NodeUnprepareResourceResponse()

    async def _as_told(self) -> None:
        await asyncio.sleep(self.delay_s)
        if self.fails is not None:
            raise self.fails


def allocated(name: str, handle: str = "h", driver: str = DRIVER) -> Object:
    """A classic claim as its driver has allocated it."""
    allocation = {"resourceHandle": handle} if handle else {}
    return Object(
        encode(
            {
                "metadata": {"name": name, "namespace": NS, "uid": f"uid-{name}"},
                "spec": {"resourceClassName": "gpu"},
                "status": {"driverName": driver, "allocation": allocation},
            }
        )
    )


async def with_plugin(node: Node, **more: object) -> ClassicPlugin:
    plugin = await ClassicPlugin(node.root, **more).start()
    node.plugins.append(plugin)  # type: ignore[arg-type]
    await until(lambda: bool(plugin.statuses))
    return plugin


def test_a_plugin_is_asked_with_the_claim_and_its_handle_and_its_names_come_back():
    """3063-GRPC-01, 3063-GRPC-02, 3063-GRPC-03, 3063-GRPC-04, 3063-GRPC-17, 3063-PARAM-10, 3063-ALLOC-01:
    the handle as it is, whatever is in it."""

    async def play(node: Node) -> None:
        plugin = await with_plugin(node, names=("example.com/gpu=a", "example.com/gpu=b"))
        assert plugin.statuses == [registration.RegistrationStatus(True)]
        handle = '{"é": "\\u0000"}\n'
        devices = await node.agent.prepare("p", [allocated("a", handle)])
        assert plugin.asked == [classic.NodePrepareResourceRequest(NS, "uid-a", "a", handle)]
        assert devices == {"uid-a": plugin.names}
        await node.agent.unprepare("p")
        assert plugin.released == [classic.NodeUnprepareResourceRequest(NS, "uid-a", "a", plugin.names)]
        assert node.on_disk() == {}

    tell(play)


def test_no_handle_and_no_devices_are_fine():
    """3063-GRPC-05, and X-22."""

    async def play(node: Node) -> None:
        plugin = await with_plugin(node, names=())
        assert await node.agent.prepare("p", [allocated("a", "")]) == {"uid-a": ()}
        assert plugin.asked[0].resource_handle == ""
        await node.agent.unprepare("p")
        assert plugin.released[0].cdi_devices == ()

    tell(play)


def test_a_name_that_is_not_fully_qualified_is_an_error():
    """3063-GRPC-06."""

    async def play(node: Node) -> None:
        await with_plugin(node, names=("gpu-a",))
        with pytest.raises(Unfinished, match=r"'gpu-a' is not a CDI device"):
            await node.agent.prepare("p", [allocated("a")])
        assert node.on_disk() == {"a": ["p"]}

    tell(play)


def test_a_claim_is_prepared_once_for_all_pods_of_the_node_and_unprepared_after_the_last():
    """3063-NODE-01, 3063-NODE-02, 3063-NODE-06, 3063-GRPC-15."""

    async def play(node: Node) -> None:
        plugin = await with_plugin(node)
        first = await node.agent.prepare("p", [allocated("a")])
        assert await node.agent.prepare("q", [allocated("a")]) == first
        assert len(plugin.asked) == 1
        await node.agent.unprepare("p")
        assert plugin.released == []
        await node.agent.unprepare("q")
        assert [one.claim_uid for one in plugin.released] == ["uid-a"]

    tell(play)


@pytest.mark.parametrize("code", [Code.NOT_FOUND, Code.INTERNAL, Code.UNAVAILABLE])
def test_a_call_that_fails_is_tried_again(code):
    """3063-GRPC-10, 3063-GRPC-12, 3063-GRPC-13, 3063-GRPC-18, 3063-GRPC-19, 3063-NODE-04."""

    async def play(node: Node) -> None:
        plugin = await with_plugin(node, fails=CallFailed(code, "no such resource"))
        with pytest.raises(Unfinished, match=rf"{code.name}: no such resource"):
            await node.agent.prepare("p", [allocated("a")])
        plugin.fails = None
        assert await node.agent.prepare("p", [allocated("a")]) == {"uid-a": plugin.names}
        plugin.fails = CallFailed(code, "not now")
        with pytest.raises(NotReady, match="not now"):
            await node.agent.unprepare("p")
        assert node.on_disk() == {"a": ["p"]}
        plugin.fails = None
        await node.agent.unprepare("p")
        assert (len(plugin.asked), len(plugin.released), node.on_disk()) == (2, 2, {})
        for method in ("NodePrepareResource", "NodeUnprepareResource"):
            for status in (spelled(code), "OK"):
                assert f'/{method}",grpc_status_code="{status}"}} 1' in node.metrics.text()

    tell(play)


def test_a_new_agent_asks_again_and_knows_what_to_undo():
    """3063-MON-08, 3063-GRPC-09, 3063-GRPC-15, 3063-GRPC-17: handle and names outlive the agent."""

    async def play(node: Node) -> None:
        plugin = await with_plugin(node)
        await node.agent.prepare("p", [allocated("a", "precious")])
        node.restart()
        await node.agent.prepare_again("p")
        assert [one.resource_handle for one in plugin.asked] == ["precious", "precious"]
        node.restart()
        await node.agent.unprepare("p")
        assert plugin.released == [classic.NodeUnprepareResourceRequest(NS, "uid-a", "a", plugin.names)]

    tell(play)


def test_while_no_plugin_has_the_name_the_pod_waits():
    """3063-GRPC-20: the name in the claim's status decides."""

    async def play(node: Node) -> None:
        await with_plugin(node)
        with pytest.raises(NotReady, match=r"nic.example.com is not registered") as missing:
            await node.agent.prepare("p", [allocated("a", driver="nic.example.com")])
        assert not isinstance(missing.value, Unfinished)
        assert node.on_disk() == {}

    tell(play)


def test_plugins_of_both_types_may_have_one_name():
    """DRIVER4: each claim is told to the plugin of its own type."""

    async def play(node: Node) -> None:
        newer = await node.plugin()
        assert isinstance(newer, Plugin)
        with pytest.raises(NotReady, match="not registered"):
            await node.agent.prepare("p", [allocated("a")])
        older = await with_plugin(node, names=("example.com/old=a",))
        devices = await node.agent.prepare("p", [allocated("a"), given("b")])
        assert devices == {"uid-a": ("example.com/old=a",), "uid-b": ("example.com/gpu=b",)}
        assert (newer.told, [one.claim_name for one in older.asked]) == (["prepare b"], ["a"])
        await node.agent.unprepare("p")
        assert (newer.told[1:], [one.claim_name for one in older.released]) == (["unprepare b"], ["a"])

    tell(play)
