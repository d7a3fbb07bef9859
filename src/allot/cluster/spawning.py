"""The process of an API server, begun before it is known what it shall serve.

Importing takes most of a start. A process that is begun first does that on one core while the one that
begins it does the same on another. It has no options yet and does nothing until it is told (`control`).
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

import allot


class ServerProcess:
    """Given up if nobody `serve`s with it: close it."""

    def __init__(self, module: str, shown: str) -> None:
        """`module` is run with one end of a pair of sockets as its standard input; `shown` is for people who
        look at the list of processes."""
        self.end, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, shown],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": _found_here()},
                start_new_session=True,  # Ctrl-C is for the cluster, which ends in order
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ended(self, within_s: float) -> str:
        """How it has ended. Blocks; when the time is up, it is killed."""
        try:
            status = self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"

    def close(self) -> None:
        self.end.close()
        self._process.kill()
        self._process.wait()


def _found_here() -> str:
    """Where this process has found `allot`, which may be no place that another one looks at."""
    ours = str(Path(allot.__file__).parents[1])
    return os.pathsep.join(filter(None, (ours, os.environ.get("PYTHONPATH"))))
