"""Containers as processes: a shepherd that outlives its agents, and what it writes down."""

import asyncio
import json
import os
import resource
import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from allot.drivers.cpu import pinning
from allot.nodeagent.runtimes import (
    Attempt,
    CannotStart,
    ContainerSpec,
    Limits,
    Mount,
    ProcessRuntime,
    Profile,
    SandboxSpec,
)
from allot.nodeagent.runtimes.process.shepherd import logs, processes, records
from allot.wire import cdi

from ..plugins import until
from .places import (
    CONTAINERD,
    CONTAINERD_2,
    PLACES,
    Place,
    directory,
    end_of,
    known_of,
    lives,
    pid_of,
    printed,
    script,
    shepherd_of,
)
from .places import tell as tell_at

PINNING = Path(pinning.__file__).read_bytes()
OWN = next(iter(PLACES))  # as whoever runs the tests
PROCESSES = [one for one in PLACES if one not in (CONTAINERD, CONTAINERD_2)]


def tell(play: Callable[[ProcessRuntime, Path], Awaitable[None]], **settings: int) -> None:
    async def at(place: Place) -> None:
        await play(place.runtime, place.root)

    tell_at(OWN, at, **settings)


DAEMON = "(setsid sh -c 'sleep 300 & wait' &); sleep 0.2; echo up"
"""A process that has left the session, and whose parents are gone."""


def below(attempt: Attempt) -> list[int]:
    """Everything that runs in a container."""
    return [pid_of(attempt), *processes.descendants(pid_of(attempt))]


def test_after_a_killed_shepherd_what_left_its_session_is_ended_too():
    """HERD3"""

    async def story() -> None:
        async with directory() as root:
            async with ProcessRuntime(root).attached() as runtime:
                started = await runtime.start(script(f"{DAEMON}; sleep 300"))
                await until(lambda: bool(printed(started)))
                inside = below(started)
                assert len(inside) > 3
                os.kill(shepherd_of(root), signal.SIGKILL)
            async with ProcessRuntime(root).attached() as runtime:
                await end_of(runtime, started)
                await until(lambda: not any(map(lives, inside)))

    asyncio.run(asyncio.wait_for(story(), 90))


def test_a_full_disk_costs_output_and_new_containers_and_nothing_else():
    """HERD4: a limit on the size of files stands in for the disk."""

    async def play(runtime: ProcessRuntime, root: Path) -> None:
        go = root / "go"
        waits = await runtime.start(script(f"while test ! -e {go}; do sleep 0.05; done; exit 7"))
        shepherds = shepherd_of(root)
        resource.prlimit(shepherds, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        mark = root / "mark"
        with pytest.raises(CannotStart):
            await runtime.start(script(f"sleep 1; mkdir {mark}", name="late"))
        go.touch()
        await until(lambda: not lives(pid_of(waits)))
        await asyncio.sleep(1.5)
        assert shepherd_of(root) == shepherds
        assert not mark.exists(), "what could not be written down does not run"
        resource.prlimit(shepherds, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert (await end_of(runtime, waits)).exit_code == 7
        again = await end_of(runtime, await runtime.start(script("exit 4", name="late")))
        assert again.exit_code == 4

    tell(play)


def test_containers_go_on_without_their_agent_and_another_one_finds_them():
    """N5: also how they ended meanwhile."""

    async def whole() -> None:
        async with directory() as root:
            async with ProcessRuntime(root).attached() as first:
                long = await first.start(script("sleep 300", "long"))
                short = await first.start(script("sleep 0.3; exit 5", "short"))
            await asyncio.sleep(1)
            assert lives(pid_of(long))
            async with ProcessRuntime(root).attached() as second:
                found = {one.name: one for one in await second.attempts()}
                assert found["long"].runs
                assert (await end_of(second, short)).exit_code == 5
                await second.signal(found["long"], signal.SIGTERM)
                assert (await end_of(second, long)).exit_code == 143

    asyncio.run(asyncio.wait_for(whole(), 90))


def test_after_a_killed_shepherd_what_is_left_is_ended_and_said_to_be():
    """HERD3"""

    async def play(runtime: ProcessRuntime, root: Path) -> None:
        heard: list[Attempt] = []
        runtime.changed(heard.append)
        started = await runtime.start(script("sleep 300"))
        pid = pid_of(started)
        os.kill(shepherd_of(root), signal.SIGKILL)
        await until(lambda: bool(heard))  # it looks again at everything
        (over,) = await runtime.attempts()
        assert over.exit_code == records.UNSEEN
        await until(lambda: not lives(pid))
        again = await runtime.start(script("exit 0", number=1))
        assert (await end_of(runtime, again)).exit_code == 0

    tell(play)


def test_after_a_reboot_nobody_who_has_the_old_number_is_hurt():
    """HERD3: a pid of another boot, or of a process that began at another time, is somebody else."""

    async def whole() -> None:
        async with directory() as root:
            bystander = await asyncio.create_subprocess_exec("sleep", "300", start_new_session=True)
            try:
                ticks, boot = processes.ticks(bystander.pid), processes.boot()
                for number, known in enumerate(
                    ({"boot": "other", "ticks": ticks}, {"boot": boot, "ticks": 1})
                ):
                    folder = root / "pod" / "main" / str(number)
                    folder.mkdir(parents=True)
                    started = {"pid": bystander.pid, "started_at": 1.0, "crashes": 0, **known}
                    (folder / records.STARTED).write_text(json.dumps(started))
                async with ProcessRuntime(root).attached() as runtime:
                    assert [one.exit_code for one in await runtime.attempts()] == [records.UNSEEN] * 2
                assert lives(bystander.pid)
            finally:
                bystander.kill()
                await bystander.wait()

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_a_shepherd_with_nobody_and_nothing_ends_by_itself(monkeypatch):
    async def whole() -> None:
        with tempfile.TemporaryDirectory(prefix="run") as folder:
            root = Path(folder)
            async with ProcessRuntime(root).attached():
                assert lives(shepherd_of(root))
            await until(lambda: shepherd_of(root) == 0)

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_a_shepherd_that_is_to_end_waits_for_its_containers():
    async def whole() -> None:
        async with directory() as root, ProcessRuntime(root).attached() as runtime:
            started = await runtime.start(script("sleep 300"))
            pid = shepherd_of(root)
            os.kill(pid, signal.SIGTERM)
            await asyncio.sleep(1.5)
            assert lives(pid) and lives(pid_of(started))
            await runtime.signal(started, signal.SIGKILL)
            await until(lambda: not lives(pid))
            assert (await end_of(runtime, started)).exit_code == 137, "the next one knows it"

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_a_shepherd_whose_directory_is_gone_does_not_stay_for_ever():
    async def whole() -> None:
        with tempfile.TemporaryDirectory(prefix="run") as folder:
            root = Path(folder) / "containers"
            async with ProcessRuntime(root).attached() as runtime:
                started = await runtime.start(script("sleep 300"))
                pid, first = shepherd_of(root), pid_of(started)
                shutil.rmtree(root)
                os.kill(first, signal.SIGKILL)
            await until(lambda: not lives(pid))

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_long_lines_are_cut_and_their_pieces_marked():
    async def play(runtime: ProcessRuntime, root: Path) -> None:
        over = await end_of(
            runtime, await runtime.start(script("head -c 40000 /dev/zero | tr '\\0' x; echo; printf end"))
        )
        kinds = [line.split(" ")[1:] for line in printed(over)]
        assert [kind for kind, _ in kinds[:-1]] == ["P", "P", "F"]
        assert sum(len(text) for _, text in kinds[:-1]) == 40000
        assert printed(over)[-1] == "stdout F end", "a last line without an end is a line"

    tell(play)


def test_what_was_printed_is_in_the_log_when_the_end_is_seen_whoever_holds_the_pipe():
    """Its last words too, which end no line."""

    async def play(runtime: ProcessRuntime, root: Path) -> None:
        go = root / "go"
        text = f"while test ! -e {go}; do sleep 0.05; done; echo first; printf last"
        started = await runtime.start(script(text))
        held = os.open(f"/proc/{pid_of(started)}/fd/1", os.O_WRONLY)
        try:
            go.touch()
            assert printed(await end_of(runtime, started)) == ["stdout F first", "stdout F last"]
        finally:
            os.close(held)

    tell(play)


@pytest.mark.parametrize("is_held", [False, True], ids=["closed", "held"])
def test_what_nobody_had_time_to_read_is_in_the_log_at_the_end(tmp_path, is_held):
    """As on a machine that is so busy that the shepherd comes to it late."""
    log = logs.Log(tmp_path, 10 * 1024 * 1024, 2)
    read, write = os.pipe()
    pipe = logs.Pipe(read, "stdout", log)
    os.write(write, b"a\n" * 30_000 + b"rest")
    if not is_held:
        os.close(write)
    pipe.finish()
    lines = (tmp_path / logs.LOG).read_bytes().splitlines()
    assert len(lines) == 30_001 and lines[-1].endswith(b" stdout F rest")
    pipe.close()
    log.close()
    if is_held:
        os.close(write)


def test_logs_are_rotated_and_the_oldest_go():
    async def play(runtime: ProcessRuntime, root: Path) -> None:
        line = f"line-$i-{'x' * 30}"
        text = f"i=0; while [ $i -lt 400 ]; do echo {line}; i=$((i+1)); sleep 0.001; done"
        over = await end_of(runtime, await runtime.start(script(text)))
        files = [path.read_text() for path in Path(over.log).parent.glob("output.log*")]
        assert len(files) == 3
        assert all(len(text) < 20000 for text in files)
        assert any("line-399-" in text for text in files)

    tell(play, log_bytes_max=4096, log_files_max=3)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            {"edits": cdi.ContainerEdits(device_nodes=(cdi.DeviceNode("/dev/none-such"),))},
            "device node /dev/none-such: this machine has no /dev/none-such",
        ),
        (
            {"edits": cdi.ContainerEdits(intel_rdt=cdi.IntelRdt(clos_id="x"))},
            "Intel RDT: it sets no classes of service",
        ),
        ({"mounts": (Mount("/etc", "/x", propagation="Bidirectional"),)}, "propagation Bidirectional"),
        (
            {"seccomp": Profile("Localhost", "x.json")},
            "the seccomp profile x.json: processes are not",
        ),
        ({"mounts": (Mount("/tmp", "/x/.."),)}, "mount at /x/..: the root is the machine's"),
        ({"devices": (cdi.DeviceNode("/dev/x", "/tmp"),)}, "device node /dev/x: /tmp is no device"),
        (
            {"devices": (cdi.DeviceNode("/dev/x", "/dev/null", permissions="rwx"),)},
            "device node /dev/x: permissions 'rwx'",
        ),
        ({"apparmor": Profile("Localhost", "x")}, "the AppArmor profile x: processes are not confined"),
        (
            {"pod": SandboxSpec("pod-1", sysctls={"net.ipv4.ping_group_range": "0 1"})},
            "sysctls net.ipv4.ping_group_range: they are left as the machine has them",
        ),
    ],
)
def test_what_a_container_asks_for_and_cannot_have_is_an_error(more, says):
    """N4: nothing is silently left out."""

    async def play(runtime: ProcessRuntime, root: Path) -> None:
        with pytest.raises(CannotStart, match="container main asks for what this node cannot give") as no:
            await runtime.start(script("true", **more))
        assert says in str(no.value)
        assert await runtime.attempts() == []

    tell(play)


@pytest.mark.parametrize(
    ("command", "where", "says"),
    [
        (("no-such-program",), "", "exec: 'no-such-program': executable file not found on this machine"),
        (("sh", "-c", "true"), "/no/such/directory", "/no/such/directory"),
        (("/etc/passwd",), "", "Permission denied"),
    ],
)
def test_a_command_that_cannot_run_says_why(command, where, says):
    async def play(runtime: ProcessRuntime, root: Path) -> None:
        with pytest.raises(CannotStart, match=says):
            await runtime.start(ContainerSpec(SandboxSpec("pod"), "main", 0, command, directory=where))
        assert await runtime.attempts() == []
        assert not (root / "pod").exists()

    tell(play)


def test_limits_are_those_of_its_cgroups():
    """On a machine with version 1 of them, or with both."""

    async def play(runtime: ProcessRuntime, root: Path) -> None:
        limits = Limits(cpu_shares=512, cpu_quota_us=25_000, memory_bytes=64 * 1024 * 1024, cpus="0")
        started = await runtime.start(script("sleep 60", limits=limits))
        groups = {name: Path(path) for name, path in known_of(started)["cgroups"].items()}
        # Until the shell has begun what it runs, there is one process fewer.
        await until(lambda: any(words_of(pid) == b"sleep\0" + b"60" for pid in below(started)))
        inside = {str(pid) for pid in below(started)}
        expected = {
            ("cpu", "cpu.shares"): "512",
            ("cpu", "cpu.cfs_quota_us"): "25000",
            ("memory", "memory.limit_in_bytes"): str(64 * 1024 * 1024),
            ("cpuset", "cpuset.cpus"): "0",
        }
        found = {
            (group, file): (groups[group] / file).read_text().strip()
            for group, file in expected
            if group in groups
        }
        assert found, "this machine has none of them"
        assert found == {which: expected[which] for which in found}
        for name, group in groups.items():
            assert {*(group / "cgroup.procs").read_text().split()} == inside, name
        await runtime.signal(started, signal.SIGKILL)
        await end_of(runtime, started)
        assert not any(group.exists() for group in groups.values())

    tell(play)


def words_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0")
    except OSError:  # it has ended
        return b""


@pytest.mark.parametrize("where", PROCESSES)
def test_the_first_process_of_a_container_is_its_command(where):
    """Nothing of ours stays beside it."""

    async def play(place: Place) -> None:
        started = await place.runtime.start(script("echo $$; exec sleep 60"))
        await until(lambda: words_of(pid_of(started)) == b"sleep\0" + b"60")
        assert processes.descendants(pid_of(started)) == []
        await until(lambda: printed(started) == ["stdout F 1"])

    tell_at(where, play)


@pytest.mark.parametrize("where", PROCESSES)
def test_one_without_processes_of_its_own_is_waited_for_by_one_that_is_called_after_it(where):
    """HERD2: which takes along what has left the session, and hands on signals."""

    async def play(place: Place) -> None:
        pod = SandboxSpec("pod-1", host_pid=True)
        started = await place.runtime.start(script(f"{DAEMON}; sleep 300", pod=pod))
        await until(lambda: bool(printed(started)))
        inside = below(started)
        assert words_of(inside[0]) == b"allot container pod-1/main/0"
        assert len(inside) > 3
        await place.runtime.signal(started, signal.SIGTERM)
        assert (await place.end_of(started)).exit_code == 143
        assert not any(map(lives, inside))

    tell_at(where, play)


def sleeps(attempt: Attempt) -> bool:
    """What the shell runs has begun."""
    return any(words_of(pid) == b"sleep\0" + b"300" for pid in below(attempt))


@pytest.mark.parametrize("host_pid", [False, True])
@pytest.mark.parametrize("where", PROCESSES)
def test_a_signal_does_in_a_container_what_it_does_anywhere(where, host_pid):
    """Though the kernel shields the first process of a namespace from all that it does nothing about."""

    async def play(place: Place) -> None:
        pod = SandboxSpec("pod-1", host_pid=host_pid)
        texts = {
            "unheeded": "sleep 300; true",
            "ignored": "trap '' TERM; sleep 300; true",
            "heeded": "trap 'exit 7' TERM; sleep 300; true",  # a shell does so when its sleep has ended
        }
        started = {
            name: await place.runtime.start(script(text, name, pod=pod)) for name, text in texts.items()
        }
        await until(lambda: all(map(sleeps, started.values())))
        for one in started.values():
            for number in (signal.SIGWINCH, signal.SIGCHLD, signal.SIGCONT, signal.SIGTERM):
                await place.runtime.signal(one, number)
        assert (await place.end_of(started["unheeded"])).exit_code == 128 + signal.SIGTERM
        assert (await place.end_of(started["heeded"])).exit_code == 7
        assert lives(pid_of(started["ignored"]))
        await place.runtime.signal(started["ignored"], signal.SIGKILL)
        assert (await place.end_of(started["ignored"])).exit_code == 128 + signal.SIGKILL

    tell_at(where, play)


def test_a_profile_that_is_nothing_here_is_said_and_who_must_not_be_root_is_not(caplog):
    async def play(runtime: ProcessRuntime, root: Path) -> None:
        usual = Profile("RuntimeDefault")
        await end_of(runtime, await runtime.start(script("true", seccomp=usual, apparmor=usual)))
        assert any("without filter of system calls and AppArmor profile" in one for one in caplog.messages)
        nobody = script("id -u", number=1, must_not_be_root=True)
        if os.geteuid() == 0:
            with pytest.raises(CannotStart, match="runAsNonRoot without runAsUser: this node runs as root"):
                await runtime.start(nobody)
        over = await end_of(runtime, await runtime.start(nobody._replace(user=1234)))
        assert printed(over) == ["stdout F 1234"]

    tell(play)


def test_what_is_missing_on_a_machine_is_said_once(caplog):
    """As a plain user, whom nobody has delegated a cgroup."""
    where = "processes as a plain user"

    async def play(place: Place) -> None:
        assert any("no limits of memory" in one for one in caplog.messages)
        limits = Limits(memory_bytes=1024 * 1024 * 1024)
        for number in range(2):
            pod = SandboxSpec("pod-1", "web", "shop")
            await place.run("true", pod=pod, number=number, limits=limits)
        said = [
            one for one in caplog.messages if one.startswith("pod shop/web runs without limits of memory")
        ]
        assert len(said) == 1

    tell_at(where, play)


@pytest.mark.parametrize("where", PLACES)
def test_a_hook_finds_the_container_in_its_own_cgroup_and_may_pin_it(where):
    """As the driver for cores does: with the cpuset of the process that it is told of, or its affinity."""

    async def play(place: Place) -> None:
        words = ("python3", "-I", "-S", str(place.shared / "pinning.py"), str(place.shared), "1")
        (place.shared / "pinning.py").write_bytes(PINNING)
        hook = cdi.Hook("createRuntime", "/usr/bin/python3", words, ("PATH=/usr/bin",))
        (seen,) = await place.output(
            "grep Cpus_allowed_list /proc/self/status", edits=cdi.ContainerEdits(hooks=(hook,))
        )
        assert seen.split()[-1] == "1"
        (note,) = place.shared.glob("*.json")
        assert json.loads(note.read_text())["cpus"] == [1]

    tell_at(where, play)


@pytest.mark.parametrize("where", PLACES)
def test_hooks_of_vendors_find_the_bundle_of_a_container(where):
    """They read config.json beside the state: where the root is, and what the command is given."""

    async def play(place: Place) -> None:
        text = f"cat > {place.shared}/state"
        hook = cdi.Hook("createContainer", "/bin/sh", ("sh", "-c", text), ("PATH=/bin:/usr/bin",))
        edits = cdi.ContainerEdits(hooks=(hook,), env=("GPU=0",))
        started = await place.runtime.start(place.script("sleep 60", edits=edits))
        bundle = Path(json.loads((place.shared / "state").read_text())["bundle"])
        config = json.loads((bundle / "config.json").read_text())
        assert (bundle / config["root"]["path"]).parent == bundle
        assert "GPU=0" in config["process"]["env"]
        assert config["process"]["args"] == ["sh", "-c", "sleep 60"]
        await place.runtime.signal(started, signal.SIGKILL)
        await place.end_of(started)

    tell_at(where, play)


@pytest.mark.parametrize("where", PROCESSES)
def test_a_reason_that_would_be_very_long_is_cut_and_costs_nobody_anything(where):
    """One pod asked for a program whose name had 200,000 letters, and all containers were killed for it."""

    async def play(place: Place) -> None:
        other = await place.runtime.start(place.script("exec sleep 300", "other"))
        for name in ("x" * 200_000, "\x01" * 100_000):
            spec = place.script("", pod="pod-2")._replace(command=(name,))
            with pytest.raises(CannotStart) as wrong:
                await place.runtime.start(spec)
            assert len(str(wrong.value)) < 10_000
        assert [one[:3] for one in await place.runtime.attempts() if one.runs] == [other[:3]]
        assert (await place.runtime.execute(other, ("x" * 300_000,), 10)).exit_code in (126, 127)
        assert await place.output("echo fine", pod="pod-3") == ["stdout F fine"]

    tell_at(where, play)


@pytest.mark.parametrize("where", PROCESSES)
def test_a_command_that_prints_without_end_costs_no_more_memory_than_another(where):
    """A probe may be `yes`."""

    async def play(place: Place) -> None:
        started = await place.runtime.start(place.script("exec sleep 300"))
        before = peak()
        done = await place.runtime.execute(started, ("sh", "-c", "yes | head -c 300000000; exit 3"), 60)
        assert done.exit_code == 3 and done.output.startswith(b"y\ny\n")
        assert peak() - before < 100 * 2**20

    tell_at(where, play)


def peak() -> int:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
