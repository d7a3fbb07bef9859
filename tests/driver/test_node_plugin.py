"""The node half of a driver of classic claims: real sockets and files, and a kubelet's calls."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from allot.base import Metrics
from allot.driver import Edits, Node, NodePlugin, Places, Surroundings, UnknownResource, serving
from allot.wire import CallFailed, Code, UnixSockets, cdi, classic, registration
from driver.world import NODE, tell, until

NAME = "mock.example.com"


class Kubelet:
    def __init__(self, world, channel):
        self.world, self.channel = world, channel

    async def prepare(self, uid="u1", handle="h1"):
        request = classic.NodePrepareResourceRequest("ns", uid, "c", handle)
        return (await self.channel.call(classic.PREPARE, request, timeout_s=60)).cdi_devices

    async def unprepare(self, uid="u1", devices=()):
        request = classic.NodeUnprepareResourceRequest("ns", uid, "c", devices)
        await self.channel.call(classic.UNPREPARE, request, timeout_s=60)

    def env(self, names):
        return cdi.catalogue([self.world.places.cdi]).edits(names).env


@asynccontextmanager
async def kubelet(world, prepare, boot="boot-1", metrics=None, **more):
    plugin = NodePlugin(NAME, prepare, **more)
    places = Places(NAME, world.places.root, world.places.cdi)
    around = Surroundings(world.server.client(), boot=boot, metrics=metrics or Metrics())
    async with serving(plugin, Node(NODE), places, around):
        channel = UnixSockets().dial(str(places.service_socket))
        try:
            yield Kubelet(world, channel)
        finally:
            await channel.close()


def told(claim):
    return Edits(env=(f"HANDLE={claim.handle}",))


def test_it_registers_as_the_specification_has_it():
    """3063-GRPC-01, 3063-GRPC-02: its type tells it from other plugins, and its socket is named."""

    async def story(world):
        async with kubelet(world, told):
            places = Places(NAME, world.places.root, world.places.cdi)
            channel = UnixSockets().dial(str(places.registration_socket))
            info = await channel.call(registration.GET_INFO, registration.InfoRequest(), timeout_s=60)
            await channel.close()
            assert (info.type, info.name) == ("ResourcePlugin", NAME)
            assert info.endpoint == str(places.service_socket)
            assert info.supported_versions == ("v1alpha1.Node",)

    tell(story)


def test_what_was_prepared_is_there_and_answered_alike_when_asked_again():
    """3063-GRPC-05, 3063-GRPC-07, 3063-GRPC-09, 3063-ALLOC-01: names are qualified, files are there, and the
    handle arrives byte for byte."""
    calls = []

    def prepare(claim):
        calls.append(claim)
        return told(claim)

    async def story(world):
        handle = '{"ü": "\\u0000 =,"}'
        async with kubelet(world, prepare) as here:
            names = await here.prepare(handle=handle)
            assert names == (f"{NAME}/claim=u1-0-resource",)
            assert here.env(names) == (f"HANDLE={handle}",)
            (file,) = [name for name in world.files() if name.startswith(NAME)]
            (world.places.cdi / file).unlink()
            assert await here.prepare(handle=handle) == names
            assert here.env(names) == (f"HANDLE={handle}",)
        async with kubelet(world, prepare) as here:  # a process that begins anew
            assert await here.prepare(handle=handle) == names
        assert len(calls) == 1
        assert calls[0] == (NAME, "ns", "c", "u1", handle)
        async with kubelet(world, prepare, boot="boot-2") as here:
            await here.prepare(handle=handle)
        assert len(calls) == 2

    tell(story)


def test_unprepare_undoes_it_and_may_be_repeated():
    """3063-GRPC-14, 3063-GRPC-18: the author hears of it once, with the handle that it once gave."""
    undone = []

    async def story(world):
        async with kubelet(world, told, unprepare=undone.append) as here:
            names = await here.prepare()
            await here.unprepare(devices=names)
            assert not [name for name in world.files() if name.startswith(NAME)]
            await here.unprepare(devices=names)
            await here.unprepare("never-prepared")
        assert [(one.uid, one.handle) for one in undone] == [("u1", "h1")]

    tell(story)


def test_what_the_author_could_not_undo_is_known_until_it_is_undone():
    """KIT2: also to a process that begins anew; the containers' files stay as long."""
    undone = []

    def unprepare(entry):
        if not undone:
            undone.append("failed")
            raise OSError("busy")
        undone.append((entry.uid, entry.handle))

    async def story(world):
        async with kubelet(world, told, unprepare=unprepare) as here:
            names = await here.prepare()
            with pytest.raises(CallFailed, match="busy"):
                await here.unprepare()
            assert here.env(names) == ("HANDLE=h1",)
        async with kubelet(world, told, unprepare=unprepare) as here:
            await here.unprepare()
        assert undone == ["failed", ("u1", "h1")]

    tell(story)


@pytest.mark.parametrize(
    ("problem", "code"),
    [(UnknownResource("no such card"), Code.NOT_FOUND), (OSError("stuck"), Code.INTERNAL)],
)
def test_what_fails_is_a_status_with_the_reason(problem, code):
    """3063-GRPC-12, 3063-GRPC-13, 3063-GRPC-10: and the next call begins anew."""
    problems = [problem]

    def prepare(claim):
        if problems:
            raise problems.pop()
        return told(claim)

    async def story(world):
        async with kubelet(world, prepare) as here:
            with pytest.raises(CallFailed, match=str(problem)) as failed:
                await here.prepare()
            assert failed.value.code is code
            assert here.env(await here.prepare()) == ("HANDLE=h1",)

    tell(story)


def test_what_was_begun_can_be_undone():
    """3063-GRPC-10, 3063-GRPC-15: whatever became of a prepare, unprepare is possible."""
    undone = []

    def prepare(claim):
        raise OSError("half way")

    async def story(world):
        async with kubelet(world, prepare, unprepare=undone.append) as here:
            with pytest.raises(CallFailed):
                await here.prepare()
        async with kubelet(world, prepare, unprepare=undone.append) as here:
            await here.unprepare()
        assert [(one.uid, one.handle, one.boot) for one in undone] == [("u1", "h1", "")]

    tell(story)


def test_calls_for_one_claim_at_a_time_are_not_mixed_up():
    """KIT2: whoever asks meanwhile waits, and hears what came of it."""
    running = []

    async def prepare(claim):
        running.append(claim.uid)
        assert len(running) == 1
        await asyncio.sleep(0.05)
        running.remove(claim.uid)
        return told(claim)

    async def story(world):
        async with kubelet(world, prepare) as here:
            answers = await asyncio.gather(*(here.prepare(uid) for uid in ("u1", "u1", "u2", "u1")))
            assert answers[0] == answers[1] == answers[3] != answers[2]

    tell(story)


def test_what_fails_when_nobody_waits_any_more_is_in_the_log(caplog):
    begins, failed = asyncio.Event(), asyncio.Event()

    async def prepare(claim):
        begins.set()
        await asyncio.sleep(0.2)
        failed.set()
        raise OSError("the device did not answer")

    async def story(world):
        async with kubelet(world, prepare) as here:
            asked = asyncio.create_task(here.prepare())
            await begins.wait()
            asked.cancel()
            await failed.wait()

    tell(story)
    assert (
        "prepare failed, and nobody waits for its answer any more: the device did not answer" in caplog.text
    )
    assert "never retrieved" not in caplog.text


def test_a_driver_that_ends_is_found_no_more_and_still_ends_what_it_was_called_for():
    """Its registration goes first; a call that is under way gets its answer."""
    begun, may_go_on, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def prepare(claim):
        begun.set()
        await may_go_on.wait()
        return told(claim)

    async def story(world):
        places = Places(NAME, world.places.root, world.places.cdi)

        async def live():
            around = Surroundings(world.server.client())
            async with serving(NodePlugin(NAME, prepare), Node(NODE), places, around):
                await may_end.wait()

        async def is_announced():
            return places.registration_socket.exists()

        async def is_not():
            return not places.registration_socket.exists()

        living = asyncio.create_task(live())
        await until(is_announced)
        channel = UnixSockets().dial(str(places.service_socket))
        called = asyncio.create_task(Kubelet(world, channel).prepare())
        await begun.wait()
        may_end.set()
        await until(is_not, within_s=8)  # less than calls are waited for
        may_go_on.set()
        assert await called == (f"{NAME}/claim=u1-0-resource",)
        await living
        await channel.close()

    tell(story)


def test_a_claim_that_needs_nothing_in_containers_is_a_success():
    """3063-GRPC-05: an empty list."""

    async def story(world):
        async with kubelet(world, lambda claim: Edits()) as here:
            assert await here.prepare() == ()

    tell(story)


def test_to_prepare_is_to_write_one_small_file_and_to_unprepare_is_to_delete_it():
    """3063-MON-07: also with a hundred claims there already."""

    async def story(world):
        edits = Edits(env=tuple(f"V{at}={at:040}" for at in range(40)))
        async with kubelet(world, lambda claim: edits) as here:
            for number in range(100):
                await here.prepare(f"other-{number}")
            before = {one.name: one.stat().st_mtime_ns for one in world.places.cdi.iterdir()}
            names = await here.prepare("u1")
            after = {one.name: one.stat().st_mtime_ns for one in world.places.cdi.iterdir()}
            (written,) = after.keys() - before.keys()
            assert (world.places.cdi / written).stat().st_size < 3 * 1024
            assert {name: after[name] for name in before} == before, "the others are left alone"
            await here.unprepare("u1", names)
            assert {one.name for one in world.places.cdi.iterdir()} == before.keys()

    tell(story)
