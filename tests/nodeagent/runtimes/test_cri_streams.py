"""Commands, terminals and ports in containers of a real containerd."""

import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from allot.nodeagent.runtimes import CriRuntime
from allot.nodeagent.runtimes.cri import streaming
from allot.wire import cri
from containerd import Containerd

from ..plugins import until
from .cri_stories import Typist, end_of, script, tell


def test_commands_run_in_a_container(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        started = await runtime.start(script("sleep 300", pod))
        done = await runtime.execute(started, ("sh", "-c", "echo out; echo err >&2; exit 3"), 10)
        assert done.exit_code == 3 and sorted(done.output.split()) == [b"err", b"out"]
        with pytest.raises(TimeoutError):
            await runtime.execute(started, ("sleep", "60"), 1)

    tell(daemon, play)


def test_a_command_is_typed_to_and_ends_with_its_input(daemon: Containerd):
    """Over SPDY the end of the input arrives: `cat` ends by itself."""

    async def play(runtime: CriRuntime, pod: str) -> None:
        started = await runtime.start(script("sleep 300", pod))
        much = b"x" * 300_000
        typist = Typist([b"hello\n", much])
        assert await runtime.stream(started, ("cat",), typist) == 0
        assert typist.out == b"hello\n" + much
        loud = Typist()
        assert await runtime.stream(started, ("sh", "-c", "echo out; echo err >&2; exit 9"), loud) == 9
        assert (loud.out, loud.err) == (b"out\n", b"err\n")
        nothing = Typist()
        assert await runtime.stream(started, ("no-such-program",), nothing) == 127
        assert b"no-such-program" in nothing.err

    tell(daemon, play)


def test_a_terminal_has_the_size_that_it_is_given(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        started = await runtime.start(script("sleep 300", pod))
        typist = Typist([], tty=True, sizes=[(123, 45)], keeps_open=True)
        wait = "while [ \"$(stty size)\" != '45 123' ] && [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done"
        text = f"tty; i=0; {wait}; stty size"
        assert await runtime.stream(started, ("sh", "-c", text), typist) == 0
        assert b"/dev/pts/" in typist.out and typist.out.strip().endswith(b"45 123")
        assert typist.err == b""

    tell(daemon, play)


def test_one_attaches_to_a_container_that_reads(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        text = "while :; do echo waiting; read -t 1 line && break; done; echo got $line; exit 3"
        started = await runtime.start(script(text, pod, stdin=True))
        typist = Typist([b"one\n"], prompt=b"waiting", keeps_open=True)
        await runtime.stream(started, None, typist)
        assert typist.out.endswith(b"got one\n")
        assert (await end_of(runtime, started)).exit_code == 3

    tell(daemon, play)


def test_what_is_typed_waits_no_longer_than_until_the_container_is_heard(daemon: Containerd, monkeypatch):
    monkeypatch.setattr(streaming, "_LISTENS_S", 3600.0)

    async def play(runtime: CriRuntime, pod: str) -> None:
        text = "while :; do echo waiting; read -t 1 line && break; done; echo got $line"
        started = await runtime.start(script(text, pod, stdin=True))
        typist = Typist([b"one\n"], keeps_open=True)
        await runtime.stream(started, None, typist)
        assert typist.out.endswith(b"got one\n")

    tell(daemon, play, within_s=60)


def test_what_is_typed_to_a_silent_container_is_answered(daemon: Containerd):
    """Nothing says when containerd listens, and nothing of the answer is lost."""

    async def play(runtime: CriRuntime, pod: str) -> None:
        for number in range(5):
            started = await runtime.start(script("read line; echo got $line", pod, number=number, stdin=True))
            typist = Typist([b"one\n"], keeps_open=True)
            await runtime.stream(started, None, typist)
            assert typist.out == b"got one\n"

    tell(daemon, play)


SERVE = "echo -n hello > /tmp/f; httpd -f -h /tmp -p 127.0.0.1:{port}"


def test_a_port_of_a_pod_is_connected_to(daemon: Containerd):
    """By the machine's network, which it has; and by the runtime's own way, which pods with another need."""

    async def play(runtime: CriRuntime, pod: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        await runtime.start(script(SERVE.format(port=port), pod))

        async def answer(connect: Callable[[], Awaitable[Any]]) -> bytes:
            try:
                reader, writer = await connect()
            except ConnectionRefusedError:
                return b""
            writer.write(b"GET /f HTTP/1.0\r\n\r\n")
            said = await reader.read()
            writer.close()
            return bytes(said).rpartition(b"\n")[2]

        async def forwarded() -> Any:
            (sandbox,) = await runtime._service.sandboxes({"io.kubernetes.pod.uid": pod})
            asked = cri.PortForwardRequest(sandbox.id, (port,))
            told = await runtime._service.call(cri.PORT_FORWARD, asked)
            return await streaming.forward(told.url, port)

        for connect in (lambda: runtime.connect(pod, port), forwarded):

            async def is_there(connect: Callable[[], Awaitable[Any]] = connect) -> bool:
                return await answer(connect) == b"hello"

            await until(is_there)

    tell(daemon, play)


def test_what_containers_use_is_told(daemon: Containerd):
    async def play(runtime: CriRuntime, pod: str) -> None:
        await runtime.start(script("while :; do :; done", pod))

        async def is_busy() -> bool:
            found = [one for one in await runtime.usage() if one.pod_uid == pod]
            return bool(found) and found[0].cpu_ns > 200_000_000 and found[0].memory_bytes > 0

        await until(is_busy)

    tell(daemon, play)
