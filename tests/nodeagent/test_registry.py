"""Plugins come and go in the registration directory, over real sockets."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from allot.nodeagent import registry_loop
from allot.nodeagent.drivers import BadPlugin, Drivers, Instance, introduced
from allot.nodeagent.registry_loop import Registry
from allot.wire import UnixSockets, classic, dra, health, registration

from .plugins import DRIVER, V1, V1BETA1, Plugin, until


@dataclass
class Node:
    root: Path
    registry: Registry
    changes: list[str]
    plugins: list[Plugin] = field(default_factory=list)

    def plugin(self, name: str = "gpu", **more: Any) -> Plugin:
        self.plugins.append(Plugin(self.root, name=name, **more))
        return self.plugins[-1]

    def endpoint(self, driver: str = DRIVER) -> str:
        called = self.registry.drivers.called(driver)
        return called.endpoint if called is not None else ""


@asynccontextmanager
async def running() -> AsyncIterator[Node]:
    with tempfile.TemporaryDirectory(prefix="reg") as folder:  # short: a socket's path has a limit
        root, changes = Path(folder), []
        registry = Registry(UnixSockets(), root / "plugins_registry", changes.append)
        task = asyncio.create_task(registry.run())
        node = Node(root, registry, changes)
        try:
            yield node
            assert not task.done(), task.exception()
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


def test_a_plugin_that_comes_is_registered_and_told_so():
    async def play(node: Node) -> None:
        plugin = await node.plugin().start()
        await until(lambda: node.registry.drivers.is_there(DRIVER))
        assert plugin.statuses == [registration.RegistrationStatus(True)]
        channel, version = node.registry.reach(DRIVER)
        assert version is dra.V1
        assert (await dra.prepare(channel, version, [dra.Claim("ns", "u", "c")], timeout_s=20)).keys() == {
            "u"
        }

    tell(play)


def test_a_plugin_whose_socket_is_gone_is_registered_no_more_and_may_come_again():
    """must register after plugin restart"""

    async def play(node: Node) -> None:
        plugin = await node.plugin().start()
        await until(lambda: node.registry.drivers.is_there(DRIVER))
        await plugin.stop()
        await until(lambda: DRIVER not in node.registry.drivers.names)
        await plugin.start()
        await until(lambda: node.registry.drivers.is_there(DRIVER))
        assert len(plugin.statuses) == 2

    tell(play)


def test_the_newest_instance_is_called_and_the_older_one_when_that_is_gone():
    """A rolling update, and a failed one."""

    async def play(node: Node) -> None:
        old = await node.plugin("old").start()
        await until(lambda: node.endpoint() == str(old.service))
        new = await node.plugin("new").start()
        await until(lambda: node.endpoint() == str(new.service))
        await new.stop()
        await until(lambda: node.endpoint() == str(old.service))
        assert DRIVER in node.registry.drivers.names

    tell(play)


def test_a_plugin_that_never_answers_keeps_nobody_waiting():
    async def play(node: Node) -> None:
        deaf = await node.plugin("deaf", is_deaf=True, driver="deaf.example.com").start()
        await node.plugin().start()
        await until(lambda: node.registry.drivers.is_there(DRIVER))
        assert not deaf.statuses
        deaf.is_deaf = False
        await until(lambda: node.registry.drivers.is_there("deaf.example.com"))

    tell(play)


def test_a_plugin_that_cannot_be_told_of_its_registration_is_tried_again():
    """recover after NotifyRegistrationStatus failure"""

    async def play(node: Node) -> None:
        plugin = await node.plugin(breaks_notify=True).start()
        await until(lambda: bool(plugin.statuses))
        await until(lambda: DRIVER not in node.registry.drivers.names)
        plugin.breaks_notify = False
        await until(lambda: node.registry.drivers.is_there(DRIVER))

    tell(play)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"versions": ("v9.DRAPlugin",)}, "supports v9.DRAPlugin, and this node supports v1.DRAPlugin"),
        ({"versions": ()}, "supports no version"),
        ({"type": "CSIPlugin"}, "no handler registered for plugin type: CSIPlugin"),
        ({"driver": ""}, "does not say its name"),
        ({"endpoint": "/" + "x" * 200}, "has 201 bytes"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_told_why(wrong, says):
    async def play(node: Node) -> None:
        plugin = await node.plugin(**wrong).start()
        await until(lambda: bool(plugin.statuses))
        assert not plugin.statuses[0].plugin_registered
        assert says in plugin.statuses[0].error
        assert not node.registry.drivers.names

    tell(play)


def test_the_first_version_of_the_plugins_own_list_is_spoken():
    async def play(node: Node) -> None:
        await node.plugin(versions=(V1BETA1, V1)).start()
        await until(lambda: node.registry.drivers.is_there(DRIVER))
        assert node.registry.reach(DRIVER)[1] is dra.V1BETA1

    tell(play)


def test_a_plugin_without_an_endpoint_serves_at_the_registration_socket():
    info = registration.PluginInfo(registration.DRA_PLUGIN, DRIVER, "", (V1,))
    assert introduced("/run/x.sock", info).endpoint == "/run/x.sock"


@pytest.mark.parametrize("type", [registration.DRA_PLUGIN, classic.RESOURCE_PLUGIN])
@pytest.mark.parametrize(
    "name", ["=gpu.example.com", "a,spec.driver!=b", "../../etc", "gpu.example.com\n", "a" * 3_000_000]
)
def test_a_name_that_no_claim_can_have_is_refused_in_few_words(type, name):
    """Its slices would be asked for by that name: `spec.driver==gpu.example.com` is another driver's."""
    with pytest.raises(BadPlugin, match="has a name that no claim can have") as refused:
        introduced("/s", registration.PluginInfo(type, name, "", (V1,)))
    assert len(str(refused.value)) < 300


def test_health_is_followed_in_the_newest_version_that_both_know():
    def version(*names: str) -> health.Version | None:
        info = registration.PluginInfo(registration.DRA_PLUGIN, DRIVER, "", (V1, *names))
        return introduced("/s", info).followed

    assert version() is None
    assert version(health.V1ALPHA1.name) is health.V1ALPHA1
    assert version(health.V1ALPHA1.name, health.V1.name) is health.V1


def test_a_socket_in_a_folder_of_its_own_is_a_plugin_like_any_other():
    """A kubelet watches its registration directory with everything below it."""

    async def play(node: Node) -> None:
        plugin = await node.plugin("vendor/gpu").start()
        await until(lambda: node.registry.drivers.is_there(DRIVER))
        await plugin.stop()
        await until(lambda: DRIVER not in node.registry.drivers.names)

    tell(play)


def test_hidden_sockets_are_left_alone():
    async def play(node: Node) -> None:
        hidden = await node.plugin(".hidden").start()
        await node.plugin().start()
        await until(lambda: node.registry.drivers.is_there(DRIVER))
        assert not hidden.statuses

    tell(play)


def test_a_service_that_begins_to_listen_later_or_again_is_reached():
    """functional when plugin listens on service socket after registration; after service reconnect"""

    async def play(node: Node) -> None:
        plugin = node.plugin()
        await plugin.announce()
        await until(lambda: DRIVER in node.registry.drivers.names)
        assert not node.registry.drivers.is_there(DRIVER)
        await plugin.serve()
        await until(lambda: node.registry.drivers.is_there(DRIVER))
        await plugin.servers.pop().close()
        await until(lambda: not node.registry.drivers.is_there(DRIVER))
        assert DRIVER in node.registry.drivers.names
        await plugin.serve()
        await until(lambda: node.registry.drivers.is_there(DRIVER))
        assert len(plugin.statuses) == 1, "it was not registered anew for that"

    tell(play)


def test_what_a_killed_plugin_left_is_tried_again_until_somebody_answers_there(monkeypatch):
    """recover after registration failure"""
    monkeypatch.setattr(registry_loop, "_FIRST_WAIT_S", 0.05)

    async def play(node: Node) -> None:
        import socket

        plugin = node.plugin()
        plugin.announced.parent.mkdir(parents=True)
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(plugin.announced))
        await asyncio.sleep(0.5)
        await plugin.start()
        await until(lambda: node.registry.drivers.is_there(DRIVER))

    tell(play)


def instance(socket: str, endpoint: str = "", is_connected: bool = False) -> Instance:
    return Instance(socket, DRIVER, endpoint or f"{socket}.service", dra.V1, None, is_connected)


def test_one_endpoint_has_one_instance():
    drivers = Drivers()
    drivers.add(instance("a", "/e"))
    drivers.add(instance("a", "/e"))  # the same one, once more
    with pytest.raises(BadPlugin, match=r"endpoint /e of DRA driver gpu.example.com is already registered"):
        drivers.add(instance("b", "/e"))


def test_the_newest_that_is_connected_is_called_else_the_newest():
    drivers = Drivers()
    for name in "abc":
        drivers.add(instance(name))
    assert drivers.called(DRIVER).socket == "c"
    drivers.connected("a", True)
    drivers.connected("b", True)
    assert drivers.called(DRIVER).socket == "b"
    drivers.connected("b", False)
    assert drivers.called(DRIVER).socket == "a"


def test_a_socket_that_a_killed_driver_left_behind_is_no_warning_for_a_while(
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level("INFO", registry_loop.__name__)

    async def play(node: Node) -> None:
        left = node.root / "plugins_registry" / "gone-reg.sock"
        left.parent.mkdir(exist_ok=True)
        server = await asyncio.start_unix_server(lambda _, writer: writer.close(), str(left))
        server.close()
        await server.wait_closed()
        assert left.is_socket()
        await until(lambda: any("gone-reg.sock is not registered" in said for said in caplog.messages))
        said = [one for one in caplog.records if one.name == registry_loop.__name__]  # a log is everybody's
        assert {one.levelname for one in said} == {"INFO"}

    tell(play)
