"""What a channel promises, over real unix sockets and from task to task: the same stories."""

import asyncio
import contextvars
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from allot.wire import (
    CallFailed,
    Code,
    Fault,
    LocalSockets,
    Sockets,
    Unary,
    UnixSockets,
    dra,
    health,
    registration,
)

GET_INFO, INFO = (
    registration.GET_INFO,
    registration.PluginInfo("DRAPlugin", "gpu.example.com", "/e", ("v1.DRAPlugin",)),
)


@pytest.fixture(params=["unix", "local"])
def sockets(request: pytest.FixtureRequest) -> Iterator[Sockets]:
    yield UnixSockets() if request.param == "unix" else LocalSockets()


async def info(request: registration.InfoRequest) -> registration.PluginInfo:
    return INFO


def test_a_call_is_answered(sockets, tmp_path):
    async def story():
        server = await sockets.serve(f"{tmp_path}/a.sock", [GET_INFO.by(info)])
        channel = sockets.dial(server.path)
        answer = await channel.call(GET_INFO, registration.InfoRequest(), timeout_s=20)
        await channel.close()
        await server.close()
        return answer

    assert asyncio.run(story()) == INFO


def test_what_a_handler_refuses_is_heard_with_its_code_and_reason(sockets, tmp_path):
    async def refuse(request):
        raise CallFailed(Code.FAILED_PRECONDITION, "not yet")

    async def break_(request):
        raise ZeroDivisionError("by zero")

    async def story(deed):
        server = await sockets.serve(f"{tmp_path}/a.sock", [GET_INFO.by(deed)])
        channel = sockets.dial(server.path)
        with pytest.raises(CallFailed) as failed:
            await channel.call(GET_INFO, registration.InfoRequest(), timeout_s=20)
        await channel.close()
        await server.close()
        return failed.value.code, failed.value.reason

    assert asyncio.run(story(refuse)) == (Code.FAILED_PRECONDITION, "not yet")
    assert asyncio.run(story(break_)) == (Code.UNKNOWN, "ZeroDivisionError: by zero")


def test_an_unknown_method_a_late_answer_and_nobody_there(sockets, tmp_path):
    """CALL1."""

    async def never(request):
        await asyncio.Event().wait()

    async def story():
        server = await sockets.serve(f"{tmp_path}/a.sock", [GET_INFO.by(never)])
        channel, nobody = sockets.dial(server.path), sockets.dial(f"{tmp_path}/b.sock")
        codes = []
        for one, method, request in (
            (channel, registration.NOTIFY, registration.RegistrationStatus()),
            (channel, GET_INFO, registration.InfoRequest()),
            (nobody, GET_INFO, registration.InfoRequest()),
        ):
            with pytest.raises(CallFailed) as failed:
                await one.call(method, request, timeout_s=0.5)
            codes.append(failed.value.code)
        await channel.close()
        await nobody.close()
        await server.close()
        return codes

    assert asyncio.run(story()) == [Code.UNIMPLEMENTED, Code.DEADLINE_EXCEEDED, Code.UNAVAILABLE]


def test_junk_in_place_of_a_message_fails_that_call_only(sockets, tmp_path):
    """CALL2: both directions. `Unary` with other messages makes bytes that the peer cannot read."""
    name = GET_INFO.service, GET_INFO.name
    number = Unary(*name, health.DeviceHealth, registration.PluginInfo)
    backwards = Unary(*name, registration.InfoRequest, health.NodeWatchResourcesResponse)

    async def status(request):
        return registration.RegistrationStatusResponse()

    async def story():
        handlers = [
            Unary(*name, registration.PluginInfo, registration.PluginInfo).by(info),
            registration.NOTIFY.by(status),
        ]
        server = await sockets.serve(f"{tmp_path}/a.sock", handlers)
        channel = sockets.dial(server.path)
        codes = []
        for method, request in (
            (number, health.DeviceHealth(health=health.Health.HEALTHY)),
            (backwards, registration.InfoRequest()),
        ):
            with pytest.raises(CallFailed) as failed:
                await channel.call(method, request, timeout_s=20)
            codes.append((failed.value.code, failed.value.reason))
        await channel.call(registration.NOTIFY, registration.RegistrationStatus(), timeout_s=20)
        await channel.close()
        await server.close()
        return codes

    asked, told = asyncio.run(story())
    assert asked == (Code.INTERNAL, "PluginInfo: name has a number where text or a message belongs")
    assert told[0] == Code.INTERNAL and "DeviceHealth" in told[1]


def test_a_channel_finds_the_server_that_comes_back(sockets, tmp_path):
    """CALL3, and `connected` follows."""

    async def story():
        path = f"{tmp_path}/a.sock"
        channel = sockets.dial(path)
        seen = [channel.connected]
        for _ in range(2):
            server = await sockets.serve(path, [GET_INFO.by(info)])
            seen.append(await asyncio.wait_for(channel.connection(other_than=False), 30))
            assert await channel.call(GET_INFO, registration.InfoRequest(), timeout_s=20) == INFO
            await server.close()
            seen.append(await asyncio.wait_for(channel.connection(other_than=True), 30))
        await channel.close()
        return seen

    assert asyncio.run(story()) == [False, True, False, True, False]


def test_a_stream_tells_until_either_side_ends_it(sockets, tmp_path):
    ended = []

    async def watch(request):
        try:
            for number in range(3):
                yield health.NodeWatchResourcesResponse((health.DeviceHealth(last_updated_time=number),))
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def story():
        server = await sockets.serve(f"{tmp_path}/a.sock", health.served(watch))
        channel = sockets.dial(server.path)
        times = []
        for version in health.VERSIONS:
            async with aclosing(channel.stream(version.watch, health.NodeWatchResourcesRequest())) as reports:
                async for report in reports:
                    times.append(report.devices[0].last_updated_time)
                    if len(times) % 3 == 0:
                        break
        for _ in range(200):
            if len(ended) == 2:
                break
            await asyncio.sleep(0.05)
        watching = asyncio.ensure_future(_read_all(channel))
        await asyncio.sleep(0.2)
        await server.close()
        with pytest.raises(CallFailed) as failed:
            await asyncio.wait_for(watching, 30)
        await channel.close()
        return times, failed.value.code

    times, code = asyncio.run(story())
    assert times == [0, 1, 2, 0, 1, 2]
    assert code in (Code.UNAVAILABLE, Code.CANCELLED)
    assert len(ended) == 3


async def _read_all(channel):
    async for _ in channel.stream(health.V1.watch, health.NodeWatchResourcesRequest()):
        pass


def test_two_servers_do_not_share_a_path(sockets, tmp_path):
    async def story():
        server = await sockets.serve(f"{tmp_path}/a.sock", [GET_INFO.by(info)])
        with pytest.raises(OSError, match="another process is listening there"):
            await sockets.serve(f"{tmp_path}/a.sock", [GET_INFO.by(info)])
        await server.close()

    asyncio.run(story())


def test_sockets_are_found_and_told_apart_from_those_before_them(sockets, tmp_path):
    async def story():
        assert sockets.found(f"{tmp_path}/none") == {}
        seen = []
        for _ in range(2):
            server = await sockets.serve(f"{tmp_path}/a.sock", [GET_INFO.by(info)])
            seen.append(dict(sockets.found(str(tmp_path))))
            await server.close()
        seen.append(dict(sockets.found(str(tmp_path))))
        return seen

    first, second, after = asyncio.run(story())
    assert set(first) == set(second) == {"a.sock"}
    assert first != second
    assert after == {}


def test_sockets_are_found_below_a_directory_and_hidden_ones_are_not(sockets, tmp_path):
    """A kubelet watches its registration directory with everything below it."""

    async def story():
        paths = [
            "a.sock",
            "vendor/b.sock",
            "vendor/deep/c.sock",
            ".d.sock",
            ".old/e.sock",
            "vendor/.old/f.sock",
        ]
        servers = [await sockets.serve(f"{tmp_path}/{path}", [GET_INFO.by(info)]) for path in paths]
        found = dict(sockets.found(str(tmp_path)))
        for server in servers:
            await server.close()
        return found

    assert set(asyncio.run(story())) == {"a.sock", "vendor/b.sock", "vendor/deep/c.sock"}


def test_version_one_beta_has_no_share_ids(sockets, tmp_path):
    async def prepare(request):
        device = dra.Device(("r",), "p", "d", (), share_id="s")
        return dra.NodePrepareResourcesResponse(
            {claim.uid: dra.NodePrepareResourceResponse((device,)) for claim in request.claims}
        )

    async def unprepare(request):
        return dra.NodeUnprepareResourcesResponse(
            {claim.uid: dra.NodeUnprepareResourceResponse("no") for claim in request.claims}
        )

    async def story():
        server = await sockets.serve(f"{tmp_path}/a.sock", dra.served(prepare, unprepare))
        channel = sockets.dial(server.path)
        shares = []
        for version in dra.VERSIONS:
            answers = await dra.prepare(channel, version, [dra.Claim("ns", "u", "c")], timeout_s=20)
            shares.append(answers["u"].devices[0].share_id)
            refused = await dra.unprepare(channel, version, [dra.Claim("ns", "u", "c")], timeout_s=20)
            assert refused["u"].error == "no"
        await channel.close()
        await server.close()
        return shares

    assert asyncio.run(story()) == ["s", None]


def test_a_channel_that_closes_fails_its_calls_and_cancels_nobody(tmp_path):
    async def never(request):
        await asyncio.Event().wait()

    async def story():
        sockets = UnixSockets()
        server = await sockets.serve(f"{tmp_path}/a.sock", [GET_INFO.by(never)])
        channel = sockets.dial(server.path)
        call = asyncio.ensure_future(channel.call(GET_INFO, registration.InfoRequest(), timeout_s=60))
        await channel.connection(other_than=False)
        await asyncio.sleep(0.1)
        await channel.close()
        for waiting in (call, channel.call(GET_INFO, registration.InfoRequest(), timeout_s=60)):
            with pytest.raises(CallFailed, match=r"CANCELLED: the channel to .* is closed"):
                await asyncio.wait_for(waiting, 30)
        await server.close()

    asyncio.run(story())


# -- of unix sockets alone


def test_a_socket_that_a_killed_process_left_is_replaced(tmp_path):
    path = tmp_path / "a.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))

    async def story():
        server = await UnixSockets().serve(str(path), [GET_INFO.by(info)])
        channel = UnixSockets().dial(str(path))
        answer = await channel.call(GET_INFO, registration.InfoRequest(), timeout_s=20)
        await channel.close()
        await server.close()
        return answer

    assert asyncio.run(story()) == INFO


def test_what_is_no_socket_hides_none(tmp_path):
    """Links in a circle and through a file, a pipe, and directories deeper than Python recurses."""
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "file").write_text("")
    (tmp_path / "through").symlink_to("file/nothing")
    os.mkfifo(tmp_path / "pipe")
    deep = [os.open(tmp_path, os.O_RDONLY)]
    for _ in range(1200):
        os.mkdir("d", dir_fd=deep[-1])
        deep.append(os.open("d", os.O_RDONLY, dir_fd=deep[-1]))
        os.close(deep[-2])

    async def story():
        server = await UnixSockets().serve(f"{tmp_path}/a.sock", [GET_INFO.by(info)])
        found = UnixSockets().found(str(tmp_path))
        await server.close()
        return set(found)

    try:
        assert asyncio.run(story()) == {"a.sock"}
    finally:
        os.close(deep[-1])
        subprocess.run(["rm", "-r", tmp_path / "d"], check=True)


@pytest.mark.parametrize("name", [b"\xff", b"a%41", b"a?b#c", b"a\nb", "é ü".encode(), b"~:@;=[]'\"&+$!*()"])
def test_a_socket_may_have_any_name(tmp_path, name):
    path = f"{tmp_path}/{os.fsdecode(name)}"

    async def story():
        server = await UnixSockets().serve(path, [GET_INFO.by(info)])
        channel = UnixSockets().dial(path)
        try:
            await channel.call(GET_INFO, registration.InfoRequest(), timeout_s=20)
            return set(UnixSockets().found(str(tmp_path)))
        finally:
            await channel.close()
            await server.close()

    assert asyncio.run(story()) == {os.fsdecode(name)}


@pytest.mark.parametrize("path", ["/run/a.sock,/run/b.sock", "/run/a\0.sock"])
def test_a_path_that_grpc_would_take_for_another_is_refused(path):
    with pytest.raises(OSError, match="a comma or a zero byte"):
        UnixSockets().dial(path)


def test_what_is_no_socket_is_left_alone(tmp_path):
    path = tmp_path / "a.sock"
    path.write_text("mine")

    async def story():
        server = await UnixSockets().serve(str(path), [])
        await server.close()

    with pytest.raises(OSError, match="something that is not a socket is there"):
        asyncio.run(story())
    assert path.read_text() == "mine"
    assert UnixSockets().found(str(tmp_path)) == {}


def test_a_path_that_is_too_long_is_named_with_the_limit(tmp_path):
    path = str(Path(tmp_path, "a" * 120))
    with pytest.raises(OSError, match="the system takes 107"):
        asyncio.run(UnixSockets().serve(path, []))
    with pytest.raises(OSError, match="the system takes 107"):
        UnixSockets().dial(path)


# -- of calls from task to task alone


@pytest.mark.parametrize(
    ("fault", "code", "done"),
    [
        (Fault(refused=True), Code.UNAVAILABLE, 0),
        (Fault(unanswered=True), Code.DEADLINE_EXCEEDED, 1),
        (Fault(cut=True), Code.UNAVAILABLE, 1),
        (Fault(late_s=60), Code.DEADLINE_EXCEEDED, 0),
        (Fault(late_s=0.01), Code.OK, 1),
    ],
)
def test_a_fault_decides_what_arrives_and_what_is_heard(fault, code, done):
    deeds = []

    async def deed(request):
        deeds.append(request)
        return INFO

    async def story():
        sockets = LocalSockets(faults=lambda path, method: fault)
        await sockets.serve("/a.sock", [GET_INFO.by(deed)])
        try:
            await sockets.dial("/a.sock").call(GET_INFO, registration.InfoRequest(), timeout_s=0.2)
        except CallFailed as failed:
            return failed.code
        return Code.OK

    assert (asyncio.run(story()), len(deeds)) == (code, done)


def test_a_server_that_closes_gives_calls_under_way_their_grace():
    async def slow(request):
        await asyncio.sleep(0.1)
        return INFO

    async def story(grace_s):
        sockets = LocalSockets()
        server = await sockets.serve("/a.sock", [GET_INFO.by(slow)])
        call = asyncio.ensure_future(
            sockets.dial("/a.sock").call(GET_INFO, registration.InfoRequest(), timeout_s=20)
        )
        await asyncio.sleep(0.01)
        await server.close(grace_s)
        return await call

    assert asyncio.run(story(grace_s=20)) == INFO
    with pytest.raises(CallFailed, match="UNAVAILABLE"):
        asyncio.run(story(grace_s=0))


def test_a_late_call_is_carried_out_when_nobody_waits_any_more_and_before_those_after_it():
    """A process that gets no time reads what was sent to it later, in the order in which it came."""
    faults = iter([Fault(late_s=0.3)])
    done = []

    async def deed(status):
        done.append(status.error)
        return registration.RegistrationStatusResponse()

    async def story():
        sockets = LocalSockets(faults=lambda path, method: next(faults, Fault()))
        await sockets.serve("/a.sock", [registration.NOTIFY.by(deed)])
        channel = sockets.dial("/a.sock")

        async def call(word, timeout_s):
            status = registration.RegistrationStatus(False, word)
            await channel.call(registration.NOTIFY, status, timeout_s=timeout_s)

        with pytest.raises(CallFailed) as failed:
            await call("first", 0.05)
        assert failed.value.code is Code.DEADLINE_EXCEEDED
        assert done == []
        await asyncio.gather(*(call(word, 20) for word in ("second", "third", "fourth")))

    asyncio.run(story())
    assert done == ["first", "second", "third", "fourth"]


def test_nobody_overtakes_a_late_call_because_one_between_them_was_given_up():
    faults = iter([Fault(late_s=0.3)])
    done = []

    async def deed(status):
        done.append(status.error)
        return registration.RegistrationStatusResponse()

    async def story():
        sockets = LocalSockets(faults=lambda path, method: next(faults, Fault()))
        await sockets.serve("/a.sock", [registration.NOTIFY.by(deed)])
        channel = sockets.dial("/a.sock")

        async def call(word, timeout_s=20.0):
            status = registration.RegistrationStatus(False, word)
            await channel.call(registration.NOTIFY, status, timeout_s=timeout_s)

        late = asyncio.create_task(call("late"))
        given_up = asyncio.create_task(call("given up"))
        await asyncio.sleep(0.01)
        given_up.cancel()
        await asyncio.gather(late, call("after"))

    asyncio.run(story())
    assert done == ["late", "after"]


def test_a_killed_process_answers_nobody_and_leaves_its_socket_behind():
    async def story():
        began = asyncio.Event()

        async def never(request):
            began.set()
            await asyncio.Event().wait()

        sockets = LocalSockets()
        process, channel = sockets.process(), sockets.dial("/d/a.sock")
        await process.serve("/d/a.sock", [GET_INFO.by(never)])
        call = asyncio.ensure_future(channel.call(GET_INFO, registration.InfoRequest(), timeout_s=20))
        await began.wait()
        before = sockets.found("/d")
        process.kill()
        with pytest.raises(CallFailed) as failed:
            await call
        assert failed.value.code is Code.UNAVAILABLE and not channel.connected
        assert sockets.found("/d") == before == {"a.sock": 0}
        with pytest.raises(asyncio.CancelledError):
            await process.dial("/d/b.sock").call(GET_INFO, registration.InfoRequest(), timeout_s=20)
        await sockets.serve("/d/a.sock", [GET_INFO.by(info)])
        assert sockets.found("/d") != before and channel.connected
        return await channel.call(GET_INFO, registration.InfoRequest(), timeout_s=20)

    assert asyncio.run(story()) == INFO


def test_a_call_is_carried_out_in_the_context_of_who_serves():
    owner = contextvars.ContextVar("owner", default="")
    heard = []

    async def deed(request):
        heard.append(owner.get())
        return INFO

    async def story():
        sockets = LocalSockets()
        owner.set("driver")
        await sockets.serve("/a.sock", [GET_INFO.by(deed)])
        owner.set("agent")
        await sockets.dial("/a.sock").call(GET_INFO, registration.InfoRequest(), timeout_s=20)

    asyncio.run(story())
    assert heard == ["driver"]
