"""What any runtime does: containers, and what devices add to them. One suite for all of them."""

import asyncio
import json
import os
import signal

import pytest

from allot.nodeagent.runtimes import CannotStart, Limits, Mount, SandboxSpec
from allot.wire import cdi

from ..plugins import until
from .places import PLACES, Place, Typing, printed, tell

pytestmark = pytest.mark.parametrize("where", PLACES)

CARD = "/dev/card"


def edits(**more):
    return cdi.ContainerEdits(**more)


def is_there(path: str) -> bool:
    return os.path.exists(path)


# -- a container ----------------------------------------------------------------------------------


def test_a_container_runs_prints_and_ends(where):
    async def play(place: Place) -> None:
        heard = []
        place.runtime.changed(heard.append)
        over = await place.run("echo out; echo err >&2; exit 3")
        assert (over.exit_code, over.reason) == (3, "")
        assert over.finished_at >= over.started_at
        assert over.id.partition("://")[2]
        assert sorted(printed(over)) == ["stderr F err", "stdout F out"]
        await until(lambda: [one.exit_code for one in heard] == [3])

    tell(where, play)


def test_a_container_sees_its_own_variables_and_none_of_the_agents(where, monkeypatch):
    monkeypatch.setenv("AGENTS_SECRET", "x")

    async def play(place: Place) -> None:
        added = edits(env=("GPU=0", "A=from-device"))
        lines = await place.output("env", env={"A": "b"}, edits=added)
        assert "AGENTS_SECRET" not in {line.removeprefix("stdout F ").partition("=")[0] for line in lines}
        assert {"stdout F A=from-device", "stdout F GPU=0"} <= {*lines}

    tell(where, play)


def test_what_is_asked_for_twice_begins_once(where):
    """RUN2: also while it begins."""

    async def play(place: Place) -> None:
        mark = place.shared / "mark"
        mounts = (Mount(str(place.shared), str(place.shared)),)
        spec = place.script(f"echo x >> {mark}; sleep 60", mounts=mounts)
        first = await asyncio.gather(*(place.runtime.start(spec) for _ in range(3)))
        again = await place.runtime.start(spec)
        await until(lambda: mark.exists() and mark.stat().st_size > 0)
        assert {one.started_at for one in first} == {again.started_at}
        assert mark.read_text() == "x\n"
        assert len(await place.runtime.attempts()) == 1
        await place.runtime.signal(again, signal.SIGKILL)
        assert (await place.end_of(again)).exit_code == 137

    tell(where, play)


def test_a_signal_reaches_the_container(where):
    async def play(place: Place) -> None:
        started = await place.runtime.start(
            place.script("trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.1; done")
        )
        await until(lambda: printed(started) == ["stdout F up"])
        await place.runtime.signal(started, signal.SIGTERM)
        over = await place.end_of(started)
        assert over.exit_code == 7
        assert printed(over)[-1] == "stdout F bye"

    tell(where, play)


DAEMON = "(setsid sh -c 'touch {mark}; while :; do cat /proc/uptime > {mark}; sleep 0.05; done' &); sleep 0.3"
"""A process that has left the session, whose parents are gone, and that says all the time that it lives."""


@pytest.mark.parametrize("way", ["exit", "killed"])
def test_nothing_that_a_container_started_is_left(where, way):
    """RUN3, HERD2: daemons as well, and those of other containers are left alone."""

    async def play(place: Place) -> None:
        marks = {name: place.shared / name for name in ("main", "other")}
        mounts = (Mount(str(place.shared), str(place.shared)),)
        wait = {"main": "" if way == "exit" else "; sleep 300", "other": "; sleep 300"}
        attempts = {
            name: await place.runtime.start(
                place.script(DAEMON.format(mark=mark) + wait[name], name, mounts=mounts)
            )
            for name, mark in marks.items()
        }
        await until(lambda: all(mark.exists() for mark in marks.values()))
        if way == "killed":
            await place.runtime.signal(attempts["main"], signal.SIGKILL)
        await place.end_of(attempts["main"])
        last = {name: mark.read_text() for name, mark in marks.items()}
        await until(lambda: marks["other"].read_text() != last["other"])
        await asyncio.sleep(0.5)
        assert marks["main"].read_text() == last["main"]
        await place.runtime.signal(attempts["other"], signal.SIGKILL)
        await place.end_of(attempts["other"])

    tell(where, play)


def test_what_cannot_be_started_says_why_and_leaves_no_trace(where):
    async def play(place: Place) -> None:
        spec = place.script("true")._replace(command=("no-such-program",))
        with pytest.raises(CannotStart, match=r"no-such-program.*not found") as wrong:
            await place.runtime.start(spec)
        assert wrong.value.reason == "RunContainerError"
        assert await place.runtime.attempts() == []
        assert (await place.run("exit 0")).exit_code == 0, "the same attempt may begin now"

    tell(where, play)


def test_what_is_removed_is_gone(where):
    async def play(place: Place) -> None:
        over = await place.run("true")
        await place.runtime.remove(over.pod_uid)
        assert await place.runtime.attempts() == []

    tell(where, play)


# -- what devices add -----------------------------------------------------------------------------


def test_a_device_node_is_seen_and_can_be_used(where):
    async def play(place: Place) -> None:
        nodes = (cdi.DeviceNode(CARD, place.card), cdi.DeviceNode("/dev/vendor/zero", "/dev/zero"))
        text = f"test -c {CARD} && exec 3<>{CARD} && head -c 2 /dev/vendor/zero | od -An -tx1"
        assert await place.output(text, edits=edits(device_nodes=nodes)) == ["stdout F  00 00"]
        plugin = await place.output(f"exec 3<>{CARD}; echo yes", name="plugin", devices=nodes[:1])
        assert plugin == ["stdout F yes"]

    tell(where, play)


def test_what_was_not_granted_cannot_be_opened(where):
    """N4"""

    async def play(place: Place) -> None:
        number = os.stat(place.card).st_rdev
        made = f"c {os.major(number)} {os.minor(number)}"
        hidden = next(one for one in ("/dev/fuse", "/dev/kvm", "/dev/mem") if is_there(one))
        tries = (
            f"test ! -e {CARD} && test ! -e {hidden}",
            f"! (mknod /dev/mine {made} && exec 3<>/dev/mine)",
            f"! (mknod {place.shared}/mine {made} && exec 3<>{place.shared}/mine)",
            f"! (umount /dev && test -e {hidden})",
            f"! (mount -t devtmpfs none /dev && test -e {hidden})",
            f"test ! -e /proc/1/root{hidden}",
            *([f"! (exec 3<>{place.card})"] if place.keeps_limits else []),
        )
        for at, text in enumerate(tries):
            over = await place.run(f"{text} 2>&1", name=f"try-{at}")
            assert over.exit_code == 0, (text, printed(over))
        everybody = "for one in null zero full random urandom; do head -c 0 /dev/$one || exit 1; done"
        await place.output(f"{everybody}; echo x > /dev/null; test -d /dev/shm; test -L /dev/fd")

    tell(where, play)


def test_a_device_may_be_for_reading_alone(where):
    async def play(place: Place) -> None:
        if not place.keeps_limits:
            assert "rules for devices" in (await place.runtime.abilities()).missing, "it is said"
            return
        node = cdi.DeviceNode(CARD, place.card, permissions="r")
        over = await place.run(f"exec 3<{CARD} && ! (exec 4>{CARD})", edits=edits(device_nodes=(node,)))
        assert over.exit_code == 0, printed(over)

    tell(where, play)


def test_a_node_that_the_machine_has_not_is_made_or_refused(where):
    async def play(place: Place) -> None:
        node = cdi.DeviceNode("/dev/made-up", type="c", major=1, minor=5, file_mode=0o640, uid=7, gid=8)
        spec = place.script("stat -c '%a %u %g %t %T' /dev/made-up", edits=edits(device_nodes=(node,)))
        if place.makes_nodes:
            over = await place.end_of(await place.runtime.start(spec))
            assert printed(over) == ["stdout F 640 7 8 1 5"]
        else:
            with pytest.raises(
                CannotStart, match="device node /dev/made-up: this machine has no /dev/made-up"
            ):
                await place.runtime.start(spec)
            assert await place.runtime.attempts() == []

    tell(where, play)


def test_a_mount_is_seen_wherever_it_is_wanted_and_nothing_is_made_on_the_machine(where):
    async def play(place: Place) -> None:
        (place.shared / "data").mkdir(mode=0o777)
        os.chmod(place.shared / "data", 0o777)
        (place.shared / "data" / "file").write_text("found\n")
        data, file = str(place.shared / "data"), str(place.shared / "data" / "file")
        paths = ("/mounted-here/deep/data", "/etc/mounted-here/file", "/usr/share/mounted-here")
        added = edits(
            mounts=(
                cdi.Mount(data, paths[0], ("ro", "nosuid", "rbind")),
                cdi.Mount(file, paths[1], ("bind",)),
            )
        )
        text = (
            f"cat {paths[0]}/file {paths[1]} && ! touch {paths[0]}/new && touch {paths[2]}/new "
            "&& test -r /etc/passwd && test -d /usr/bin && ls / > /dev/null && echo done"
        )
        lines = await place.output(f"({text}) 2>/dev/null", edits=added, mounts=(Mount(data, paths[2]),))
        assert lines == ["stdout F found", "stdout F found", "stdout F done"]
        assert (place.shared / "data" / "new").exists()
        assert not any(is_there(path) for path in (*paths, "/mounted-here", "/etc/mounted-here"))

    tell(where, play)


def test_a_mount_of_nothing_says_so(where):
    async def play(place: Place) -> None:
        with pytest.raises(CannotStart, match="no-such-directory"):
            await place.runtime.start(place.script("true", mounts=(Mount("/no-such-directory", "/x"),)))
        assert await place.runtime.attempts() == []

    tell(where, play)


HOOK = """#!/bin/sh
cat > {shared}/$1.json
test -e {card} && echo yes > {shared}/$1.sees
exit 0
"""


def test_hooks_run_at_their_moments_and_are_told_how_the_container_stands(where):
    async def play(place: Place) -> None:
        program = place.shared / "hook"
        program.write_text(HOOK.format(shared=place.shared, card=CARD))
        program.chmod(0o755)
        names = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
        hooks = tuple(cdi.Hook(one, str(program), ("hook", one), ("PATH=/usr/bin:/bin",)) for one in names)
        mounts = (Mount(str(place.shared), str(place.shared)),)
        added = edits(hooks=hooks, device_nodes=(cdi.DeviceNode(CARD, place.card),))
        over = await place.run(f"ls {place.shared}", edits=added, mounts=mounts)
        before = {line.removeprefix("stdout F ").partition(".")[0] for line in printed(over)}
        assert {*names[:4]} <= before
        assert "poststop" not in before
        await until((place.shared / "poststop.json").exists)
        states = {one: json.loads((place.shared / f"{one}.json").read_text()) for one in names}
        assert states["createRuntime"]["status"] == "creating"
        assert states["createRuntime"]["pid"] > 1
        assert states["poststart"]["pid"] == states["createRuntime"]["pid"]
        assert states["poststop"]["status"] == "stopped"
        assert (place.shared / "startContainer.sees").exists(), "it runs inside"
        assert not (place.shared / "createRuntime.sees").exists(), "it runs outside"

    tell(where, play)


@pytest.mark.parametrize("name", ["createRuntime", "createContainer", "startContainer"])
def test_a_hook_that_fails_keeps_the_container_from_starting(where, name):
    async def play(place: Place) -> None:
        mark = place.shared / "mark"
        hook = cdi.Hook(name, "/bin/sh", ("sh", "-c", "echo no card in slot 3; exit 4"), ("PATH=/bin",))
        mounts = (Mount(str(place.shared), str(place.shared)),)
        if place.ends_after_hooks and name == "startContainer":
            over = await place.run(f"touch {mark}", edits=edits(hooks=(hook,)), mounts=mounts)
            assert over.exit_code != 0 and not mark.exists()
            return
        with pytest.raises(CannotStart) as wrong:
            await place.runtime.start(
                place.script(f"touch {mark}", edits=edits(hooks=(hook,)), mounts=mounts)
            )
        assert "no card in slot 3" in str(wrong.value)
        assert await place.runtime.attempts() == []
        slow = cdi.Hook(name, "/bin/sleep", ("sleep", "60"), timeout=1)
        with pytest.raises(CannotStart):
            await place.runtime.start(
                place.script(f"touch {mark}", edits=edits(hooks=(slow,)), mounts=mounts)
            )
        assert not mark.exists()

    tell(where, play)


def test_groups_of_devices_are_the_containers_or_it_does_not_start(where):
    async def play(place: Place) -> None:
        spec = place.script("id -G", edits=edits(additional_gids=(4242,)))
        if place.keeps_limits:
            over = await place.end_of(await place.runtime.start(spec))
            assert "4242" in printed(over)[0].split()
        else:
            with pytest.raises(CannotStart, match="group 4242: user 65534 is not in it"):
                await place.runtime.start(spec)

    tell(where, play)


# -- what is its own ------------------------------------------------------------------------------


def test_a_container_has_its_own_processes_hostname_and_user(where):
    async def play(place: Place) -> None:
        pod = SandboxSpec("pod-2", hostname="inside", user=1234, group=1235)
        text = "hostname; id -u; id -g; ls -d /proc/[0-9]* | wc -l; test -d /proc/$$"
        name, user, group, count = await place.output(text, pod=pod)
        own = "inside" if place.makes_networks else os.uname().nodename
        assert (name, user, group) == (f"stdout F {own}", "stdout F 1234", "stdout F 1235")
        assert int(count.split()[-1]) < 8
        assert os.uname().nodename != "inside"

    tell(where, play)


def test_a_container_cannot_do_what_only_the_machine_may(where):
    async def play(place: Place) -> None:
        text = "grep CapBnd /proc/self/status | cut -f2; ! mount -t tmpfs none /mnt 2>/dev/null"
        (line,) = await place.output(text)
        bounding = int(line.split()[-1], 16)
        assert not bounding & (1 << 21), "CAP_SYS_ADMIN"
        assert bounding & (1 << 0), "CAP_CHOWN"
        added = place.script(
            "grep CapBnd /proc/self/status | cut -f2",
            number=1,
            capabilities_added=("NET_ADMIN",),
            capabilities_dropped=("CHOWN",),
        )
        over = await place.end_of(await place.runtime.start(added))
        bounding = int(printed(over)[0].split()[-1], 16)
        assert bounding & (1 << 12) and not bounding & 1

    tell(where, play)


def test_what_may_not_gain_rights_does_not_nor_does_what_somebody_runs_in_it(where):
    async def play(place: Place) -> None:
        text = "grep NoNewPrivs /proc/self/status | cut -f2; {}"
        assert await place.output(text.format("")) == ["stdout F 0"]
        started = await place.runtime.start(
            place.script(text.format("sleep 300"), number=1, may_gain_rights=False)
        )
        await until(lambda: printed(started) == ["stdout F 1"])
        inside = await place.runtime.execute(started, ("grep", "NoNewPrivs", "/proc/self/status"), 20)
        assert inside.output.split() == [b"NoNewPrivs:", b"1"]
        await place.runtime.signal(started, signal.SIGKILL)
        await place.end_of(started)

    tell(where, play)


def test_a_root_that_is_read_only_is_not_written_to(where):
    async def play(place: Place) -> None:
        mounts = (Mount(str(place.shared), "/may/be/written"),)
        text = "! touch /tmp/x && ! touch /x && ! touch /may/x && touch /may/be/written/x && echo > /dev/null"
        over = await place.run(f"({text}) 2>&1", read_only_root=True, mounts=mounts)
        assert over.exit_code == 0, printed(over)
        assert (place.shared / "x").exists()
        assert (await place.run("touch /tmp/allot-trial && rm /tmp/allot-trial", number=1)).exit_code == 0

    tell(where, play)


LISTEN = (
    "import socket; s = socket.create_server(('127.0.0.1', {port})); print('up', flush=True); "
    "c = s.accept()[0]; c.sendall(b'hello from inside'); c.close()"
)


def test_a_pod_may_have_a_network_of_its_own_which_its_containers_share(where, caplog):
    async def play(place: Place) -> None:
        pod, port = SandboxSpec("pod-net", host_network=False), 18733
        if not place.makes_networks:
            machine = "exec tail -n +3 /proc/net/dev"
            assert await place.output(machine, pod=pod), "it has the machine's, and that is said"
            assert "has the machine's network" in caplog.text
            return
        listening = await place.runtime.start(
            place.script(f'exec /usr/bin/python3 -c "{LISTEN.format(port=port)}"', "server", pod=pod)
        )
        await until(lambda: printed(listening) == ["stdout F up"])
        lines = await place.output("tail -n +3 /proc/net/dev | cut -d: -f1", "peer", pod=pod)
        assert [line.split()[-1] for line in lines] == ["lo"]
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", port)
        reader, writer = await place.runtime.connect("pod-net", port)
        assert await reader.read() == b"hello from inside"
        writer.close()
        assert (await place.end_of(listening)).exit_code == 0
        with pytest.raises(OSError):
            await place.runtime.connect("pod-net", port)

    tell(where, play)


def test_a_port_of_a_pod_with_the_machines_network_is_reached(where):
    async def play(place: Place) -> None:
        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"hello")
            writer.close()

        started = await place.runtime.start(place.script("sleep 60"))
        async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            reader, writer = await place.runtime.connect(started.pod_uid, port)
            assert await reader.read() == b"hello"
            writer.close()
        await place.runtime.signal(started, signal.SIGKILL)
        await place.end_of(started)

    tell(where, play)


# -- limits ---------------------------------------------------------------------------------------


def test_who_takes_more_memory_than_it_may_is_killed_and_that_is_said(where):
    async def play(place: Place) -> None:
        limits = Limits(memory_bytes=32 * 1024 * 1024)
        first = "echo 1000 > /proc/self/oom_score_adj"  # whom the kernel kills before the shell
        modest = await place.run(f"({first}; head -c 64m /dev/zero | tail > /dev/null); true", limits=limits)
        assert (modest.exit_code, modest.reason) == (0, ""), "its shell goes on"
        if place.keeps_limits:
            greedy = await place.run("exec tail /dev/zero", name="greedy", limits=limits)
            assert (greedy.exit_code, greedy.reason) == (137, "OOMKilled")

    tell(where, play)


def test_a_container_stays_on_its_cpus(where):
    async def play(place: Place) -> None:
        (allowed,) = await place.output("grep Cpus_allowed_list /proc/self/status", limits=Limits(cpus="0"))
        assert allowed.split()[-1] == "0"

    tell(where, play)


def test_what_a_container_uses_is_known(where):
    async def play(place: Place) -> None:
        busy = await place.runtime.start(place.script("while :; do :; done", "busy"))
        await place.runtime.start(place.script("sleep 60", "idle"))

        async def used() -> dict[str, tuple[int, int]]:
            return {one.name: (one.cpu_ns, one.memory_bytes) for one in await place.runtime.usage()}

        async def is_seen() -> bool:
            found = await used()
            return found["busy"][0] > 200_000_000 > found["idle"][0]

        await until(is_seen)
        assert all(0 < memory < 100 * 1024 * 1024 for _, memory in (await used()).values())
        await place.runtime.signal(busy, signal.SIGKILL)
        await place.end_of(busy)
        assert {*await used()} == {"idle"}

    tell(where, play)


# -- commands inside ------------------------------------------------------------------------------


def test_a_command_runs_inside_with_what_the_container_has(where):
    async def play(place: Place) -> None:
        nodes = (cdi.DeviceNode("/dev/vendor/zero", "/dev/zero"),)
        pod = SandboxSpec("pod-3", hostname="inside", user=1234)
        started = await place.runtime.start(
            place.script("sleep 60", pod=pod, env={"A": "b"}, edits=edits(device_nodes=nodes))
        )
        text = f"echo $A $(hostname) $(id -u); ls /dev/vendor; test -e {CARD}; echo $? >&2; exit 5"
        done = await place.runtime.execute(started, ["sh", "-c", text], 20)
        assert done.exit_code == 5
        own = "inside" if place.makes_networks else os.uname().nodename
        assert sorted(done.output.decode().split("\n")) == ["", "1", f"b {own} 1234", "zero"]
        missing = await place.runtime.execute(started, ["no-such-program"], 20)
        assert missing.exit_code in (126, 127)
        assert b"not found" in missing.output
        await place.runtime.signal(started, signal.SIGKILL)
        await place.end_of(started)
        with pytest.raises(CannotStart):
            await place.runtime.execute(started, ["true"], 20)

    tell(where, play)


def test_a_command_that_takes_too_long_is_ended(where):
    async def play(place: Place) -> None:
        mark = place.shared / "mark"
        mounts = (Mount(str(place.shared), str(place.shared)),)
        started = await place.runtime.start(place.script("sleep 60", mounts=mounts))
        with pytest.raises(TimeoutError):
            text = f"while :; do cat /proc/uptime > {mark}; sleep 0.05; done"
            await place.runtime.execute(started, ["sh", "-c", text], 2)
        await asyncio.sleep(0.5)
        last = mark.read_text()
        await asyncio.sleep(0.5)
        assert mark.read_text() == last
        assert (await place.runtime.attempts())[0].runs
        await place.runtime.signal(started, signal.SIGKILL)
        await place.end_of(started)

    tell(where, play)


def test_input_and_output_of_a_command_are_carried_whole(where):
    async def play(place: Place) -> None:
        started = await place.runtime.start(place.script("sleep 60"))
        block = bytes(range(256)) * 1024
        typing = Typing(says=[block] * 8)
        assert await place.runtime.stream(started, ["sh", "-c", "cat; echo end >&2"], typing) == 0
        assert typing.out == block * 8
        assert typing.err == b"end\n"
        silent = Typing()
        assert await place.runtime.stream(started, ["sh", "-c", "cat; exit 9"], silent) == 9
        await place.runtime.signal(started, signal.SIGKILL)
        await place.end_of(started)

    tell(where, play)


def test_a_command_may_have_a_terminal_with_a_size(where):
    async def play(place: Place) -> None:
        started = await place.runtime.start(place.script("sleep 60"))
        typing = Typing(
            tty=True, says=[b"echo $((6*7)); stty size; tty; exit 3\n"], sizes=[(132, 43)], hangs=True
        )
        assert await place.runtime.stream(started, ["sh"], typing) == 3
        lines = typing.out.decode().replace("\r", "").split("\n")
        assert any(line.endswith("42") for line in lines) and "43 132" in lines, lines
        assert any(line.startswith("/dev/pts/") for line in lines), lines
        assert typing.err == b""
        await place.runtime.signal(started, signal.SIGKILL)
        await place.end_of(started)

    tell(where, play)


@pytest.mark.parametrize("tty", [False, True])
def test_somebody_may_attach_to_a_container_and_type(where, tty):
    async def play(place: Place) -> None:
        text = "while read line; do echo got $line; test $line = end && exit 6; done"
        started = await place.runtime.start(place.script(text, stdin=True, tty=tty))
        typing = Typing(tty=tty, says=[b"one\n", b"end\n"], hangs=True)
        assert await place.runtime.stream(started, None, typing) == 6
        lines = typing.out.decode().replace("\r", "").split("\n")
        assert "got one" in lines and "got end" in lines
        over = await place.end_of(started)
        assert over.exit_code == 6
        assert any("got one" in line for line in printed(over)), "it is in the log too"

    tell(where, play)


def test_input_that_ends_once_ends_for_the_container(where):
    async def play(place: Place) -> None:
        started = await place.runtime.start(place.script("cat; exit 2", stdin=True, stdin_once=True))
        typing = Typing(says=[b"all of it\n"])
        assert await place.runtime.stream(started, None, typing) == 2
        assert typing.out == b"all of it\n"

    tell(where, play)


def test_whoever_leaves_a_terminal_takes_its_command_along(where):
    async def play(place: Place) -> None:
        mark = place.shared / "mark"
        mounts = (Mount(str(place.shared), str(place.shared)),)
        started = await place.runtime.start(place.script("sleep 60", mounts=mounts))
        text = f"while :; do cat /proc/uptime > {mark}; sleep 0.05; done"
        leaving = asyncio.create_task(
            place.runtime.stream(started, ["sh", "-c", text], Typing(tty=True, says=[], hangs=True))
        )
        await until(mark.exists)
        leaving.cancel()
        await asyncio.wait((leaving,))
        if not place.ends_commands:
            assert (await place.runtime.attempts())[0].runs
            return
        await asyncio.sleep(0.5)
        last = mark.read_text()
        await asyncio.sleep(0.5)
        assert mark.read_text() == last
        await place.runtime.signal(started, signal.SIGKILL)
        await place.end_of(started)

    tell(where, play)
