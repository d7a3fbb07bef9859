"""The shepherd: hears agents, containers and the system, and decides nothing.

What it does for one of them never waits for another: whatever takes its time is done by a process of its own.
"""

import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from . import devices, entering, processes, records, sandbox, words
from .cgroups import Cgroups
from .container import Container
from .logs import Pipe
from .sandbox import Sandbox

IDLE_S = 5.0
_READ = 64 * 1024
_FILES_MAX = 3  # that come with a request
_REQUEST_MAX = 16 * 1024 * 1024


@dataclass
class Agent:
    """At the other end of a connection: an agent, or one command of it."""

    talk: socket.socket
    begun: bytes = b""  # of a request
    files: list[int] = field(default_factory=list)
    command: int = 0  # the process that waits for it
    container: str = ""  # that it is attached to
    attached: list[tuple[Pipe, int]] = field(default_factory=list)

    def say(self, **what: Any) -> None:
        with contextlib.suppress(OSError):  # it is heard of when it is read from
            self.talk.sendall(words.written(**what) + b"\n")

    def command_ended(self, status: int) -> None:
        self.command = 0
        self.say(exit=processes.exit_code(status))

    def close(self) -> None:
        self.talk.close()
        for file in self.files:
            os.close(file)


class Shepherd:
    def __init__(self, root: Path, cgroups: Cgroups, abilities: dict[str, Any]) -> None:
        self._root = root
        self._cgroups = cgroups
        self._abilities = abilities
        self._containers: dict[str, Container] = {}  # by directory, relative to the root
        self._starting: dict[str, list[tuple[Agent, int]]] = {}  # and who waits for an answer
        self._ending: dict[str, Container] = {}  # of which the first process has gone
        self._sandboxes: dict[str, Sandbox] = {}  # by pod
        self._children: dict[int, Callable[[int], None]] = {}  # and who is told how they ended
        self._agents: dict[int, Agent] = {}  # by their open file
        self._selector = selectors.DefaultSelector()
        self._idle_since_s = time.monotonic()
        self._is_leaving = False
        self._listening = _listen(root)
        self._follow(self._listening.fileno(), self._welcome)
        woken, wake = socket.socketpair()
        for one in (woken, wake):
            one.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGTERM, self._leave)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        self._woken, self._wake = woken, wake
        self._follow(woken.fileno(), self._reap)

    def run(self) -> None:
        """Until there is nobody, and nothing to look after."""
        while not self._is_idle():
            for key, _ in self._selector.select(timeout=1.0):
                if key.fd in self._selector.get_map():  # what came before may have ended it
                    key.data()
            self._bury()

    def _leave(self, number: int, frame: object) -> None:
        """When nothing is left to look after, though somebody be there."""
        self._is_leaving = True

    def _is_idle(self) -> bool:
        if self._is_leaving and not self._containers:
            return True
        now_s = time.monotonic()
        if self._agents or self._containers:
            self._idle_since_s = now_s
        return now_s - self._idle_since_s > IDLE_S

    def _follow(self, file: int, then: Callable[[], None]) -> None:
        self._selector.register(file, selectors.EVENT_READ, then)

    # -- agents ---------------------------------------------------------------------------------

    def _welcome(self) -> None:
        try:
            talk, _ = self._listening.accept()
        except OSError:
            return  # it has left, or there are too many
        agent = self._agents[talk.fileno()] = Agent(talk)
        self._follow(talk.fileno(), lambda: self._hear(agent))

    def _hear(self, agent: Agent) -> None:
        try:
            data, files, _, _ = socket.recv_fds(agent.talk, _READ, _FILES_MAX)
        except OSError:
            data, files = b"", []
        agent.files += files
        if not data or len(agent.begun) > _REQUEST_MAX:
            self._part(agent)
            return
        *lines, agent.begun = (agent.begun + data).split(b"\n")
        for line in lines:
            asked = json.loads(line)
            try:
                self._do(agent, asked)
            except (OSError, ValueError) as failed:
                agent.say(id=asked["id"], error=str(failed))

    def _part(self, agent: Agent) -> None:
        if self._agents.pop(agent.talk.fileno(), None) is None:
            return
        self._selector.unregister(agent.talk.fileno())
        if agent.command:
            with contextlib.suppress(ProcessLookupError):
                os.kill(agent.command, signal.SIGTERM)
        for pipe, file in agent.attached:
            pipe.detach(file)
        agent.close()

    def _do(self, agent: Agent, asked: dict[str, Any]) -> None:
        match asked["do"]:
            case "start":
                self._start(agent, asked)
                return
            case "execute" | "attach" | "connect":
                self._serve(agent, asked)
                return
            case "signal":
                if asked["container"] in self._containers:
                    self._containers[asked["container"]].signal(asked["number"])
            case "remove":
                self._remove(asked["pod"])
            case "greet":
                pass
            case other:
                raise ValueError(f"{other!r} is nothing that it does")
        agent.say(id=asked["id"])

    def _serve(self, agent: Agent, asked: dict[str, Any]) -> None:
        """Something for which a connection is there alone, until it closes."""
        if asked["do"] == "connect":
            pod = self._sandboxes.get(asked["pod"])
            if pod is None or not pod.has_network:
                agent.say(id=asked["id"], is_of_machine=True)
            else:
                self._await_command(agent, entering.connection(pod, asked["port"], agent.talk))
            return
        container = self._containers.get(asked["container"])
        if container is None or container.ended_s is not None or asked["container"] in self._starting:
            raise ValueError("the container does not run")
        if asked["do"] == "attach":
            self._attach(agent, asked["container"], container)
            return
        files, agent.files = agent.files, []
        try:
            self._await_command(
                agent, entering.command(container, asked["command"], asked["tty"], files, agent.talk)
            )
        finally:
            for file in files:
                os.close(file)

    def _await_command(self, agent: Agent, pid: int) -> None:
        agent.command = pid
        self._children[pid] = agent.command_ended

    def _attach(self, agent: Agent, name: str, container: Container) -> None:
        agent.container = name
        for pipe in container.pipes:
            file = os.dup(agent.files[pipe.stream == "stderr"])
            pipe.attach(file)
            agent.attached.append((pipe, file))
        while agent.files:
            os.close(agent.files.pop())
        stdin = [container.stdin] if container.stdin is not None else []
        socket.send_fds(agent.talk, [b'{"running": true}\n'], stdin)
        if stdin and container.wanted["stdin_once"] and not container.wanted["tty"]:
            os.close(stdin[0])
            container.stdin = None  # its input ends when theirs does

    # -- containers -----------------------------------------------------------------------------

    def _start(self, agent: Agent, asked: dict[str, Any]) -> None:
        name, directory = asked["container"], self._root / asked["container"]
        if name in self._starting:
            self._starting[name].append((agent, asked["id"]))
            return
        if (directory / records.STARTED).exists():
            agent.say(id=asked["id"])  # asked for twice
            return
        directory.mkdir(parents=True, exist_ok=True, mode=0o750)
        try:
            pod = self._sandbox(asked)
            rules = None if asked["privileged"] else _rules(asked["devices"])
            group = self._cgroups.make(name.replace("/", "_"), asked["limits"], rules)
        except OSError:
            records.forget(directory)
            raise
        try:
            container = Container(directory, asked, self._abilities, pod, group)
        except OSError:
            group.remove()
            records.forget(directory)
            raise
        self._containers[name], self._starting[name] = container, [(agent, asked["id"])]
        if container.helper:
            self._children[container.helper] = container.helper_ended
        if container.pid:
            self._children[container.pid] = partial(self._first_ended, name, container)
        self._follow(container.talk.fileno(), lambda: self._hear_of(name, container))
        self._follow_pipes(container)

    def _follow_pipes(self, container: Container) -> None:
        for pipe in container.pipes:
            self._follow(pipe.number, partial(self._drain, container, pipe))

    def _sandbox(self, asked: dict[str, Any]) -> Sandbox:
        pod = asked["container"].partition("/")[0]
        if pod not in self._sandboxes:
            self._sandboxes[pod] = sandbox.made(asked, self._abilities)
        found = self._sandboxes[pod]
        user = self._abilities["uid"] if asked["user"] is None else asked["user"]
        if "user" in found.namespaces and user != found.user:
            raise OSError(f"user {user}: this machine gives a pod one user, and that is {found.user}")
        return found

    def _hear_of(self, name: str, container: Container) -> None:
        has_pipes = bool(container.pipes)
        if not container.hear():
            self._children[container.pid] = partial(self._first_ended, name, container)
            if not has_pipes:  # a terminal, perhaps
                self._follow_pipes(container)
            return
        self._selector.unregister(container.talk.fileno())
        answer: dict[str, Any] = {}
        if container.error is not None:
            answer = {"error": container.error[0], "reason": container.error[1]}
            for pipe in container.pipes:
                self._selector.unregister(pipe.number)
            container.give_up()
            del self._containers[name]
            self._ending.pop(name, None)
        for agent, number in self._starting.pop(name):
            agent.say(id=number, **answer)

    def _drain(self, container: Container, pipe: Pipe) -> None:
        if not pipe.read():
            self._selector.unregister(pipe.number)
            container.pipes.remove(pipe)
            pipe.close()

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._woken.recv(4096):
                pass
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                if pid in self._children:
                    self._children.pop(pid)(status)
        for pid in processes.children() - self._children.keys():
            processes.kill(pid)  # its container has ended; its own children are next

    def _first_ended(self, name: str, container: Container, status: int) -> None:
        container.first_ended(status)
        if self._containers.get(name) is container:  # not one that was given up
            self._ending[name] = container

    def _bury(self) -> None:
        for name, container in tuple(self._ending.items()):
            if name in self._starting or not self._is_over(container):
                continue
            try:
                code = container.record()
            except OSError:
                continue  # HERD4: in a second, or when something happens
            for pipe in container.pipes:
                self._selector.unregister(pipe.number)
            del self._containers[name], self._ending[name]
            for agent in tuple(self._agents.values()):
                if agent.container == name:
                    agent.say(exit=code)
                else:
                    agent.say(ended=name)
            container.close()

    def _is_over(self, container: Container) -> bool:
        is_over = container.is_over()
        if container.helper:
            self._children[container.helper] = container.helper_ended
        return is_over

    def _remove(self, pod: str) -> None:
        shutil.rmtree(self._root / pod, ignore_errors=True)
        if pod in self._sandboxes:
            self._sandboxes.pop(pod).close()


def _rules(nodes: list[dict[str, Any]]) -> list[str]:
    return [rule for rule in map(devices.rule, nodes) if rule is not None]


def _listen(root: Path) -> socket.socket:
    path = root / "shepherd.sock"
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    with _short(path) as address:
        listening.bind(address)
    os.chmod(path, 0o600)
    listening.listen(64)
    return listening


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """The system takes 107 bytes; an open directory has a short name."""
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)
