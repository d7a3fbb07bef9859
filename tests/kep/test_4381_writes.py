"""KEP-4381: what is written for a numeric claim, how often, on top of what, and to whom nothing is said."""

import json
import socket
from functools import partial
from types import SimpleNamespace

import pytest

from allot.allocation import Ledger, PoolId, Taken, taken_by
from allot.api import Request, Response, errors, numeric, resource, transaction
from allot.apiserver import identities
from allot.base import RandomIds
from allot.client import Client, InProcessTransport
from allot.scheduler.framework import CycleState
from allot.scheduler.plugins.numeric import NumericAsk, NumericResources
from allot.scheduler.plugins.numeric.asking import NAME
from controllers.world import Record
from scheduler.cluster import NS, Cluster
from scheduler.cluster import tell as tell_any
from scheduler.numeric import Numeric
from scheduler.wire import Wire, is_write, what

from .test_4381_scheduling import once

tell = partial(tell_any, started=False, transactions=False)


class Kept(Record):
    """Keeps what the server has carried out: a write on an old version is refused, and made anew."""

    async def send(self, request: Request) -> Response:
        answer = await super().send(request)
        if answer.status >= 400:
            self.requests[:] = [one for one in self.requests if one is not request]
        return answer


def writes_of(requests: list[Request]) -> list[str]:
    return [what(one) for one in requests if is_write(one) and "/leases" not in one.path]


def test_a_claim_costs_two_writes_and_two_more_when_it_is_given_back():
    """4381-SCL-02, 4381-SCH-10: each on the version that was read, of the very claim."""

    async def story(place: Cluster) -> None:
        here = await Numeric(place).furnish({"a": 4})
        wires: list[Kept] = []
        connect = place.server.client

        def client(user=identities.ADMIN):  # as every part of the cluster connects
            if user == identities.ADMIN:
                return connect(user)
            wires.append(Kept(InProcessTransport(place.server.api.handle, user)))
            return Client(wires[-1])

        place.server.client = client  # type: ignore[method-assign]
        await place.start_controllers()
        await place.start_scheduler()
        await here.claim("c", 3)
        await here.pod("p", "c")
        assert await place.bound("p") == ["a"]
        asked = [one for wire in wires for one in wire.requests if "/resourceclaims/c" in one.path]
        path = f"PUT /apis/resource.k8s.io/v1/namespaces/{NS}/resourceclaims/c"
        assert writes_of(asked) == [path, f"{path}/status"]
        versions = []
        for one in filter(is_write, asked):
            said = json.loads(one.body)["metadata"]
            assert said["uid"] == (await here.claims.get("c", NS)).uid
            versions.append(int(said["resourceVersion"]))
        assert versions == sorted(set(versions))
        for wire in wires:
            wire.requests.clear()
        await here.finish("p")
        await here.free("c")

        async def unprotected() -> bool:
            found = await place.get("resourceclaims", "c")
            return found is not None and not found.metadata.finalizers

        await place.until(unprotected, "the finalizer gone")
        await place.quiet()
        asked = [one for wire in wires for one in wire.requests if "/resourceclaims/c" in one.path]
        path = f"PATCH /apis/resource.k8s.io/v1/namespaces/{NS}/resourceclaims/c"
        assert writes_of(asked) == [f"{path}/status", path]
        for one in filter(is_write, asked):
            assert json.loads(one.body)["metadata"].keys() >= {"uid", "resourceVersion"}

    tell(story)


@pytest.mark.parametrize("transactions", [True, False], ids=["together", "one-by-one"])
def test_whoever_was_faster_is_not_overwritten(transactions: bool):
    """4381-SCH-10: the attempt ends, and the pod is tried again with the claim as it is."""

    async def story(place: Cluster) -> None:
        await place.start_controllers()
        here = await Numeric(place).furnish({"a": 4, "b": 4})
        wire = Wire.to(place)
        await here.claim("c", 3)
        claims = place.resource("resourceclaims")

        async def steal() -> None:
            """Another scheduler allocates it for node b."""
            pod = await place.resource("pods").get("p", NS)
            held = await claims.patch("c", {"metadata": {"finalizers": [numeric.limits.FINALIZER]}}, NS)
            terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]
            result = {
                "request": "classic",
                "driver": "frob.example.com",
                "pool": "numeric/b",
                "device": "c0",
                "shareID": "00000000-0000-4000-8000-000000000001",
                "consumedCapacity": {"counter.dra.config.k8s.io/count": "3"},
            }
            allocation = {
                "nodeSelector": {"nodeSelectorTerms": terms},
                "devices": {"results": [result]},
                "resourceHandle": '{"by": "another"}',
            }
            user = {"resource": "pods", "name": "p", "uid": pod.uid}
            status = {"driverName": "frob.example.com", "allocation": allocation, "reservedFor": [user]}
            await claims.update_status(held.changed({"status": status}))

        wire.before(transaction.PATH if transactions else "/resourceclaims/c", steal)
        await place.start_scheduler(transport=wire)
        await place.quiet()
        await here.pod("p", "c")
        assert await place.bound("p") == ["b"]
        assert await here.handle("c") == {"by": "another"}

    tell(story, transactions=transactions)


def test_while_the_server_is_away_nothing_is_allocated_and_afterwards_it_goes_on():
    """4381-FAIL-04: what was allocated stays as it was, and its pod where it is."""

    async def story(place: Cluster) -> None:
        await place.start_controllers()
        here = await Numeric(place).furnish({"a": 4})
        await here.asks("runs", 1)
        wire = Wire.to(place)
        await place.start_scheduler(transport=wire)
        await place.bound("runs")
        wire.down = True
        await here.asks("p", 3)
        await place.quiet()
        assert await here.taken("p") is None and await here.taken("runs") is not None
        assert await place.node_of("runs") == "a"
        wire.down = False
        assert await place.bound("p") == ["a"]

    tell(story)


def test_a_refused_write_gives_back_exactly_what_was_held():
    """4381-BCT-11, 4381-BCT-14: what was marked and not stored is free; what was stored counts once."""

    async def story(place: Cluster) -> None:
        await place.start_controllers()
        here = await Numeric(place).furnish({"a": 4})
        wire = Wire.to(place)
        wire.refuse_all("/resourceclaims/p", errors.Forbidden("not now"))
        await place.start_scheduler(transport=wire)
        await here.asks("p", 4)
        await here.waits("p", "not now")

        def free() -> int:
            assert place.scheduler is not None
            known = place.scheduler.snapshot
            (offer,) = known.capacity.offers("a", known.ledger)["frob.example.com"]
            return offer.free["counter.dra.config.k8s.io/count"]

        async def all_free() -> bool:
            return free() == 4

        await place.until(all_free, "everything given back")
        wire.refuse_all("", None)
        assert await place.bound("p") == ["a"]
        await place.quiet()
        assert free() == 0
        await here.publish("a", 9)
        await place.quiet()
        assert free() == 5
        await here.publish("a", 4)
        await here.finish("p")
        await here.free("p")
        await place.until(all_free, "free again")

    tell(story)


def test_a_refused_binding_gives_back_what_was_stored_and_what_was_held():
    """4381-SCH-11: usage and reservation both, and the pod is tried again."""

    async def story(place: Cluster) -> None:
        await place.start_controllers()
        here = await Numeric(place).furnish({"a": 4})
        wire = Wire.to(place)
        wire.refuse_all("/pods/p/binding", errors.Forbidden("not now"))
        await place.start_scheduler(transport=wire)
        await here.asks("p", 4)
        await here.waits("p", "not now")

        async def idle() -> bool:
            status = await here.status("p")
            return "allocation" not in status and "reservedFor" not in status

        await place.until(idle, "nothing stored for it")
        await here.asks("q", 4)
        assert await place.bound("q") == ["a"]
        await here.finish("q")
        await here.free("q")
        wire.refuse_all("", None)
        assert await place.bound("p") == ["a"]

    tell(story)


def test_giving_back_twice_has_the_effect_of_once():
    """4381-BCT-11: and gives back nothing of what others hold, or of what is stored."""
    ledger = Ledger()

    def taking(uid: str, count: int) -> tuple[Taken, ...]:
        result = resource.DeviceRequestAllocationResult(
            request="classic",
            driver="frob.example.com",
            pool="numeric/a",
            device="c0",
            share_id=uid,
            consumed_capacity={"counter.dra.config.k8s.io/count": str(count)},
        )
        devices = resource.DeviceAllocationResult(results=(result,))
        return tuple(taken_by(resource.AllocationResult(devices=devices)))

    def used() -> int:
        usage = ledger.usage(PoolId("frob.example.com", "numeric/a"))
        return sum(sum(one.consumed.values()) for one in usage.values()) // 10**9

    def asked(uid: str) -> CycleState:
        state = CycleState(None, None)  # type: ignore[arg-type]
        state.read[NAME] = NumericAsk((SimpleNamespace(claim=SimpleNamespace(uid=uid)),))  # type: ignore[arg-type]
        return state

    snapshot, plugin = SimpleNamespace(ledger=ledger), NumericResources(RandomIds())
    ledger.fly("mine", taking("mine", 3))
    ledger.fly("others", taking("others", 2))
    ledger.settle("stored", taking("stored", 1))
    for _ in range(2):
        plugin.unreserve(asked("mine"), snapshot)  # type: ignore[arg-type]
        plugin.unreserve(asked("stored"), snapshot)  # type: ignore[arg-type]
        assert used() == 3


@once
async def test_nobody_is_called_but_the_api_server(here: Numeric):
    """4381-SCL-07: no cloud provider, nor anybody else, while claims are allocated and given back."""
    called: list[object] = []
    connect = socket.socket.connect

    def note(self: socket.socket, address: object) -> None:
        called.append(address)
        connect(self, address)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", note)
        patch.setattr(socket, "getaddrinfo", lambda *asked, **more: called.append(asked))
        await here.asks("p", 3)
        await here.here.bound("p")
        await here.finish("p")
        await here.free("p")
    assert called == []
