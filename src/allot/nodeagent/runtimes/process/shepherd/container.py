"""One attempt of a container, from the moment in which it is asked for to the record of its end."""

import contextlib
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

from . import first, hooks, processes, records, starting
from .cgroups import Group
from .logs import Log, Pipe
from .sandbox import Sandbox

_PIPE_S = 1.0  # how long output may follow the end, where somebody else holds the pipe
SHORT_OF_MEMORY = "OOMKilled"


class Container:
    def __init__(
        self,
        directory: Path,
        wanted: dict[str, Any],
        abilities: dict[str, Any],
        sandbox: Sandbox,
        group: Group,
    ) -> None:
        """Raises OSError: it cannot be started."""
        self.directory, self.wanted, self.group = directory, wanted, group
        self.pid = 0  # of its first process
        self.helper = 0  # a process of ours that does something for it
        self.error: tuple[str, str] | None = None  # why it cannot run, and how a state calls that
        self.ended_s: float | None = None
        self.pipes: list[Pipe] = []
        self.stdin: int | None = None  # where its input is written; a terminal: all of it
        self._code, self._reason = 0, ""
        self._is_ready = False  # to become its command
        self._ended_by = 0  # a signal that its first process was shielded from
        self._is_wrapped = not first.has_processes(abilities, wanted)
        self._has_stopped = False  # what its devices want to have run at the end has run
        self._log = Log(directory, wanted["log_bytes"], wanted["log_files"])
        inside: tuple[int, int, int] | None = None
        try:
            records.reserve(directory / records.ENDED)
            if wanted["hooks"]:
                hooks.write_bundle(directory, wanted)
            inside = None if wanted["tty"] else self._open_pipes(with_input=wanted["stdin"])
            order = starting.Order(wanted, directory, abilities, sandbox, inside, group)
            self.helper, self.pid, self.talk = starting.start(order)
            self._is_led = bool(self.helper)
            if not self._is_led:
                self._go_on(records.STARTING)
        except BaseException:
            self.close()
            raise
        finally:
            for file in inside or ():
                os.close(file)

    def _open_pipes(self, *, with_input: bool) -> tuple[int, int, int]:
        """Those that are the container's."""
        out, write_out = os.pipe()
        err, write_err = os.pipe()
        self.pipes = [Pipe(out, "stdout", self._log), Pipe(err, "stderr", self._log)]
        if with_input:
            read_in, self.stdin = os.pipe()
        else:
            read_in = os.open(os.devnull, os.O_RDONLY)
        return read_in, write_out, write_err

    def hear(self) -> bool:
        """What is said by the process that starts it. True: it runs, or it does not (`error`)."""
        word = starting.heard(self.talk)
        if word is None and self._is_ready and not self._is_led:
            return True  # it has become its command
        said, files = word or starting.Word({"error": "it was killed before it ran"}, [])
        try:
            match said:
                case {"pid": int(pid)}:
                    self.pid = pid
                    self._go_on(records.STARTING)
                case {"ready": _}:
                    for file in files:
                        self._open_terminal(file)
                    self._is_ready = True
                    self._go_on(records.STARTED)
                case {"error": why, **more}:
                    self.error = why, str(more.get("reason", "CreateContainerError"))
                case _:
                    return True
        except OSError as failed:
            self.error = str(failed), "CreateContainerError"
        return self.error is not None

    def _go_on(self, record: str) -> None:
        """HERD1. Raises OSError."""
        begun = records.begun(self.pid, self.wanted, self.group.directories, is_wrapped=self._is_wrapped)
        records.write(self.directory / record, begun)
        if record == records.STARTED:
            (self.directory / records.STARTING).unlink()
        self.talk.send(starting.GO)

    def _open_terminal(self, master: int) -> None:
        os.set_inheritable(master, False)
        self.pipes = [Pipe(master, "stdout", self._log)]
        self.stdin = os.dup(master)

    def signal(self, number: int) -> None:
        """To its command and what that started, as a terminal does. The kernel shields the first process of
        a namespace, which the command is, from what would end it: a container that does nothing about a
        signal ends by it all the same, with all that is in it."""
        if not self.pid or self.ended_s is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._is_wrapped or number == signal.SIGKILL:
                os.kill(self.pid, number)
            elif processes.is_shielded(self.pid, number):
                self._ended_by = number
                os.kill(self.pid, signal.SIGKILL)
            else:
                os.killpg(self.pid, number)

    def helper_ended(self, status: int) -> None:
        self.helper = 0

    def first_ended(self, status: int) -> None:
        code = processes.exit_code(status)
        if self._ended_by and code == 128 + signal.SIGKILL:
            code = 128 + self._ended_by
        self.ended_s, self._code = time.monotonic(), code

    def is_over(self) -> bool:
        """It has ended, its output is read, and what was to follow has been done."""
        if self.ended_s is None or self.helper:
            return False
        if self.pipes and time.monotonic() - self.ended_s < _PIPE_S:
            return False
        if not self._has_stopped:
            self._has_stopped = True
            is_short = self._code == 128 + signal.SIGKILL and self.group.was_short_of_memory
            self._reason = SHORT_OF_MEMORY if is_short else ""
            self.group.remove()
            self._run_last_hooks()
        return not self.helper

    def _run_last_hooks(self) -> None:
        last = self.wanted["hooks"].get("poststop", [])
        if not last:
            return
        self.helper = os.fork()
        if self.helper == 0:
            processes.heed_signals_as_usual()
            processes.close_all_but(set())
            pod = self.directory.parent.parent.name
            state = hooks.State(pod, self.directory, self.pid, self.wanted["annotations"])
            hooks.run_all(last, state.at("stopped"))
            os._exit(0)

    def record(self) -> int:
        """The exit code. Whoever sees the end sees all that was printed.

        Raises OSError: there is no room (HERD4). A directory that is gone needs none.
        """
        for pipe in self.pipes:
            pipe.finish()
        with contextlib.suppress(OSError):
            (self.directory / "root").rmdir()
        with contextlib.suppress(FileNotFoundError):
            records.write(self.directory / records.ENDED, records.ended(self._code, self._reason))
        return self._code

    def give_up(self) -> None:
        """It never ran."""
        if self.pid:
            processes.kill(self.pid)
        self.close()
        records.forget(self.directory)

    def close(self) -> None:
        """And what it had on the machine."""
        for pipe in self.pipes:
            pipe.close()
        if self.stdin is not None:
            os.close(self.stdin)
        talk: socket.socket | None = getattr(self, "talk", None)
        if talk is not None:
            talk.close()
        self._log.close()
        self.group.remove()
