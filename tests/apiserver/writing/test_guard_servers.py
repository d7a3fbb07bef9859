"""D2 with two servers on one store, one of which has not yet heard of a slice."""

import asyncio
import json

import pytest

from allot.api import Request
from allot.apiserver import ApiServer, identities
from allot.store import Delete, MemoryStore

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/default/resourceclaims"
SLICES = f"{GROUP}/resourceslices"
DRIVER = "gpu.example.com"


class Held:
    """A watch whose events wait until the gate is open."""

    def __init__(self, watch, gate):
        self._watch, self._gate = watch, gate
        self._waiting = None  # the revision before the events that wait

    @property
    def progress(self):
        return self._watch.progress if self._waiting is None else self._waiting

    def hurry(self):
        self._watch.hurry()

    def __aiter__(self):
        return self

    async def __anext__(self):
        events = await self._watch.__anext__()
        self._waiting = events[0].revision - 1
        await self._gate.wait()
        self._waiting = None
        return events

    def close(self):
        self._watch.close()


class Behind:
    """A store whose slices are heard of late."""

    def __init__(self, store):
        self._store = store
        self.gate = asyncio.Event()
        self.gate.set()

    def __getattr__(self, name):
        return getattr(self._store, name)

    def watch(self, prefix, after):
        watch = self._store.watch(prefix, after)
        return Held(watch, self.gate) if "resourceslices" in prefix else watch


async def ask(server, method, path, body=None):
    raw = b"" if body is None else json.dumps(body).encode()
    request = Request(method, path, {}, {"content-type": "application/json"}, raw)
    response = await server.handle(request, identities.ADMIN)
    return response.status, json.loads(response.body)


def slice_of(memory, generation=1):
    device = {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": {"memory": {"value": memory}}}
    pool = {"name": "node-1", "generation": generation, "resourceSliceCount": 1}
    return {
        "metadata": {"name": "s"},
        "spec": {"driver": DRIVER, "nodeName": "node-1", "pool": pool, "devices": [device]},
    }


async def claim(server, name, memory):
    """A claim, and the status that takes a share of the device for it."""
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
    spec = {"devices": {"requests": [request]}}
    status, made = await ask(server, "POST", CLAIMS, {"metadata": {"name": name}, "spec": spec})
    assert status == 201, made
    result = {
        "request": "gpu",
        "driver": DRIVER,
        "pool": "node-1",
        "device": "gpu-0",
        "shareID": "00000000-0000-0000-0000-000000000000",
        "consumedCapacity": {"memory": memory},
    }
    return {**made, "status": {"allocation": {"devices": {"results": [result]}}}}


async def two_servers(story):
    store = MemoryStore()
    late = Behind(store)
    ahead, behind = ApiServer(store), ApiServer(late)
    await ahead.start()
    await behind.start()
    try:
        await asyncio.wait_for(story(ahead, behind, late.gate), 60)
    finally:
        late.gate.set()
        await behind.close()
        await ahead.close()
        await store.close()


@pytest.mark.parametrize(
    "change, expected",
    [
        (lambda server: ask(server, "PUT", f"{SLICES}/s", slice_of("40Gi", 2)), 409),
        (lambda server: ask(server, "PUT", f"{SLICES}/s", slice_of("90Gi", 2)), 200),
    ],
    ids=["shrunk", "grown"],
)
@pytest.mark.parametrize("memory", ["60Gi", "85Gi"])
def test_a_server_that_is_behind_decides_by_the_slices_of_the_moment(change, expected, memory):
    """Neither is more given than there is, nor is anybody refused what has become free."""

    async def story(ahead, behind, gate):
        assert (await ask(ahead, "POST", SLICES, slice_of("80Gi")))[0] == 201
        wanted = await claim(behind, "first", memory)
        gate.clear()
        assert (await change(ahead))[0] == 200
        answer = asyncio.create_task(ask(behind, "PUT", f"{CLAIMS}/first/status", wanted))
        done, _ = await asyncio.wait([answer], timeout=0.3)
        assert not done, "it cannot know yet"
        gate.set()
        status, body = await answer
        assert status == expected, body

    asyncio.run(two_servers(story))


def test_a_slice_that_was_deleted_before_the_server_started_holds_nobody_up():
    """The mark of a pool is newer than every slice that a server finds at its start."""

    async def story(ahead, behind, gate):
        assert (await ask(ahead, "POST", SLICES, slice_of("80Gi")))[0] == 201
        assert (await ask(ahead, "DELETE", f"{SLICES}/s"))[0] == 200
        late = ApiServer(ahead.store)
        await late.start()
        wanted = await claim(late, "first", "1Gi")
        assert (await ask(late, "PUT", f"{CLAIMS}/first/status", wanted))[0] == 200
        await late.close()

    asyncio.run(two_servers(story))


def test_slices_of_an_earlier_version_have_no_mark_and_count_all_the_same():
    async def story(ahead, behind, gate):
        assert (await ask(ahead, "POST", SLICES, slice_of("80Gi")))[0] == 201
        for entry in (await ahead.store.range("/pools/")).entries:
            await ahead.store.transact([], [Delete(entry.key)])
        late = ApiServer(ahead.store)
        await late.start()
        wanted = await claim(late, "first", "81Gi")
        assert (await ask(late, "PUT", f"{CLAIMS}/first/status", wanted))[0] == 409
        wanted = await claim(late, "second", "80Gi")
        assert (await ask(late, "PUT", f"{CLAIMS}/second/status", wanted))[0] == 200
        await late.close()

    asyncio.run(two_servers(story))
