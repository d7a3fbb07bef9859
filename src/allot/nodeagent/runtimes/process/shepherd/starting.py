"""How a container's first process comes to be.

Each step is said to the shepherd, which says to go on, so that nothing is there without a record:

    the first process is there  ──►  starting.json     then hooks outside, and its world inside
    its world is ready          ──►  started.json      then its command
    its command runs, or cannot ──►  an answer for the agent

It is a child of the shepherd. Where hooks have to be run, or a user namespace be entered, which nobody leaves
again, a helper stands between them until the container runs. That dies with the shepherd, and a first process
whose command is not begun ends by itself.
"""

import json
import os
import signal
import socket
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from . import first, hooks, kernel, processes, words
from .cgroups import Group
from .sandbox import Sandbox

GO = b"go"


@dataclass(frozen=True)
class Order:
    wanted: dict[str, Any]
    directory: Path
    abilities: dict[str, Any]
    sandbox: Sandbox
    stdio: tuple[int, int, int] | None  # None: a terminal
    group: Group


class Word(NamedTuple):
    """What the shepherd is told."""

    said: dict[str, Any]
    files: list[int]


class Begun(NamedTuple):
    helper: int  # 0: it needs none
    first: int  # 0: the helper will say
    talk: socket.socket


def start(order: Order) -> Begun:
    """Raises OSError."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        if order.wanted["hooks"] or "user" in order.sandbox.namespaces:
            return Begun(_fork_helper(order, theirs), 0, ours)
        return Begun(0, _fork_alone(order, theirs), ours)
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()


def heard(talk: socket.socket) -> Word | None:
    """None: it has gone."""
    try:
        data, files, _, _ = socket.recv_fds(talk, words.ROOM, 1)
    except OSError:
        return None
    return Word(json.loads(data), files) if data else None


def say(talk: socket.socket, files: tuple[int, ...] = (), **what: Any) -> None:
    socket.send_fds(talk, [words.written(**what)], files)


# -- without a helper ----------------------------------------------------------------------------


def _fork_alone(order: Order, talk: socket.socket) -> int:
    pid = kernel.fork_inside() if first.has_processes(order.abilities, order.wanted) else os.fork()
    if pid == 0:
        try:
            processes.heed_signals_as_usual()
            cgroups = _enter(order, talk)
            for cgroup in {*cgroups.joined} - {*cgroups.of_commands}:
                os.write(cgroup, b"0")
            processes.close_all_but({talk.fileno(), *(order.stdio or ()), *cgroups.of_commands})
        except BaseException as failed:
            first.refuse(talk, failed)
        first.live(order, talk, cgroups.of_commands)
    return pid


class _Cgroups(NamedTuple):
    """Open files; whoever writes there is in it."""

    joined: list[int]
    of_commands: list[int]  # among them


def _enter(order: Order, talk: socket.socket) -> _Cgroups:
    """What the containers of a pod share, with nothing of the shepherd's."""
    processes.close_all_but({talk.fileno(), *(order.stdio or ()), *order.sandbox.namespaces.values()})
    joining = {path: os.open(path, os.O_WRONLY) for path in order.group.joining}
    order.sandbox.enter()
    return _Cgroups([*joining.values()], [joining[path] for path in order.group.of_commands])


# -- with one ------------------------------------------------------------------------------------


def _fork_helper(order: Order, talk: socket.socket) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            _begin(order, talk)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    return pid


def _begin(order: Order, talk: socket.socket) -> None:
    pid = 0
    try:
        processes.heed_signals_as_usual()
        kernel.die_with_parent(signal.SIGKILL)
        cgroups = _enter(order, talk)
        kernel.die_with_parent(signal.SIGKILL)  # a new user has to say so again
        inner, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = _fork_first(order, {inside.fileno(), *(order.stdio or ()), *cgroups.of_commands})
        if pid == 0:
            first.live(order, inside, cgroups.of_commands)
        inside.close()
        for cgroup in {*cgroups.joined} - {*cgroups.of_commands}:
            os.write(cgroup, str(pid).encode())
        _lead(order, talk, inner, pid)
    except (OSError, hooks.Failed, _Refused) as failed:
        _give_up(talk, pid, str(failed), getattr(failed, "reason", "CreateContainerError"))
    except BaseException:
        _give_up(talk, pid, traceback.format_exc(), "CreateContainerError")


def _fork_first(order: Order, kept: set[int]) -> int:
    if not first.has_processes(order.abilities, order.wanted):
        pid = os.fork()
    elif order.wanted["hooks"]:
        pid = _fork_inside()
    else:
        kernel.unshare(kernel.NEWPID)  # our children are in it from now on: this one alone
        pid = os.fork()
    if pid == 0:
        processes.close_all_but(kept)
    return pid


def _fork_inside() -> int:
    """The first of a namespace of processes. Another process makes that, whose children are in it from then
    on: ours, hooks, stay where we are. When it has gone, the first one is ours."""
    kernel.adopt()
    told, tell = os.pipe()
    other = os.fork()
    if other == 0:
        try:
            kernel.unshare(kernel.NEWPID)
            pid = os.fork()
        except OSError as failed:
            os.write(tell, str(failed).encode())
            os._exit(1)
        if pid == 0:
            return 0
        os.write(tell, str(pid).encode())
        os._exit(0)
    os.close(tell)
    with os.fdopen(told, "rb") as answer:
        said = answer.read(4096).decode()
    if os.waitpid(other, 0)[1] != 0:
        raise OSError(said or "the process that makes a namespace was killed")
    return int(said)


def _lead(order: Order, talk: socket.socket, inner: socket.socket, pid: int) -> None:
    wanted_hooks = order.wanted["hooks"]
    state = hooks.State(order.directory.parent.parent.name, order.directory, pid, order.wanted["annotations"])
    _ask_shepherd(talk, pid=pid)
    for name in ("prestart", "createRuntime"):
        hooks.run(name, wanted_hooks.get(name, []), state.at("creating"))
    ready = _ask_first(inner)
    _ask_shepherd(talk, ready.files, ready=True)
    _let_run(inner)
    hooks.run_all(wanted_hooks.get("poststart", []), state.at("running"))
    say(talk, running=True)


class _Refused(Exception):
    """What the first process could not do."""

    def __init__(self, said: dict[str, Any]) -> None:
        super().__init__(said["error"])
        self.reason = said["reason"]


def _ask_shepherd(talk: socket.socket, files: list[int] | None = None, **what: Any) -> None:
    say(talk, tuple(files or ()), **what)
    if talk.recv(16) != GO:
        raise OSError("the shepherd has gone")


def _ask_first(inner: socket.socket) -> Word:
    inner.send(GO)
    answer = heard(inner)
    if answer is None:
        raise OSError("its first process was killed")
    if "error" in answer.said:
        raise _Refused(answer.said)
    return answer


def _let_run(inner: socket.socket) -> None:
    """It becomes the command, and says nothing more; or why it cannot."""
    inner.send(GO)
    answer = heard(inner)
    if answer is not None:
        raise _Refused(answer.said)


def _give_up(talk: socket.socket, pid: int, why: str, reason: str) -> None:
    if pid:
        processes.kill(pid)
        os.waitpid(pid, 0)
    say(talk, error=why, reason=reason)
