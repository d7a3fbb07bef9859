"""Containers as processes: real ones, and a shepherd that outlives its agents."""

import asyncio
import json
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from allot.nodeagent.runtimes import Attempt, CannotStart, ContainerSpec, ProcessRuntime
from allot.nodeagent.runtimes.process import shepherd
from allot.wire import cdi

from ..plugins import until


def script(text: str, name: str = "main", number: int = 0, pod: str = "pod-1", **more: Any) -> ContainerSpec:
    return ContainerSpec(pod, name, number, ("sh", "-c", text), more.pop("env", {}), **more)


def printed(attempt: Attempt) -> list[str]:
    """Without the times."""
    return [line.partition(" ")[2] for line in Path(attempt.log).read_text().splitlines()]


async def end_of(runtime: ProcessRuntime, attempt: Attempt) -> Attempt:
    found: list[Attempt] = []

    async def is_over() -> bool:
        found[:] = [one for one in await runtime.attempts() if one[:3] == attempt[:3]]
        return not found[0].runs

    await until(is_over)
    return found[0]


def pid_of(attempt: Attempt) -> int:
    return int(json.loads((Path(attempt.log).parent / shepherd.STARTED).read_text())["pid"])


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def shepherd_of(root: Path) -> int:
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            words = (directory / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if str(root).encode() in words and shepherd.__file__.encode() in words:
            return int(directory.name)
    return 0


@asynccontextmanager
async def place() -> AsyncIterator[Path]:
    with tempfile.TemporaryDirectory(prefix="run") as folder:
        root = Path(folder)
        try:
            yield root
        finally:
            async with ProcessRuntime(root).attached() as runtime:
                for one in await runtime.attempts():
                    if one.runs:
                        await runtime.signal(one, signal.SIGKILL)
                        await end_of(runtime, one)
            os.kill(shepherd_of(root), signal.SIGKILL)


def tell(play: Callable[[ProcessRuntime, Path], Awaitable[None]], **settings: int) -> None:
    async def whole() -> None:
        async with place() as root, ProcessRuntime(root, **settings).attached() as runtime:
            await play(runtime, root)

    asyncio.run(asyncio.wait_for(whole(), 90))


def test_a_container_runs_prints_and_ends():
    async def play(runtime: ProcessRuntime, root: Path) -> None:
        heard: list[Attempt] = []
        runtime.changed(heard.append)
        started = await runtime.start(script("echo out; echo err >&2; exit 3", env={"A": "b"}))
        assert started.number == 0
        over = await end_of(runtime, started)
        assert over.exit_code == 3
        assert over.finished_at >= over.started_at
        assert sorted(printed(over)) == ["stderr F err", "stdout F out"]
        await until(lambda: [one.exit_code for one in heard] == [3])

    tell(play)


def test_a_container_sees_its_own_variables_and_none_of_the_agents(monkeypatch):
    monkeypatch.setenv("AGENTS_SECRET", "x")

    async def play(runtime: ProcessRuntime, root: Path) -> None:
        edits = cdi.ContainerEdits(env=("GPU=0", "A=from-device"))
        over = await end_of(runtime, await runtime.start(script("env", env={"A": "b"}, edits=edits)))
        names = {line.removeprefix("stdout F ").partition("=")[0] for line in printed(over)}
        assert names <= {"A", "GPU", "PATH", "PWD", "SHLVL", "_", "OLDPWD"}
        assert "stdout F A=from-device" in printed(over)
        assert "stdout F GPU=0" in printed(over)

    tell(play)


def test_what_is_asked_for_twice_begins_once():
    """RUN2"""

    async def play(runtime: ProcessRuntime, root: Path) -> None:
        mark = root / "mark"
        for _ in range(3):
            started = await runtime.start(script(f"echo x >> {mark}; sleep 60"))
        await until(mark.exists)
        assert mark.read_text() == "x\n"
        assert len(await runtime.attempts()) == 1
        assert lives(pid_of(started))

    tell(play)


def test_nothing_of_a_container_is_left_when_it_has_ended():
    """RUN3: what it put into the background too."""

    async def play(runtime: ProcessRuntime, root: Path) -> None:
        started = await runtime.start(script("sleep 300 & echo $!"))
        over = await end_of(runtime, started)
        child = int(printed(over)[0].split()[-1])
        await until(lambda: not lives(child))

    tell(play)


def test_a_signal_reaches_everything_in_the_container():
    async def play(runtime: ProcessRuntime, root: Path) -> None:
        started = await runtime.start(
            script("trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.1; done")
        )
        await until(lambda: printed(started) == ["stdout F up"])
        await runtime.signal(started, signal.SIGTERM)
        over = await end_of(runtime, started)
        assert over.exit_code == 7
        assert printed(over)[-1] == "stdout F bye"
        killed = await runtime.start(script("sleep 300", number=1))
        await runtime.signal(killed, signal.SIGKILL)
        assert (await end_of(runtime, killed)).exit_code == 137

    tell(play)


def test_containers_go_on_without_their_agent_and_another_one_finds_them():
    """N5: also how they ended meanwhile."""

    async def whole() -> None:
        async with place() as root:
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
        assert over.exit_code == shepherd.UNSEEN
        await until(lambda: not lives(pid))
        again = await runtime.start(script("exit 0", number=1))
        assert (await end_of(runtime, again)).exit_code == 0

    tell(play)


def test_after_a_reboot_nobody_who_has_the_old_number_is_hurt():
    """HERD3: a pid of another boot, or of a process that began at another time, is somebody else."""

    async def whole() -> None:
        async with place() as root:
            bystander = await asyncio.create_subprocess_exec("sleep", "300", start_new_session=True)
            try:
                ticks, boot = shepherd.ticks(bystander.pid), shepherd.boot()
                for number, known in enumerate(
                    ({"boot": "other", "ticks": ticks}, {"boot": boot, "ticks": 1})
                ):
                    directory = root / "pod" / "main" / str(number)
                    directory.mkdir(parents=True)
                    started = {"pid": bystander.pid, "started_at": 1.0, "crashes": 0, **known}
                    (directory / shepherd.STARTED).write_text(json.dumps(started))
                async with ProcessRuntime(root).attached() as runtime:
                    assert [one.exit_code for one in await runtime.attempts()] == [shepherd.UNSEEN] * 2
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
    ("edits", "says"),
    [
        (
            {"device_nodes": (cdi.DeviceNode("/dev/none-such"),)},
            "device node /dev/none-such: this machine has none",
        ),
        (
            {"device_nodes": (cdi.DeviceNode("/dev/x", "/dev/null"),)},
            "device node /dev/x: it is /dev/null on this machine, and paths stay as they are",
        ),
        (
            {"mounts": (cdi.Mount("/etc", "/elsewhere"),)},
            "mount at /elsewhere: it is /etc on this machine, and paths stay as they are",
        ),
        (
            {"hooks": (cdi.Hook("createRuntime", "/bin/true"),)},
            "hook createRuntime /bin/true: it runs no hooks",
        ),
        ({"additional_gids": (44,)}, "group 44: it changes no groups"),
        ({"intel_rdt": cdi.IntelRdt(clos_id="x")}, "Intel RDT"),
    ],
)
def test_what_a_device_needs_and_cannot_have_is_an_error(edits, says):
    """N4: nothing is silently left out."""

    async def play(runtime: ProcessRuntime, root: Path) -> None:
        with pytest.raises(
            CannotStart, match="the process runtime cannot do what a CDI device asks for"
        ) as no:
            await runtime.start(script("true", edits=cdi.ContainerEdits(**edits)))
        assert says in str(no.value)
        assert await runtime.attempts() == []

    tell(play)


def test_nodes_and_mounts_that_are_there_already_are_given():
    async def play(runtime: ProcessRuntime, root: Path) -> None:
        edits = cdi.ContainerEdits(
            device_nodes=(cdi.DeviceNode("/dev/null"),), mounts=(cdi.Mount("/etc", "/etc"),)
        )
        over = await end_of(
            runtime, await runtime.start(script("test -c /dev/null && test -d /etc", edits=edits))
        )
        assert over.exit_code == 0

    tell(play)


@pytest.mark.parametrize(
    ("command", "directory", "says"),
    [
        (("no-such-program",), "", "exec: 'no-such-program': executable file not found on this machine"),
        (("sh", "-c", "true"), "/no/such/directory", "/no/such/directory"),
        (("/etc/passwd",), "", "Permission denied"),
    ],
)
def test_what_cannot_be_started_says_why_and_leaves_no_trace(command, directory, says):
    async def play(runtime: ProcessRuntime, root: Path) -> None:
        with pytest.raises(CannotStart, match=says):
            await runtime.start(ContainerSpec("pod", "main", 0, command, {}, directory))
        assert await runtime.attempts() == []

    tell(play)


def test_what_is_removed_is_gone():
    async def play(runtime: ProcessRuntime, root: Path) -> None:
        over = await end_of(runtime, await runtime.start(script("true")))
        await runtime.remove(over.pod_uid)
        assert await runtime.attempts() == []
        assert not (root / over.pod_uid).exists()

    tell(play)
