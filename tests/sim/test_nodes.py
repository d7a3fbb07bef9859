"""Nodes are not under test in the simulator, so they may not do what no node's agent does."""

import asyncio
import contextlib

import pytest

from allot.api import errors
from allot.apiserver import ApiServer, Options, identities
from allot.client import Client, InProcessTransport
from allot.sim import things
from allot.sim.loop import VirtualClock, run
from allot.sim.lots import Lots
from allot.sim.nodes import Nodes
from allot.sim.recording import Recorder
from allot.sim.scheduling import allocation, give
from allot.sim.things import Things
from allot.store import MemoryStore

NODE = "node-0"
LONG_S = 60.0
PUBLISHES = next(seed for seed in range(100) if Lots(seed).draw("nodes publish what they prepare")[0] < 0.7)


class Wires:
    """The nodes' ways to the server, with somebody who gets a word in before each request."""

    def __init__(self, connect):
        self._connect = connect
        self.before = None

    def __call__(self, user):
        return Wire(self._connect(user), self)


class Wire:
    def __init__(self, inner, wires):
        self._inner = inner
        self._wires = wires

    async def send(self, request):
        if self._wires.before is not None:
            await self._wires.before(request)
        return await self._inner.send(request)

    async def close(self):
        await self._inner.close()


class Cluster:
    def __init__(self, server, clock):
        def connect(user=identities.ADMIN):
            return InProcessTransport(server.handle, user)

        self.people = Things(Client(connect()))
        self.record = Recorder(Client(connect()))
        self.wires = Wires(connect)
        self.nodes = Nodes(self.wires, self.record, Lots(PUBLISHES), clock)

    async def start_pod(self, name, device):
        """A pod on the node whose claim is the pod's namesake, allocated and reserved for it."""
        pod = await self.create_pod(name)
        claim = await self.people.resourceclaims.create(things.claim(name), "default")
        consumer = {"resource": "pods", "name": name, "uid": pod.uid}
        await give(self.people.resourceclaims, claim, allocation(NODE, device), [consumer])
        return claim.uid

    async def create_pod(self, name):
        spec = {**things.pod_spec([name], restart="Always"), "nodeName": NODE}
        return await self.people.pods.create({"metadata": {"name": name}, "spec": spec}, "default")

    async def prepared(self):
        said = await self.people.prepared.get(NODE)
        return {one["uid"] for one in said.fields["status"].get("claims") or ()}


@contextlib.asynccontextmanager
async def cluster():
    clock = VirtualClock(asyncio.get_running_loop())
    server = ApiServer(MemoryStore(), Options(clock=clock, watch_loop=False))
    await server.start()
    made = Cluster(server, clock)
    made.record.start()
    for device_class in things.device_classes():
        await made.people.deviceclasses.create(device_class)
    await made.nodes.furnish()
    yield made
    await made.nodes.stop()
    await made.record.stop()
    await server.close()


def test_what_a_node_says_last_is_what_it_has_prepared():
    """Two pods ended at once and each said what was left. The first to speak was overtaken, and
    its list, with the other pod's claim in it, stood for ever."""

    async def story():
        async with cluster() as there:
            claims = {await there.start_pod("first", "gpu-0"), await there.start_pod("second", "gpu-1")}
            await asyncio.sleep(LONG_S)
            assert await there.prepared() == claims
            delays_s = iter([LONG_S])

            async def hold_back_the_first(request):
                if request.method == "PATCH" and things.PREPARED in request.path:
                    await asyncio.sleep(next(delays_s, 0.0))

            there.wires.before = hold_back_the_first
            for name in ("first", "second"):
                await there.people.pods.delete(name, "default")
            await asyncio.sleep(3 * LONG_S)
            return await there.prepared()

    assert run(story()) == set()


def test_a_node_lets_go_of_a_pod_that_was_replaced_before_it_said_that_it_runs():
    """The server refuses the word about a pod whose name is another's now, and the node must not
    stop at that: the claim of the first one stayed prepared, and so reserved, for ever."""

    async def story():
        async with cluster() as there:
            await there.start_pod("pod", "gpu-0")

            async def replace_it_first(request):
                if request.path.endswith("/pods/pod/status"):
                    there.wires.before = None
                    await there.people.pods.delete("pod", "default", grace_period_s=0)
                    await there.create_pod("pod")

            there.wires.before = replace_it_first
            await asyncio.sleep(LONG_S)
            assert there.wires.before is None
            return await there.prepared()

    assert run(story()) == set()


def test_a_node_that_comes_back_does_not_run_a_pod_that_was_given_up_on_meanwhile():
    """It prepared the pod's claim again, which then stayed reserved for ever."""

    async def story():
        async with cluster() as there:
            await there.start_pod("pod", "gpu-0")
            await asyncio.sleep(LONG_S)
            await there.nodes.lose(NODE)
            failed = {"status": {"phase": "Failed"}}
            await there.people.pods.patch("pod", failed, "default", subresource="status")
            await there.nodes.join(NODE)
            await asyncio.sleep(LONG_S)
            assert await there.prepared() == set()
            await there.people.pods.delete("pod", "default")
            await asyncio.sleep(LONG_S)
            return [one.name for one in (await there.people.pods.list("default")).objects]

    assert run(story()) == []


def test_a_node_that_comes_back_takes_over_the_list_of_the_one_before():
    """It said what it had prepared on a list of the Node that was gone. When that was collected, nothing
    showed for a moment that its devices were in use (N6)."""

    async def story():
        async with cluster() as there:
            await there.start_pod("pod", "gpu-0")
            await asyncio.sleep(LONG_S)
            before = await there.people.prepared.get(NODE)
            await there.nodes.lose(NODE)
            await there.nodes.join(NODE)
            await there.start_pod("other", "gpu-1")
            await asyncio.sleep(LONG_S)
            node, listed = await there.people.nodes.get(NODE), await there.people.prepared.get(NODE)
            assert listed.uid == before.uid, "nobody has collected it yet"
            return node.uid, [one["uid"] for one in listed.fields["metadata"]["ownerReferences"]]

    uid, owners = run(story())
    assert owners == [uid]


def test_a_pod_that_is_gone_before_its_node_looks_is_no_failure(caplog):
    async def story():
        async with cluster() as there:
            await there.create_pod("pod")
            await there.people.pods.delete("pod", "default", grace_period_s=0)
            await asyncio.sleep(LONG_S)

    run(story())
    assert not caplog.records


@pytest.mark.parametrize("words", ["/pods/pod/status", "/leases/node-0"])
def test_a_node_that_fails_is_found_out(caplog, words):
    async def story():
        async with cluster() as there:
            await there.start_pod("pod", "gpu-0")

            async def refuse(request):
                if request.path.endswith(words):
                    raise errors.Internal("made up")

            there.wires.before = refuse
            await asyncio.sleep(10 * LONG_S)

    run(story())
    wrong = [record for record in caplog.records if record.levelname == "ERROR"]
    assert {record.name for record in wrong if "made up" in record.getMessage()} == {"allot.sim.ways"}
