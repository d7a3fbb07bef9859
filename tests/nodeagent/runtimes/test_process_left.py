"""kill -9 of the agent and of its shepherd, at any moment: no process, mount, cgroup or namespace is left."""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from allot.nodeagent.runtimes import ProcessRuntime, SandboxSpec
from allot.nodeagent.runtimes.process.shepherd import processes, records
from allot.wire import cdi

from ..plugins import until
from .places import NOBODY, directory, end_of, known_of, lives, pid_of, printed, script, shepherd_of

USERS = (None, NOBODY) if os.geteuid() == 0 else (None,)
pytestmark = pytest.mark.parametrize(
    "user", USERS, ids=["as who runs the tests", "as a plain user"][: len(USERS)]
)


def mounts() -> list[str]:
    """Of the machine, without what others do."""
    return [one.split()[4] for one in Path("/proc/self/mountinfo").read_text().splitlines()]


def networks() -> set[int]:
    """Of all processes."""
    found = set()
    for one in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            found.add(one.stat().st_ino)
        except OSError:
            continue
    return found


def cgroups(root: Path) -> list[Path]:
    return [one for one in map(Path, records_of(root)) if one.exists()]


def records_of(root: Path) -> list[str]:
    try:
        return list(json.loads((root / "cgroups.json").read_text()))
    except FileNotFoundError:
        return []


@asynccontextmanager
async def agent(root: Path, user: int | None) -> AsyncIterator[int]:
    """Another process that is attached to a runtime, as an agent is: to be killed."""
    text = (
        "import asyncio, sys; from pathlib import Path; from allot.nodeagent.runtimes import ProcessRuntime\n"
        "async def main():\n"
        "    user = int(sys.argv[2]) if sys.argv[2] else None\n"
        "    async with ProcessRuntime(Path(sys.argv[1]), user=user).attached():\n"
        "        print('up', flush=True); await asyncio.sleep(3600)\n"
        "asyncio.run(main())"
    )
    words = [sys.executable, "-c", text, str(root), "" if user is None else str(user)]
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"up\n"
    try:
        yield process.pid
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def test_nothing_is_left_of_containers_whose_agent_and_shepherd_were_killed(user):
    """HERD3: with devices, a network, a terminal, a command inside, and a hook that runs at the end."""

    async def whole() -> None:
        async with directory() as root, agent(root, user) as killed:
            last = cdi.Hook("poststop", "/bin/sh", ("sh", "-c", f"cat >> {root}/stopped"), ("PATH=/bin",))
            async with ProcessRuntime(root, user=user).attached() as runtime:
                pod = SandboxSpec("pod-1", hostname="inside", host_network=False)
                edits = cdi.ContainerEdits(
                    device_nodes=(cdi.DeviceNode("/dev/zero-2", "/dev/zero"),),
                    mounts=(cdi.Mount("/etc", "/elsewhere/etc"),),
                    hooks=(last,),
                )
                started = [
                    await runtime.start(
                        script(
                            "(setsid sleep 300 &); echo up; sleep 300", name, pod=pod, edits=edits, tty=tty
                        )
                    )
                    for name, tty in (("plain", False), ("terminal", True))
                ]
                await until(lambda: all(printed(one) for one in started))
                inside = asyncio.create_task(runtime.execute(started[0], ["sleep", "300"], 300))
                first = [pid_of(one) for one in started]
                (network,) = {os.stat(f"/proc/{pid}/ns/net").st_ino for pid in first}
                await until(lambda: len(processes.descendants(first[0])) >= 2)
                every = [*first, *(one for pid in first for one in processes.descendants(pid))]
                groups = [Path(path) for one in started for path in known_of(one)["cgroups"].values()]
                assert all(group.exists() for group in groups)
                assert (user is None and os.geteuid() == 0) == bool(groups)
                assert network in networks()
                os.kill(killed, signal.SIGKILL)
                os.kill(shepherd_of(root), signal.SIGKILL)
                await asyncio.wait((inside,))
            async with ProcessRuntime(root, user=user).attached() as runtime:
                assert [one.exit_code for one in await runtime.attempts()] == [records.UNSEEN] * 2
                await until(lambda: not any(map(lives, every)))
                await until(lambda: network not in networks())
                assert not any(group.exists() for group in groups)
                assert not [one for one in mounts() if str(root) in one]
                assert (root / "stopped").read_text().count('"stopped"') == 2
                again = await runtime.start(script("exit 3", number=1, pod=pod, edits=edits))
                assert (await end_of(runtime, again)).exit_code == 3

    asyncio.run(asyncio.wait_for(whole(), 120))


@pytest.mark.parametrize("moment", ["createRuntime", "createContainer", "startContainer"])
def test_what_was_about_to_begin_when_the_shepherd_was_killed_does_not_and_can_begin_again(user, moment):
    """HERD1, RUN2: nor does the hook that it was at go on."""

    async def whole() -> None:
        async with directory() as root:
            at, mark = root / "at", root / "mark"
            text = f"test -e {at} || {{ echo $$ > {at}; exec sleep 300; }}"
            hook = cdi.Hook(moment, "/bin/sh", ("sh", "-c", text), ("PATH=/bin",))
            spec = script(f"echo x >> {mark}; sleep 300", edits=cdi.ContainerEdits(hooks=(hook,)))
            async with ProcessRuntime(root, user=user).attached() as runtime:
                starting = asyncio.create_task(runtime.start(spec))
                await until(lambda: at.exists() and bool(at.read_text()))
                (known,) = root.glob(f"*/*/*/{records.STARTING}")
                first = int(json.loads(known.read_text())["pid"])
                inside = [first, *processes.descendants(first)]
                inside += [int(at.read_text())] if moment == "createRuntime" else []
                starting.cancel()
                os.kill(shepherd_of(root), signal.SIGKILL)
            async with ProcessRuntime(root, user=user).attached() as runtime:
                assert await runtime.attempts() == []
                assert not (root / "pod-1").exists()
                await until(lambda: not any(map(lives, inside)))
                assert not mark.exists()
                await runtime.start(spec)
                await until(mark.exists)
                assert [one.number for one in await runtime.attempts()] == [0]

    asyncio.run(asyncio.wait_for(whole(), 120))


def test_a_shepherd_may_be_killed_at_any_moment_of_a_start(user):
    """HERD1, HERD3: what is written down has run, and nothing else has; none of them goes on."""

    async def whole() -> None:
        async with directory() as root:
            for turn in range(6):
                async with ProcessRuntime(root, user=user).attached() as runtime:
                    starting = [
                        asyncio.create_task(runtime.start(script(f"exec sleep 4177{turn}", f"{turn}-{at}")))
                        for at in range(5)
                    ]
                    await asyncio.sleep(0.01 * turn)
                    for one in starting:
                        one.cancel()
                    os.kill(shepherd_of(root), signal.SIGKILL)
                    await asyncio.wait(starting)
                async with ProcessRuntime(root, user=user).attached() as runtime:
                    assert {one.exit_code for one in await runtime.attempts()} <= {records.UNSEEN}
                    await until(lambda: about(str(root)) <= {shepherd_of(root)})
                    await until(lambda turn=turn: not about(f"sleep 4177{turn}"))
                    assert not [*root.glob(f"*/*/*/{records.STARTING}")]

    asyncio.run(asyncio.wait_for(whole(), 120))


def about(words: str) -> set[int]:
    """Processes whose command has these words."""
    found = set()
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if words in one.read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                found.add(int(one.parent.name))
        except OSError:
            continue
    return found


def test_a_start_that_its_shepherd_did_not_survive_is_asked_of_the_next(user):
    """RUN2: the command has run once."""

    async def whole() -> None:
        async with directory() as root, ProcessRuntime(root, user=user).attached() as runtime:
            at, mark = root / "at", root / "mark"
            text = f"test -e {at} || {{ touch {at}; exec sleep 300; }}"
            hook = cdi.Hook("createRuntime", "/bin/sh", ("sh", "-c", text), ("PATH=/bin",))
            spec = script(f"echo x >> {mark}; sleep 300", edits=cdi.ContainerEdits(hooks=(hook,)))
            starting = asyncio.create_task(runtime.start(spec))
            await until(at.exists)
            os.kill(shepherd_of(root), signal.SIGKILL)
            assert (await starting).runs
            await until(lambda: mark.exists() and mark.read_text() != "")
            assert mark.read_text() == "x\n"
            assert [one.number for one in await runtime.attempts()] == [0]

    asyncio.run(asyncio.wait_for(whole(), 120))


def test_a_shepherd_that_ends_by_itself_leaves_no_cgroup(user):
    async def whole() -> None:
        async with directory() as root:
            async with ProcessRuntime(root, user=user).attached() as runtime:
                over = await end_of(runtime, await runtime.start(script("true")))
                there = cgroups(root)
                await runtime.remove(over.pod_uid)
                assert not (root / over.pod_uid).exists()
            await until(lambda: shepherd_of(root) == 0)
            assert (user is None and os.geteuid() == 0) == bool(there)
            assert not any(one.exists() for one in there)

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_what_a_killed_shepherd_left_goes_with_the_next_one_anywhere(user):
    """Should its directory be gone, too, nobody would look for it; what others still use stays."""

    async def whole() -> None:
        async with directory() as idle, directory() as busy, directory() as gone:
            async with (
                ProcessRuntime(idle, user=user).attached(),
                ProcessRuntime(busy, user=user).attached() as runtime,
                ProcessRuntime(gone, user=user).attached() as other,
            ):
                await runtime.start(script("sleep 300"))
                await end_of(other, await other.start(script("true")))
                kept, left = [*cgroups(idle), *cgroups(busy)], cgroups(gone)
                assert (user is None and os.geteuid() == 0) == bool(kept and left)
                os.kill(shepherd_of(gone), signal.SIGKILL)
                os.kill(shepherd_of(busy), signal.SIGKILL)
                await until(lambda: not shepherd_of(gone) and not shepherd_of(busy))
                shutil.rmtree(gone)
            async with directory() as another, ProcessRuntime(another, user=user).attached():
                assert not any(one.exists() for one in left)
                assert all(one.exists() for one in kept)

    asyncio.run(asyncio.wait_for(whole(), 60))
