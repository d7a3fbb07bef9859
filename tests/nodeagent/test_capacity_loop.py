"""Capacity, published by an agent that does not understand it: over real sockets, with a node's rights."""

import asyncio
import logging
import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from allot.api import Gates, Object, errors, numeric
from allot.apiserver import Options, identities
from allot.base import Metrics, SystemClock
from allot.bench.writes import served
from allot.informers import Informers, Telemetry
from allot.nodeagent.capacity_loop import CapacityLoop
from allot.nodeagent.registry_loop import Registry
from allot.nodeagent.wiping import PATIENCE_S
from allot.testing import TestServer, api_server
from allot.wire import CallFailed, Code, UnixSockets, dra
from allot.wire import capacity as wire

from .plugins import V1, Plugin, until
from .test_capacity import DRIVER, NODE, instance, message

RESTS_S = 0.5
"""By then an agent has looked at what it wrote itself."""


@dataclass
class Telling(Plugin):
    """A driver that tells what it has, whenever that is different."""

    has: Any = None  # messages to send, the last one being what it has; None: it has no such stream
    broken: bool = False
    asked: int = 0

    async def serve(self) -> None:
        await super().serve()
        await self.servers.pop().close()
        handlers = self._handlers() if self.has is not None else self._others()
        self.servers.append(await UnixSockets().serve(str(self.service), handlers))

    def _others(self):
        return dra.served(self._prepare, self._unprepare, [dra.V1])

    def _handlers(self):
        return (*self._others(), wire.WATCH.by(self._tell))

    async def _tell(self, request: wire.NodeWatchCapacityRequest) -> AsyncIterator[Any]:
        self.asked += 1
        said = None
        while True:
            if self.broken:
                raise CallFailed(Code.INTERNAL, "as the story says")
            if self.has != said:
                said = self.has
                yield message(*said)
            await asyncio.sleep(0.01)


@dataclass
class World:
    server: TestServer
    root: Path
    plugins: list[Plugin] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        admin = self.server.client()
        self.objects = admin.of(numeric.NODE_RESOURCE_CAPACITY)
        self.nodes = admin.resource("", "v1", "nodes", namespaced=False)

    @asynccontextmanager
    async def agent(
        self, patience_s: float = PATIENCE_S, *, publishes: bool = True
    ) -> AsyncIterator[CapacityLoop]:
        """As much of one as concerns capacity."""
        client, clock, metrics = self.server.client(identities.node(NODE)), SystemClock(), Metrics()
        loops: list[CapacityLoop] = []
        registry = Registry(UnixSockets(), self.root / "plugins_registry", lambda driver: loops[0].look())
        known = await self.nodes.get(NODE)
        async with Informers(client, random.Random(1)) as informers:
            telemetry = Telemetry(metrics, clock)
            loops.append(
                CapacityLoop(
                    NODE,
                    client,
                    registry,
                    clock,
                    telemetry,
                    self._complain,
                    0.05,
                    patience_s,
                    publishes=publishes,
                )
            )
            tasks = [
                asyncio.create_task(registry.run()),
                asyncio.create_task(loops[0].run(informers, lambda: known)),
            ]
            try:
                yield loops[0]
                for task in tasks:
                    assert not task.done(), task.exception()
            finally:
                for task in tasks:
                    task.cancel()
                _, deaf = await asyncio.wait(tasks, timeout=10)
                assert not deaf

    def _complain(self, about: Object, reason: str, message: str) -> None:
        self.complaints.append(f"{about.kind} {about.name}: {message}")

    async def driver(
        self, *has: Any, name: str = "frob", driver: str = DRIVER, mute: bool = False
    ) -> Telling:
        plugin = Telling(
            self.root, driver=driver, name=name, versions=(V1, wire.VERSION), has=None if mute else [*has]
        )
        self.plugins.append(plugin)
        await plugin.start()
        return plugin

    async def shown(self) -> dict[str, list[Any]]:
        """Counts of instances, by driver."""
        found: dict[str, list[Any]] = {}
        for one in (await self.objects.list()).objects:
            counts = [listed["data"]["count"] for listed in one.fields["instances"]]
            found.setdefault(one.fields["driverName"], []).extend(counts)
        return found

    async def until_shown(self, **counts: list[Any]) -> None:
        wanted = {f"{name}.example.com": listed for name, listed in counts.items()}

        async def is_so() -> bool:
            return await self.shown() == wanted

        try:
            await until(is_so)
        except AssertionError:
            raise AssertionError(await self.shown()) from None


def tell(play: Callable[[World], Awaitable[None]], **gates: bool) -> None:
    async def whole() -> None:
        with tempfile.TemporaryDirectory(prefix="cap") as folder:
            async with api_server(options=Options(gates=Gates(gates))) as server:
                here = World(server, Path(folder))
                for name in (NODE, "other"):
                    await here.nodes.create({"metadata": {"name": name}})
                try:
                    await play(here)
                finally:
                    for plugin in here.plugins:
                        await plugin.stop()

    asyncio.run(asyncio.wait_for(whole(), 90))


def test_what_a_driver_tells_is_published_and_followed():
    """4381-PUB-01, 4381-PUB-03, 4381-PUB-04, 4381-PUB-05, 4381-PUB-12, 4381-PUB-16: one call."""

    async def play(here: World) -> None:
        async with here.agent():
            driver = await here.driver(instance(count=8))
            await here.until_shown(frob=[8])
            (made,) = (await here.objects.list()).objects
            node = await here.nodes.get(NODE)
            assert made.fields["nodeName"] == NODE
            assert [one["uid"] for one in made.fields["metadata"]["ownerReferences"]] == [node.uid]
            for count in range(20):
                driver.has = [instance(count=count), instance("c1", count=-1)]
            await here.until_shown(frob=[19, -1])
            driver.has = []
            await here.until_shown(frob=[])
            assert driver.asked == 1
            (still,) = (await here.objects.list()).objects
            assert still.uid == made.uid

    tell(play)


def test_equal_messages_cause_no_write_and_a_bad_one_changes_nothing():
    """4381-PUB-11, 4381-PUB-20, 4381-SCL-03: the Node's event names driver and id."""

    async def play(here: World) -> None:
        async with here.agent():
            driver = await here.driver(instance())
            await here.until_shown(frob=[8])
            (before,) = (await here.objects.list()).objects
            driver.has = [instance(count=8.0), instance("twice"), instance("twice")]
            await until(lambda: bool(here.complaints))
            assert here.complaints[0] == (
                f"Node {NODE}: capacity of driver {DRIVER}: two instances have the id 'twice'"
            )
            driver.has = [instance()]
            await here.driver(instance(count=3), name="last", driver="last.example.com")
            await here.until_shown(frob=[8], last=[3])
            (after,) = (
                one for one in (await here.objects.list()).objects if one.fields["driverName"] == DRIVER
            )
            assert after.resource_version == before.resource_version

    tell(play)


def test_what_the_server_refuses_is_told_and_tried_again():
    """4381-PUB-21: the newest state wins."""

    async def play(here: World) -> None:
        async with here.agent():
            driver = await here.driver(instance(junk="x" * 40_000))
            await until(lambda: any("instances[0].data" in one for one in here.complaints))
            driver.has = [instance(count=5)]
            await here.until_shown(frob=[5])

    tell(play)


def test_what_the_server_refused_is_published_when_it_no_longer_does():
    """4381-PUB-21: nothing new has to be told for that."""

    async def play(here: World) -> None:
        async with here.agent():
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(numeric.limits, "DATA_MAX", 4)
                await here.driver(instance())
                await until(lambda: bool(here.complaints))
            await here.until_shown(frob=[8])

    tell(play)


def test_what_is_published_is_not_written_again():
    """4381-SCL-03: not even to no effect."""

    async def play(here: World) -> None:
        async with here.agent():
            await here.driver(instance())
            await here.until_shown(frob=[8])
            await asyncio.sleep(RESTS_S)
            before = await served(here.server.client())
            await asyncio.sleep(RESTS_S)
            assert not (await served(here.server.client())).since(before).writes

    tell(play)


def test_a_broken_stream_is_opened_again_and_what_was_published_stays(monkeypatch, caplog):
    """4381-PUB-14: each time after a longer wait."""
    monkeypatch.setattr("allot.nodeagent.capacity_loop._FIRST_WAIT_S", 0.1)
    caplog.set_level(logging.INFO, "allot.nodeagent.capacity_loop")

    async def play(here: World) -> None:
        async with here.agent():
            driver = await here.driver(instance())
            await here.until_shown(frob=[8])
            driver.broken = True
            await until(lambda: driver.asked >= 4)
            assert await here.shown() == {DRIVER: [8]}
            driver.has, driver.broken = [instance(count=2)], False
            await here.until_shown(frob=[2])

    tell(play)
    waits = [str(one.args[1]) for one in caplog.records if "is not told, again in" in one.msg]
    assert waits[:3] == ["0.1", "0.2", "0.4"]


def test_a_driver_without_the_stream_is_asked_once():
    """4381-PUB-13: and again when it registers anew; what an earlier version of it published goes."""

    async def play(here: World) -> None:
        async with here.agent(patience_s=0.3) as loop:
            old = await here.driver(instance())
            await here.until_shown(frob=[8])
            await old.stop()
            mute = await here.driver(mute=True)
            await until(lambda: DRIVER in loop._mute)
            await here.until_shown()
            await mute.stop()
            await here.driver(instance(count=1))
            await here.until_shown(frob=[1])

    tell(play)


def test_an_agent_that_is_ended_in_the_moment_in_which_a_driver_leaves_ends():
    async def play(here: World) -> None:
        async with here.agent() as loop:
            await here.driver(instance())
            await here.until_shown(frob=[8])
            loop.look()

    tell(play)


def test_capacity_goes_when_its_driver_has_been_away_for_long():
    """4381-PUB-15, 4381-PUB-17: not before, also when an earlier agent published it; others stay."""

    async def play(here: World) -> None:
        async with here.agent():
            driver = await here.driver(instance())
            await here.driver(instance(count=1), name="other", driver="other.example.com")
            await here.until_shown(frob=[8], other=[1])
        await driver.stop()
        names = {one.name for one in (await here.objects.list()).objects}
        assert PATIENCE_S == 30
        async with here.agent(patience_s=0.5):
            assert await here.shown() == {DRIVER: [8], "other.example.com": [1]}
            await here.until_shown(other=[1])
            assert {one.name for one in (await here.objects.list()).objects} < names, (
                "updated, not made again"
            )

    tell(play)


def test_a_driver_that_came_back_is_not_away_although_nothing_is_shown_of_it(monkeypatch):
    """4381-PUB-15: what it had was still shown when it was forgotten, for a moment. Since then it is back,
    and the server refuses what it tells; what it told is not forgotten with what it had before."""
    write = CapacityLoop._write

    async def late(self, driver, writes) -> None:
        await asyncio.sleep(0.3)
        await write(self, driver, writes)

    monkeypatch.setattr(CapacityLoop, "_write", late)

    async def play(here: World) -> None:
        async with here.agent(patience_s=1.0):
            driver = await here.driver(instance())
            await here.until_shown(frob=[8])
            await driver.stop()
            await here.until_shown()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(numeric.limits, "DATA_MAX", 4)
                await here.driver(instance())
                await until(lambda: bool(here.complaints))
                await asyncio.sleep(1.5)
            await here.until_shown(frob=[8])

    tell(play)


def test_what_others_do_to_an_object_is_undone_and_other_nodes_are_left_alone():
    """4381-PUB-18, 4381-PUB-19"""

    async def play(here: World) -> None:
        foreign = {"nodeName": "other", "driverName": DRIVER, "instances": []}
        await here.objects.create({"metadata": {"name": "foreign"}, **foreign})
        async with here.agent():
            await here.driver(instance())
            await here.until_shown(frob=[8])
            (made,) = (one for one in (await here.objects.list()).objects if one.name != "foreign")
            await asyncio.sleep(RESTS_S)
            await here.objects.patch(made.name, {"instances": []})
            await here.until_shown(frob=[8])
            await asyncio.sleep(RESTS_S)
            await here.objects.delete(made.name)
            await here.until_shown(frob=[8])
            assert (await here.objects.get("foreign")).fields["instances"] == []

    tell(play)


def test_of_two_instances_of_a_driver_the_newest_is_heard():
    """4381-PUB-22: and when it ends, the other one again."""

    async def play(here: World) -> None:
        async with here.agent():
            await here.driver(instance(count=1), name="old")
            await here.until_shown(frob=[1])
            new = await here.driver(instance(count=2), name="new")
            await here.until_shown(frob=[2])
            await new.stop()
            await here.until_shown(frob=[1])

    tell(play)


def test_types_that_nobody_here_knows_are_published_and_a_downgraded_driver_replaces_what_it_had():
    """4381-SKEW-02, 4381-SKEW-05, 4381-PUB-06, 4381-PUB-17: in the same object."""

    async def play(here: World) -> None:
        later, earlier = (
            wire.Instance("c0", f"nobody.example.com/{version}", "Odd", b'{"count": 1}')
            for version in ("v9", "v8")
        )
        async with here.agent():
            driver = await here.driver(later)
            await here.until_shown(frob=[1])
            (before,) = (await here.objects.list()).objects
            await driver.stop()
            await here.driver(earlier)

            async def is_replaced() -> bool:
                (now,) = (await here.objects.list()).objects
                return now.uid == before.uid and now.fields["instances"][0]["apiVersion"].endswith("/v8")

            await until(is_replaced)

    tell(play)


def test_a_node_publishes_for_itself_alone():
    """4381-SEC-02, 4381-PUB-19: the server refuses the rest. 4381-NOD-12, 4381-SEC-05: it writes no claim,
    of whomever; one that lies attracts pods, and that is all."""

    async def play(here: World) -> None:
        objects = here.server.client(identities.node(NODE)).of(numeric.NODE_RESOURCE_CAPACITY)
        body = {"metadata": {"generateName": "x-"}, "driverName": DRIVER, "instances": []}
        made = await objects.create({**body, "nodeName": NODE})
        with pytest.raises(errors.Forbidden):
            await objects.create({**body, "nodeName": "other"})
        with pytest.raises(errors.Forbidden):
            await (
                here.server.client(identities.node("other"))
                .of(numeric.NODE_RESOURCE_CAPACITY)
                .delete(made.name)
            )
        claim = {"metadata": {"name": "c"}, "spec": {"resourceClassName": "frob"}}
        api = "resource.k8s.io"
        await here.server.client().resource(api, "v1alpha1", "resourceclaims").create(claim, "default")
        for version in ("v1", "v1alpha1"):
            claims = here.server.client(identities.node(NODE)).resource(api, version, "resourceclaims")
            with pytest.raises(errors.Forbidden):
                await claims.patch("c", {"metadata": {"labels": {"a": "b"}}}, "default")
            with pytest.raises(errors.Forbidden):
                await claims.patch("c", {"status": {"driverName": "x"}}, "default", subresource="status")
            with pytest.raises(errors.Forbidden):
                await claims.delete("c", "default")

    tell(play)


def test_while_the_server_does_not_serve_the_kind_drivers_are_heard_all_the_same():
    """4381-GATE-10: the agent waits, quietly."""

    async def play(here: World) -> None:
        async with here.agent():
            driver = await here.driver(instance())
            await until(lambda: driver.asked == 1)
        assert here.complaints == []

    tell(play, DRANumericParameters=False)


def test_with_the_gate_off_nobody_is_asked_and_what_was_published_goes_after_a_while():
    """4381-PUB-24, 4381-GATE-10, 4381-GATE-12: nobody stands for it any more, so it would be wrong for ever;
    on again it is there again. Capacity of other nodes stays."""

    async def play(here: World) -> None:
        foreign = {"nodeName": "other", "driverName": "foreign.example.com"}
        await here.objects.create({"metadata": {"name": "foreign"}, "instances": [], **foreign})
        async with here.agent():
            driver = await here.driver(instance())
            await here.until_shown(frob=[8], foreign=[])
        driver.asked = 0
        async with here.agent(publishes=False) as off:
            await until(lambda: DRIVER in off._registry.sources())
            await asyncio.sleep(0.3)
            assert await here.shown() == {DRIVER: [8], "foreign.example.com": []}
        async with here.agent(patience_s=0.3, publishes=False):
            await here.until_shown(foreign=[])
            assert driver.asked == 0
        async with here.agent():
            await here.until_shown(frob=[8], foreign=[])

    tell(play)
