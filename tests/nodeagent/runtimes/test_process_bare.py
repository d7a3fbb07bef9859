"""A machine that allows no namespaces: containers see it as it is, and that is said."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from allot.nodeagent.runtimes import CannotStart, Mount, ProcessRuntime, SandboxSpec
from allot.nodeagent.runtimes.process.shepherd import kernel, main, processes, sandbox
from allot.wire import cdi

from ..plugins import until
from .places import NOBODY, Typing, directory, end_of, lives, pid_of, printed, script


def begin_without_namespaces(root: Path) -> None:
    """A shepherd in a user namespace that may have no further ones."""
    root.mkdir(mode=0o755)
    if os.geteuid() == 0:
        os.chown(root, NOBODY, NOBODY)
    pid = os.fork()
    if pid == 0:
        try:
            if os.geteuid() == 0:
                kernel.become(NOBODY)
            os.setsid()
            sandbox.new_user(os.geteuid(), os.getegid())
            for kind in ("user", "mnt", "pid", "net", "uts", "ipc"):
                Path(f"/proc/sys/user/max_{kind}_namespaces").write_text("0")
            os._exit(main.main(str(root)))
        except BaseException as failed:
            os.write(2, f"{failed!r}\n".encode())
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0


def tell(play: Callable[[ProcessRuntime, Path], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with directory() as root:
            begin_without_namespaces(root)
            async with ProcessRuntime(root).attached() as runtime:
                assert (await runtime.abilities()).is_bare
                await play(runtime, root)

    asyncio.run(asyncio.wait_for(whole(), 90))


def test_what_it_does_without_is_said(caplog):
    async def play(runtime: ProcessRuntime, root: Path) -> None:
        (said,) = [one for one in caplog.messages if one.startswith("containers of this node have no")]
        assert "no a /dev of their own" not in said
        assert "no /dev of their own" in said
        assert "No space left on device" in said

    tell(play)


def test_containers_run_and_nothing_of_them_is_left():
    """RUN3, HERD2"""

    async def play(runtime: ProcessRuntime, root: Path) -> None:
        daemon = "(setsid sh -c 'sleep 300 & wait' &); sleep 0.2; echo up"
        for number, (text, code) in enumerate((("exit 3", 3), ("sleep 300", 137))):
            started = await runtime.start(script(f"{daemon}; {text}", number=number))
            await until(lambda started=started: bool(printed(started)))
            inside = [pid_of(started), *processes.descendants(pid_of(started))]
            if code == 137:
                await runtime.signal(started, signal.SIGKILL)
            assert (await end_of(runtime, started)).exit_code == code
            assert not any(map(lives, inside))

    tell(play)


def test_what_is_there_already_is_given_and_anything_else_refused():
    async def play(runtime: ProcessRuntime, root: Path) -> None:
        there = cdi.ContainerEdits(
            env=("GPU=0",), device_nodes=(cdi.DeviceNode("/dev/null"),), mounts=(cdi.Mount("/etc", "/etc"),)
        )
        over = await end_of(runtime, await runtime.start(script("echo $GPU", edits=there)))
        assert printed(over) == ["stdout F 0"]
        for more, says in (
            (
                {"edits": cdi.ContainerEdits(device_nodes=(cdi.DeviceNode("/dev/x", "/dev/null"),))},
                "device node /dev/x: no /dev of its own",
            ),
            ({"mounts": (Mount("/etc", "/elsewhere"),)}, "mount at /elsewhere: no mounts of its own"),
            (
                {"edits": cdi.ContainerEdits(hooks=(cdi.Hook("createContainer", "/bin/true"),))},
                "hook createContainer /bin/true: no namespaces of its own",
            ),
            ({"pod": SandboxSpec("pod-2", host_network=False)}, "a network of its own"),
            ({"user": 1}, "user 1: this node runs as user"),
            ({"read_only_root": True}, "a read-only root"),
            ({"privileged": True}, "privileged: this node runs as user"),
        ):
            with pytest.raises(CannotStart) as wrong:
                await runtime.start(script("true", name="other", **more))
            assert says in str(wrong.value)

    tell(play)


def test_a_mount_that_nobody_asked_for_is_left_out():
    """The token of an account, say: containers did without it before."""

    async def play(runtime: ProcessRuntime, root: Path) -> None:
        extra = Mount("/etc", "/elsewhere", is_optional=True)
        over = await end_of(
            runtime, await runtime.start(script("test ! -e /elsewhere && echo fine", mounts=(extra,)))
        )
        assert printed(over) == ["stdout F fine"]

    tell(play)


def test_commands_and_terminals_work_all_the_same():
    async def play(runtime: ProcessRuntime, root: Path) -> None:
        started = await runtime.start(script("sleep 300", env={"A": "b"}))
        done = await runtime.execute(started, ["sh", "-c", "echo $A; exit 4"], 20)
        assert done == (4, b"b\n")
        typing = Typing(tty=True, says=[b"stty size; exit 5\n"], sizes=[(100, 30)], hangs=True)
        assert await runtime.stream(started, ["sh"], typing) == 5
        assert b"30 100" in typing.out
        assert [one.name for one in await runtime.usage()] == ["main"]

    tell(play)
