"""The first process inside a container: it makes the container's world, and then becomes its command.

With the first process of a namespace everything in that ends. Where the container has no namespace of
processes this one stays instead, and begins the command: signals that it gets it hands on to that, and when
the command ends it kills what is left below, and ends with the same code.
"""

import contextlib
import fcntl
import os
import signal
import socket
import termios
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from . import hooks, kernel, processes, words
from .world import World

if TYPE_CHECKING:
    from .starting import Order

_HANDED_ON = set(signal.valid_signals()) - {
    signal.SIGKILL,
    signal.SIGSTOP,
    signal.SIGCHLD,
    signal.SIGSEGV,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
}


def has_processes(abilities: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Of its own: a namespace of processes."""
    return "pid" in abilities["isolates"] and not wanted["host_pid"]


def live(order: "Order", inside: socket.socket, cgroups: list[int]) -> NoReturn:
    try:
        if not inside.recv(16):
            os._exit(1)
        _make_world(order)
        stdio, files = order.stdio, []
        if stdio is None:
            master, slave = os.openpty()
            stdio, files = (slave, slave, slave), [master]
        socket.send_fds(inside, [words.written(ready=True)], files)
        for file in files:
            os.close(file)
        if not inside.recv(16):
            os._exit(1)
        if has_processes(order.abilities, order.wanted):
            _become(order.wanted, str(order.directory), stdio, cgroups)
        _stay(order, stdio, cgroups)
    except BaseException as failed:
        refuse(inside, failed)


def refuse(inside: socket.socket, failed: BaseException) -> NoReturn:
    """It says why it cannot live, and does not."""
    is_known = isinstance(failed, (OSError, hooks.Failed, CannotRun))
    why = str(failed) if is_known else "".join(traceback.format_exception(failed))
    reason = "RunContainerError" if isinstance(failed, CannotRun) else "CreateContainerError"
    try:
        inside.send(words.written(error=why, reason=reason))
    finally:
        os._exit(1)  # whatever comes: this is a fork, and what called it is the shepherd's


def _stay(order: "Order", stdio: tuple[int, int, int], cgroups: list[int]) -> NoReturn:
    kernel.adopt()
    processes.call(f"allot container {order.wanted['container']}")
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDED_ON)
    main = begin(order.wanted, str(order.directory), stdio, cgroups)
    for number in _HANDED_ON:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, lambda number, frame: _hand_on(main, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDED_ON)
    processes.close_all_but(set())  # that nothing more is said says that it runs
    os._exit(_wait(main))


def _make_world(order: "Order") -> None:
    wanted, isolates = order.wanted, order.abilities["isolates"]
    if "mount" not in isolates:
        return
    kernel.unshare(kernel.NEWNS)
    root = f"{order.directory}/root"
    world = World(root, is_read_only=wanted["read_only_root"])
    for one in wanted["mounts"]:
        if not is_below_dev(one["target"]):
            world.mount(one)
    makes_nodes = "user" not in order.sandbox.namespaces
    world.give_devices(wanted["devices"], keeps_dev=wanted["privileged"], makes_nodes=makes_nodes)
    for one in wanted["mounts"]:
        if is_below_dev(one["target"]):
            world.mount(one)
    if has_processes(order.abilities, order.wanted):
        world.give_processes()
    world.finish()
    state = hooks.State(
        order.directory.parent.parent.name, order.directory, os.getpid(), wanted["annotations"]
    )
    hooks.run("createContainer", wanted["hooks"].get("createContainer", []), state.at("creating"))
    kernel.change_root(root)
    hooks.run("startContainer", wanted["hooks"].get("startContainer", []), state.at("created"))


def is_below_dev(path: str) -> bool:
    return path.startswith("/dev/")


class CannotRun(Exception):
    """The command; the message says why."""


def begin(wanted: Mapping[str, Any], directory: str, stdio: tuple[int, int, int], cgroups: list[int]) -> int:
    """Fork the command. Raises CannotRun."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _become(wanted, directory, stdio, cgroups)
        except CannotRun as failed:
            os.write(tell, str(failed).encode())
        os._exit(127)
    os.close(tell)
    with os.fdopen(told, "rb") as answer:
        why = answer.read().decode(errors="replace")
    if why:
        os.waitpid(pid, 0)
        raise CannotRun(why)
    return pid


def _become(
    wanted: Mapping[str, Any], directory: str, stdio: tuple[int, int, int], cgroups: list[int]
) -> None:
    """The command itself. Raises CannotRun."""
    what = wanted["command"][0]
    try:
        _dress(wanted, stdio, cgroups)
        os.chdir(wanted["directory"] or directory)
    except Exception as failed:
        raise CannotRun(str(failed)) from None
    try:
        os.execvpe(what, wanted["command"], wanted["env"])
    except FileNotFoundError:
        raise CannotRun(f"exec: {what!r}: executable file not found on this machine") from None
    except Exception as failed:
        raise CannotRun(str(failed)) from None


def _dress(wanted: Mapping[str, Any], stdio: tuple[int, int, int], cgroups: list[int]) -> None:
    for number in _HANDED_ON:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDED_ON)
    for cgroup in cgroups:
        os.write(cgroup, b"0")
    os.setsid()
    for standard, file in enumerate(stdio):
        os.dup2(file, standard)
    if wanted["tty"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        if wanted["sets_user"] and wanted["user"] is not None:
            os.fchown(0, wanted["user"], -1)
    if wanted["affinity"]:
        os.sched_setaffinity(0, wanted["affinity"])
    if wanted["sets_user"]:
        os.setgroups(wanted["groups"])
        if wanted["group"] is not None:
            os.setgid(wanted["group"])
    if wanted["capabilities"] is not None:
        kernel.keep_capabilities(set(wanted["capabilities"]))
    if wanted["sets_user"] and wanted["user"] is not None:
        os.setuid(wanted["user"])
    if not wanted["may_gain_rights"]:
        kernel.gain_nothing()


def _hand_on(main: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(main, number)


def _wait(main: int) -> int:
    code = 1
    while True:
        pid, status = os.wait()
        if pid == main:
            code = processes.exit_code(status)
            break
    with contextlib.suppress(ChildProcessError):
        while True:  # HERD2
            for pid in processes.children():
                processes.kill(pid)
            os.wait()
    return code
