"""The port: what a node does with a pod, and what it sees of it.

A machine knows containers and devices and nothing of the API; the loops know the API and no
containers. Three of them are meant: one whose states follow from times (`hollow`), one that a
script tells what to do (`sim`), and one with real containers.

What a machine promises
    N3  Every deed may be repeated, any number of times and after any crash, with the effect of once.
    N5  `standing` names whatever is there of a pod, also what an earlier process began.
    No call waits for a container: it does what is due, and says what it saw. What happens later is
    looked for at the moment that the answer names, or when the machine calls whoever asked to hear.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from allot.api import Object

from .claims import ClaimRef

Devices = Mapping[str, tuple[str, ...]]
"""What was prepared: for each claim, by uid, the names by which a runtime knows its devices."""


class Waiting(NamedTuple):
    """It does not run. One that is to run again says so here, and its last end lies beside."""

    reason: str
    message: str = ""


class Running(NamedTuple):
    started_at: str


class Terminated(NamedTuple):
    """It has ended, and will not run again."""

    exit_code: int
    started_at: str
    finished_at: str
    reason: str = ""  # as the runtime has it; else it follows from the exit code
    message: str = ""  # what the container left to be read, or the end of its output
    id: str = ""  # of the container that ended so


State = Waiting | Running | Terminated


class DeviceHealth(NamedTuple):
    id: str
    health: str
    message: str = ""


class Container(NamedTuple):
    name: str
    state: State
    restarts: int = 0
    last: Terminated | None = None  # how it ended before
    id: str = ""
    image_id: str = ""
    health: tuple[tuple[str, tuple[DeviceHealth, ...]], ...] = ()  # of its devices, by what asked for them
    # While it runs: what its probes say. Without probes it is both at once.
    is_started: bool = True
    is_ready: bool = True
    resources: Mapping[str, Any] | None = None  # requests and limits that it was started with


class Observed(NamedTuple):
    """A pod as its machine sees it. Without containers nothing has begun."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    addresses: tuple[str, ...] = ()  # by which others reach it
    reason: str = ""  # why the pod has ended, where it is not for its containers' sake
    message: str = ""
    ephemeral_containers: tuple[Container, ...] = ()
    host: str = ""  # the node's own address
    is_stillborn: bool = False  # an init container has failed for good: the others never run
    again_s: float | None = None  # when to look again, by the monotonic clock; None: when told

    @property
    def runs(self) -> bool:
        """Some container lives."""
        every = (*self.containers, *self.init_containers, *self.ephemeral_containers)
        return any(isinstance(one.state, Running) for one in every)

    @property
    def has_ended(self) -> bool:
        """Nothing runs or will; sidecars neither."""
        if self.runs or not self.containers:
            return False
        if self.is_stillborn or self.reason:
            return True
        return all(isinstance(one.state, Terminated) for one in self.containers)

    @property
    def seen(self) -> "Observed":
        """Without the moment, which concerns nobody else."""
        return self._replace(again_s=None) if self.again_s is not None else self


NOTHING = Observed()


class Rejected(Exception):
    """The pod never starts here, in the words of a kubelet. Raised before anything of it has begun."""

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(why)
        self.reason, self.message = reason, f"Pod was rejected: {why}"


class Found(NamedTuple):
    """What is there of a pod when a node is taken over."""

    pod: Object  # as it was when the machine was last asked about it
    claims: tuple[ClaimRef, ...] = ()  # prepared, or about to be
    devices: Devices | None = None  # None: not all drivers have answered
    observed: Observed = NOTHING
    reported: Observed = NOTHING  # what of it the API is known to show


class Machine(Protocol):
    async def standing(self, node: str) -> Sequence[Found]:
        """Everything that is there, asked once when the node is taken over (N5)."""

    async def prepare(self, node: str, pod: Object, claims: Sequence[Object]) -> Devices:
        """Make the devices of these claims ready for the pod.

        Raises Rejected; NotReady; and Unfinished when some driver may have done its part: then the machine
        is asked again, or to unprepare.
        """

    async def run(self, node: str, pod: Object, devices: Devices) -> Observed:
        """Start, restart and end what is due now. Raises Rejected."""

    async def stop(self, node: str, pod: Object, grace_s: float) -> Observed:
        """Tell what runs to end, and end it once it has had `grace_s` seconds since it was first told."""

    async def unprepare(self, node: str, pod: Object, claims: Sequence[ClaimRef]) -> None:
        """The pod needs the devices no more; nothing of it runs (N7). Raises NotReady: not yet done."""

    async def remove(self, node: str, pod_uid: str) -> None:
        """Its end is reported: nothing of the pod needs to be remembered."""

    def changed(self, hear: Callable[[str], None]) -> None:
        """Call `hear` with the uid of each pod whose containers have changed by themselves."""
