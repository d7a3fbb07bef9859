"""Looks after containers that are processes, and outlives the agent that asks for them.

    python shepherd.py DIRECTORY

It starts each container in a session of its own, writes what it prints to a log, and how it ended to a file.
Agents come and go at its socket. With nobody there and nothing to look after it ends by itself.

    DIRECTORY/shepherd.sock                            one JSON object a line, both ways
    DIRECTORY/shepherd.lock                            held while it lives: there is one
    DIRECTORY/POD/CONTAINER/NUMBER/started.json        pid, when the process began by the kernel, which boot
    DIRECTORY/POD/CONTAINER/NUMBER/ended.json          exit code, when
    DIRECTORY/POD/CONTAINER/NUMBER/output.log          and output.log.N: what came before

What it promises
    HERD1  `started.json` is there before anybody is told that the container runs, `ended.json` before anybody
           is told that it does not. Each appears whole or not at all.
    HERD2  What a container started is gone when it has ended: its whole session is killed.
    HERD3  After a shepherd that was killed, or a reboot, the next one ends what is left and says so with exit
           code 137: nobody saw how it ended.

This file is run by itself and imports nothing but the standard library: it is there once on every node.
"""

import contextlib
import fcntl
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STARTED, ENDED, LOG = "started.json", "ended.json", "output.log"
LINE_MAX = 16 * 1024
UNSEEN = 137
IDLE_S = 5.0
_PIPE_S = 1.0  # how long output may follow the end, where somebody else holds the pipe
_READ = 64 * 1024
_REQUEST_MAX = 16 * 1024 * 1024


class Log:
    """What a container prints, line by line, in the form of the CRI."""

    def __init__(self, directory: Path, bytes_max: int, files_max: int) -> None:
        self._path = directory / LOG
        self._bytes_max, self._files_max = bytes_max, files_max
        self._file = self._open()
        self._size = 0
        self._rotated = 0

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)

    def write(self, stream: str, lines: list[tuple[bytes, bool]]) -> None:
        """Each line with whether it is complete."""
        now_ns = time.time_ns()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now_ns // 10**9))
        head = f"{stamp}.{now_ns % 10**9:09d}Z {stream} "
        text = b"".join(
            head.encode() + (b"F " if is_whole else b"P ") + line + b"\n" for line, is_whole in lines
        )
        with contextlib.suppress(OSError):  # a full disk costs output, not the container
            self._size += os.write(self._file, text)
        if self._size >= self._bytes_max:
            self._rotate()

    def _rotate(self) -> None:
        self._rotated += 1
        os.close(self._file)
        os.replace(self._path, f"{self._path}.{self._rotated}")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self._path}.{self._rotated - self._files_max + 1}")
        self._file, self._size = self._open(), 0

    def close(self) -> None:
        os.close(self._file)


class Pipe:
    """One of a container's streams, cut into lines."""

    def __init__(self, number: int, stream: str, container: "Container") -> None:
        self.number, self.stream, self.container = number, stream, container
        self._rest = b""
        os.set_blocking(number, False)

    def read(self) -> bool:
        """False when it has come to its end."""
        try:
            data = os.read(self.number, _READ)
        except BlockingIOError:
            return True
        if not data:
            if self._rest:
                self.container.log.write(self.stream, [(self._rest, True)])
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        found = [piece for line in lines for piece in _pieces(line, True)]
        if len(self._rest) >= LINE_MAX:
            cut = len(self._rest) - len(self._rest) % LINE_MAX
            found += _pieces(self._rest[:cut], False)
            self._rest = self._rest[cut:]
        if found:
            self.container.log.write(self.stream, found)
        return True


def _pieces(line: bytes, is_whole: bool) -> list[tuple[bytes, bool]]:
    cuts = [line[at : at + LINE_MAX] for at in range(0, len(line), LINE_MAX)] or [b""]
    return [(cut, is_whole and cut is cuts[-1]) for cut in cuts]


class Container:
    def __init__(self, directory: Path, wanted: dict[str, Any]) -> None:
        """Raises OSError: it cannot be started."""
        self.directory = directory
        self.log = Log(directory, wanted["log_bytes"], wanted["log_files"])
        try:
            self.process = subprocess.Popen(
                wanted["command"],
                env=wanted["env"],
                cwd=wanted["directory"] or directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                bufsize=0,
            )
        except BaseException:
            self.log.close()
            raise
        assert self.process.stdout is not None and self.process.stderr is not None
        self.pipes = [
            Pipe(self.process.stdout.fileno(), "stdout", self),
            Pipe(self.process.stderr.fileno(), "stderr", self),
        ]
        self.ended_s: float | None = None
        started = {
            "pid": self.process.pid,
            "ticks": ticks(self.process.pid),
            "boot": boot(),
            "started_at": time.time(),
            "crashes": wanted["crashes"],
        }
        write(directory / STARTED, started)  # HERD1

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def close(self) -> None:
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        self.log.close()


class Shepherd:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._containers: dict[str, Container] = {}  # by directory, relative to the root
        self._agents: dict[socket.socket, bytes] = {}  # and what they have begun to say
        self._selector = selectors.DefaultSelector()
        self._idle_since_s = time.monotonic()
        self._listening = _listen(root)
        self._selector.register(self._listening, selectors.EVENT_READ, self._welcome)
        woken, wake = socket.socketpair()
        for one in (woken, wake):
            one.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        self._woken, self._wake = woken, wake
        self._selector.register(woken, selectors.EVENT_READ, self._reap)

    def run(self) -> None:
        """Until there is nobody, and nothing to look after."""
        while not self._is_idle():
            for key, _ in self._selector.select(timeout=1.0):
                key.data()
            self._bury()

    def _is_idle(self) -> bool:
        now_s = time.monotonic()
        if self._agents or self._containers:
            self._idle_since_s = now_s
        return now_s - self._idle_since_s > IDLE_S

    # -- agents ---------------------------------------------------------------------------------

    def _welcome(self) -> None:
        agent, _ = self._listening.accept()
        self._agents[agent] = b""
        self._selector.register(agent, selectors.EVENT_READ, lambda: self._hear(agent))

    def _hear(self, agent: socket.socket) -> None:
        try:
            data = agent.recv(_READ)
        except OSError:
            data = b""
        if not data or len(self._agents[agent]) > _REQUEST_MAX:
            self._part(agent)
            return
        *lines, rest = (self._agents[agent] + data).split(b"\n")
        self._agents[agent] = rest
        for line in lines:
            asked = json.loads(line)
            self._say(agent, {"id": asked["id"], **self._do(asked)})

    def _part(self, agent: socket.socket) -> None:
        if self._agents.pop(agent, None) is not None:
            self._selector.unregister(agent)
            agent.close()

    def _say(self, agent: socket.socket, what: dict[str, Any]) -> None:
        try:
            agent.sendall(json.dumps(what).encode() + b"\n")
        except OSError:
            self._part(agent)

    def _do(self, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            match asked["do"]:
                case "start":
                    self._start(asked)
                case "signal":
                    if asked["container"] in self._containers:
                        self._containers[asked["container"]].signal(asked["number"])
        except (OSError, ValueError, subprocess.SubprocessError) as failed:
            return {"error": str(failed)}
        return {}

    # -- containers -----------------------------------------------------------------------------

    def _start(self, asked: dict[str, Any]) -> None:
        name, directory = asked["container"], self._root / asked["container"]
        if (directory / STARTED).exists():
            return  # asked for twice
        directory.mkdir(parents=True, exist_ok=True, mode=0o750)
        container = self._containers[name] = Container(directory, asked)
        for pipe in container.pipes:
            self._selector.register(pipe.number, selectors.EVENT_READ, lambda pipe=pipe: self._drain(pipe))

    def _drain(self, pipe: Pipe) -> None:
        if not pipe.read():
            self._selector.unregister(pipe.number)
            pipe.container.pipes.remove(pipe)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._woken.recv(4096):
                pass
        for container in self._containers.values():
            if container.ended_s is None and container.process.poll() is not None:
                container.ended_s = time.monotonic()
                container.signal(signal.SIGKILL)  # HERD2

    def _bury(self) -> None:
        for name, container in tuple(self._containers.items()):
            if container.ended_s is None:
                continue
            if container.pipes and time.monotonic() - container.ended_s < _PIPE_S:
                continue
            for pipe in container.pipes:
                self._selector.unregister(pipe.number)
            container.close()
            code = container.process.returncode
            write(container.directory / ENDED, ended(128 - code if code < 0 else code))
            del self._containers[name]
            for agent in tuple(self._agents):
                self._say(agent, {"ended": name})


def ended(code: int) -> dict[str, Any]:
    return {"exit_code": code, "finished_at": time.time()}


def end_what_is_left(root: Path) -> None:
    """HERD3."""
    for started in root.glob(f"*/*/*/{STARTED}"):
        if (started.parent / ENDED).exists():
            continue
        known = json.loads(started.read_text())
        if known["boot"] == boot() and ticks(known["pid"]) == known["ticks"]:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(known["pid"], signal.SIGKILL)
        write(started.parent / ENDED, ended(UNSEEN))


def ticks(pid: int) -> int | None:
    """When the process began, by the kernel: a pid alone may be somebody else's by now."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])


def boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def write(path: Path, content: dict[str, Any]) -> None:
    """Whole or not at all; durable enough: after a power failure nothing runs that it could tell of."""
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(content))
    temporary.replace(path)


def _listen(root: Path) -> socket.socket:
    path = root / "shepherd.sock"
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    with _short(path) as address:
        listening.bind(address)
    os.chmod(path, 0o600)
    listening.listen(16)
    return listening


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """The system takes 107 bytes; an open directory has a short name."""
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def main(root: Path) -> int:
    if os.fork():
        return 0  # whoever began it need not wait for its end
    root.mkdir(parents=True, exist_ok=True, mode=0o750)
    with open(root / "shepherd.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0  # there is one
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # It ends when nothing is left to look after. Not ignored: its containers would ignore it too.
            signal.signal(number, lambda number, frame: None)
        end_what_is_left(root)
        Shepherd(root).run()
        (root / "shepherd.sock").unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
