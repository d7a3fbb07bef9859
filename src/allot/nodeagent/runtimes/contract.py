"""The port: what the agent asks of a container runtime.

A container is started again under the next number; each of its runs is an attempt. What has ended stays known
until the pod is removed, however often the agent begins anew (N5).

What a runtime promises
    RUN1  `attempts` names every attempt that began and is not removed, whoever asked for it.
    RUN2  An attempt begins once: to start one that is there already changes nothing.
    RUN3  When an attempt has ended, nothing that it started is left.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from allot.wire import cdi


class CannotStart(Exception):
    """The message says why, and what would help."""


class ContainerSpec(NamedTuple):
    pod_uid: str
    name: str
    number: int  # of the attempt: 0, 1, ...
    command: tuple[str, ...]
    env: Mapping[str, str]
    directory: str = ""
    edits: cdi.ContainerEdits = cdi.ContainerEdits()
    crashes: int = 0  # how many attempts before it ended at once, one after the other


class Attempt(NamedTuple):
    pod_uid: str
    name: str
    number: int
    started_at: float  # Unix time
    finished_at: float | None = None  # None: it runs
    exit_code: int | None = None
    crashes: int = 0
    log: str = ""  # where its output lies

    @property
    def runs(self) -> bool:
        return self.finished_at is None


class Runtime(Protocol):
    async def attempts(self) -> Sequence[Attempt]:
        """RUN1."""

    async def start(self, container: ContainerSpec) -> Attempt:
        """RUN2. Raises CannotStart."""

    async def signal(self, attempt: Attempt, number: int) -> None:
        """To everything that the attempt started. One that has ended hears nothing."""

    async def remove(self, pod_uid: str) -> None:
        """Nothing of the pod runs, and nothing of it needs to be known."""

    def changed(self, hear: Callable[[Attempt], None]) -> None:
        """Call `hear` with each attempt that has ended."""
