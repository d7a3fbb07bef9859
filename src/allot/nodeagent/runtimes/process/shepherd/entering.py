"""A command in a container that runs, and a connection to a port of a pod's network.

For each there is a process of its own, which enters the namespaces and is gone with what it began.
"""

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

from . import first, kernel, processes
from .container import Container
from .sandbox import Sandbox

_NAMESPACES = ("user", "ipc", "uts", "net", "pid", "mnt")
NOT_FOUND, NOT_POSSIBLE = 127, 126
_CONNECT_S = 10.0


def command(
    container: Container, words: Sequence[str], tty: bool, files: list[int], talk: socket.socket
) -> int:
    """The process that waits for it. `files` are its input, output and errors; with a terminal whoever asked
    gets that over `talk`."""
    pid = os.fork()
    if pid:
        return pid
    code = NOT_POSSIBLE
    try:
        processes.heed_signals_as_usual()
        kernel.die_with_parent(signal.SIGKILL)
        processes.close_all_but({talk.fileno(), *files})
        if not tty:
            os.dup2(files[2], 2)
        code = _run(container, words, tty, files, talk)
    except first.CannotRun as failed:
        code = NOT_FOUND if "not found" in str(failed) else NOT_POSSIBLE
        _complain(str(failed), talk)
    except BaseException as failed:
        _complain(str(failed), talk)
    os._exit(code)


def _complain(why: str, talk: socket.socket) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"{why}\n".encode())
        talk.close()


def _run(container: Container, words: Sequence[str], tty: bool, files: list[int], talk: socket.socket) -> int:
    wanted: dict[str, Any] = {**container.wanted, "command": list(words), "tty": tty}
    cgroups = [os.open(path, os.O_WRONLY) for path in container.group.joining]
    enter(container.pid)
    kernel.die_with_parent(signal.SIGKILL)
    if tty:
        master, slave = os.openpty()
        wanted["env"] = {"TERM": "xterm", **wanted["env"]}
        os.dup2(slave, 2)
        socket.send_fds(talk, [b'{"running": true}\n'], [master])
        os.close(master)
        files = [slave, slave, slave]
    main = first.begin(wanted, str(container.directory), (files[0], files[1], files[2]), cgroups)
    talk.close()
    for file in (*files, *cgroups):
        with contextlib.suppress(OSError):
            os.close(file)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)

    def end(number: int, frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(main, signal.SIGKILL)

    signal.signal(signal.SIGTERM, end)
    while True:
        pid, status = os.wait()
        if pid == main:
            return processes.exit_code(status)


def enter(pid: int) -> None:
    """The namespaces of a process, where they are not ours."""
    opened = [(name, os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY)) for name in _NAMESPACES]
    for name, namespace in opened:
        if os.fstat(namespace).st_ino != os.stat(f"/proc/self/ns/{name}").st_ino:
            kernel.enter(namespace)
        os.close(namespace)


def connection(sandbox: Sandbox, port: int, talk: socket.socket) -> int:
    """The process that makes it: whoever asked gets it over `talk`, or the reason."""
    pid = os.fork()
    if pid:
        return pid
    try:
        processes.heed_signals_as_usual()
        processes.close_all_but({talk.fileno(), *sandbox.namespaces.values()})
        sandbox.enter()
        with socket.socket() as made:
            made.settimeout(_CONNECT_S)
            made.connect(("127.0.0.1", port))
            made.setblocking(False)
            socket.send_fds(talk, [b'{"running": true}\n'], [made.fileno()])
    except OSError as failed:
        os._exit(failed.errno or 1)
    except BaseException as failed:
        print(failed, file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)
