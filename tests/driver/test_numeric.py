"""Drivers of numeric parameters: what they tell, and what they refuse, over real sockets."""

import asyncio
import json
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import Gates
from allot.driver import Edits, Ground, Handed, Node, NotUsable, NumericDriver, Places, numeric, offering
from allot.drivers import frobnicator
from allot.numeric import load_models
from allot.wire import CallFailed, Code, UnixSockets, capacity, cdi, classic, registration

NAME, NODE = "frob.example.com", "node-1"
MODELS = load_models(Gates({}), print)
SECONDS = 60


def handle(instance="f0", count=3, version="v1alpha1", **more):
    return json.dumps(
        {
            "kind": "Allocation",
            "apiVersion": f"counter.dra.config.k8s.io/{version}",
            "instance": instance,
            "count": count,
            "nodeName": NODE,
            "resourceClass": {"metadata": {"name": "frobnicator"}},
            "classParameters": {"data": {"LEVEL": "gold"}},
            "claimParameters": {"spec": {"env": {"SPEED": "fast"}}},
            **more,
        }
    )


class Kubelet:
    def __init__(self, channel, places):
        self.channel, self.places = channel, places

    async def prepare(self, uid="u1", given=None):
        request = classic.NodePrepareResourceRequest("ns", uid, f"claim-{uid}", given or handle())
        names = (await self.channel.call(classic.PREPARE, request, timeout_s=SECONDS)).cdi_devices
        return cdi.catalogue([self.places.cdi]).edits(names).env

    async def unprepare(self, uid="u1"):
        request = classic.NodeUnprepareResourceRequest("ns", uid, f"claim-{uid}")
        await self.channel.call(classic.UNPREPARE, request, timeout_s=SECONDS)

    async def refusal(self, uid="u1", given=None):
        with pytest.raises(CallFailed) as caught:
            await self.prepare(uid, given)
        return caught.value

    def stream(self):
        return self.channel.stream(capacity.WATCH, capacity.NodeWatchCapacityRequest())

    async def told(self):
        return await anext(aiter(self.stream()))


class Hardware:
    """What there is, changed by the story."""

    def __init__(self, *instances):
        self.has, self.changed, self.prepared = list(instances), asyncio.Event(), []

    async def capacity(self, node):
        while True:
            self.changed.clear()
            yield self.has
            await self.changed.wait()

    def become(self, *instances):
        self.has = list(instances)
        self.changed.set()

    def prepare(self, claim):
        self.prepared.append(claim)
        return Edits(env=(f"COUNT={claim.data['count']}",))


@asynccontextmanager
async def kubelet(driver, folder=None, boot="boot-1"):
    with tempfile.TemporaryDirectory(prefix="num") as made:
        places = Places(driver.name, Path(folder or made), Path(folder or made) / "cdi")
        async with offering(driver, Node(NODE), places, Ground(boot=boot)) as work:
            channel = UnixSockets().dial(str(places.service_socket))
            try:
                here = Kubelet(channel, places)
                here.work = work
                yield here
            finally:
                await channel.close()


def tell(story):
    asyncio.run(asyncio.wait_for(story(), SECONDS))


def test_it_tells_what_it_has_and_what_that_becomes():
    """4381-PUB-02, 4381-PUB-03, 4381-SKEW-01: in the version that its author chose, to whoever asks."""

    async def story():
        hardware = Hardware(numeric.counter("f0", 8, {"speed": "fast"}, version="v1beta1"))
        async with kubelet(NumericDriver(NAME, hardware.capacity, hardware.prepare)) as here:
            messages = aiter(here.stream())
            (one,) = (await anext(messages)).instances
            assert (one.id, one.kind) == ("f0", "Capacity")
            assert one.api_version == "counter.dra.config.k8s.io/v1beta1"
            assert json.loads(one.data) == {
                "apiVersion": one.api_version,
                "kind": "Capacity",
                "metadata": {"labels": {"speed": "fast"}},
                "count": 8,
            }
            hardware.become()
            assert (await anext(messages)).instances == ()
            assert (await here.told()).instances == ()
            channel = UnixSockets().dial(str(here.places.registration_socket))
            info = await channel.call(registration.GET_INFO, registration.InfoRequest(), timeout_s=SECONDS)
            await channel.close()
            assert info.supported_versions == (classic.VERSION, capacity.VERSION)

    tell(story)


def test_it_prepares_from_the_allocation_alone():
    """4381-NOD-01, 4381-NOD-07, 4381-NOD-08, 4381-NOD-10, 4381-VND-05, 4381-GEN-08: it has no client; the
    second call is answered as the first, also when the hardware is gone by then."""

    async def story():
        async with kubelet(frobnicator.make(8)) as here:
            given = handle(frobnicator.driver.INSTANCE)
            env = await here.prepare(given=given)
            assert env == ("FROBNICATORS=3", "LEVEL=gold", "SPEED=fast")
            here.work.telling.offered = {}
            assert await here.prepare(given=given) == env
            await here.unprepare()
            await here.unprepare()

    tell(story)


def test_what_is_no_longer_there_is_refused_and_prepared_when_it_is_back():
    """4381-NOD-02, 4381-NOD-03, 4381-PUB-23: the author is not even asked."""

    async def story():
        hardware = Hardware(numeric.counter("f1", 8))
        async with kubelet(NumericDriver(NAME, hardware.capacity, hardware.prepare)) as here:
            await here.told()
            refused = await here.refusal()
            assert refused.code is Code.NOT_FOUND
            assert "instance f0 is not there" in str(refused)
            hardware.become(numeric.counter("f0", 2))
            refused = await here.refusal()
            assert refused.code is Code.FAILED_PRECONDITION
            assert "instance f0 has 2 of count, other claims use 0, and 3 was given" in str(refused)
            assert hardware.prepared == []
            hardware.become(numeric.counter("f0", 3))
            assert await here.prepare() == ("COUNT=3",)

    tell(story)


def test_of_two_claims_that_were_given_more_than_there_is_the_later_waits():
    """4381-NOD-05, 4381-NOD-06, 4381-NOD-10: through a restart of the driver as well; the first keeps what it
    has, and those that wait do not block each other."""

    async def story():
        hardware = Hardware(numeric.counter("f0", 4), numeric.counter("f1", 4))
        driver = NumericDriver(NAME, hardware.capacity, hardware.prepare)
        with tempfile.TemporaryDirectory(prefix="num") as folder:
            async with kubelet(driver, folder) as here:
                await here.told()
                await here.prepare("u1")
                assert "other claims use 3" in str(await here.refusal("u2"))
                assert "other claims use 3" in str(await here.refusal("u3"))
                await here.prepare("u4", handle("f1"))
            async with kubelet(driver, folder) as here:
                await here.told()
                assert "other claims use 3" in str(await here.refusal("u2"))
                assert await here.prepare("u1") == ("COUNT=3",)
                await here.unprepare("u1")
                assert await here.prepare("u2") == ("COUNT=3",)
                assert "other claims use 3" in str(await here.refusal("u3"))

    tell(story)


def test_a_claim_whose_preparing_failed_keeps_nobody_from_what_there_is():
    """4381-NOD-05, 4381-NOD-06: it waits as it did before; who comes meanwhile is served, and then it waits
    for that one."""

    async def story():
        hardware = Hardware(numeric.counter("f0", 4))

        def prepare(claim):
            if claim.uid == "u1" and not hardware.prepared:
                raise RuntimeError("the hardware is busy")
            return hardware.prepare(claim)

        async with kubelet(NumericDriver(NAME, hardware.capacity, prepare)) as here:
            await here.told()
            assert "the hardware is busy" in str(await here.refusal("u1"))
            assert await here.prepare("u2") == ("COUNT=3",)
            assert "other claims use 3" in str(await here.refusal("u1"))
            await here.unprepare("u2")
            assert await here.prepare("u1") == ("COUNT=3",)

    tell(story)


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_allocations_of_every_version_are_understood(version):
    """4381-NOD-13, 4381-SKEW-04: whatever version is published now."""
    for published in ("v1alpha1", "v1beta1"):
        offered = {"f0": numeric.counter("f0", 3, version=published)}
        numeric.require(reserved(handle(version=version)), offered, [], MODELS)
        with pytest.raises(NotUsable):
            numeric.require(reserved(handle(version=version, count=4)), offered, [], MODELS)


def reserved(given):
    return numeric.read(Handed(NAME, "ns", "c", "u", given))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "not a JSON object"),
        ("[]", "not a JSON object"),
        ("[" * 10_000, "not a JSON object"),
        (handle(instance=""), "says no instance"),
        (handle(kind=None), "says no kind"),
        (handle(claimParameters=[]), "claimParameters of its allocation is not an object"),
        (handle(count="3"), "count"),
        (handle(apiVersion="topology.dra.config.k8s.io/v1"), "no longer of topology"),
    ],
)
def test_a_handle_that_is_none_is_refused(given, said):
    with pytest.raises(NotUsable, match=said):
        numeric.require(reserved(given), {"f0": numeric.counter("f0", 8)}, [], MODELS)


def test_every_model_of_ours_is_checked_and_of_others_the_instance():
    """Slots that overlap, zones that are full; what nobody here understands is looked for by its id."""
    cut = {"f0": numeric.partition("f0", 4, {"half": {"slots": 2}})}
    slots = handle(apiVersion="partition.dra.config.k8s.io/v1", start=1, slots=2)
    numeric.require(reserved(slots), cut, [], MODELS)
    beside = handle(apiVersion="partition.dra.config.k8s.io/v1", start=2, slots=2)
    with pytest.raises(NotUsable, match="slot2"):
        numeric.require(reserved(slots), cut, [reserved(beside)], MODELS)
    zoned = {"f0": numeric.topology("f0", {"a": 1, "b": 3})}
    spread = handle(apiVersion="topology.dra.config.k8s.io/v1", zones={"a": 1, "b": 2})
    numeric.require(reserved(spread), zoned, [], MODELS)
    with pytest.raises(NotUsable, match="has 1 of a, other claims use 1"):
        numeric.require(reserved(spread), zoned, [reserved(spread)], MODELS)
    odd = {"f0": numeric.Instance("f0", "nobody/v1", "Odd", {})}
    numeric.require(reserved(handle()), odd, [reserved(handle())], MODELS)


@given(st.lists(st.integers(1, 5), max_size=6), st.integers(0, 10))
def test_together_no_more_is_prepared_than_there_is(counts, there):
    """4381-NOD-06: in whatever order they come."""
    offered, prepared = {"f0": numeric.counter("f0", there)}, []
    for count in counts:
        one = reserved(handle(count=count))
        try:
            numeric.require(one, offered, prepared, MODELS)
        except NotUsable:
            assert sum(other.data["count"] for other in prepared) + count > there
        else:
            prepared.append(one)
    assert sum(one.data["count"] for one in prepared) <= there


def test_names_that_cannot_be_variables_are_refused():
    bad = {"claimParameters": {"spec": {"env": {"A=B": "c"}}}}
    with pytest.raises(NotUsable, match="'A=B'"):
        frobnicator.driver.prepare(reserved(handle(**bad)))
