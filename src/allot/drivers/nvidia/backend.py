"""The port: what this driver asks of GPUs, those of the machine (`nvml`) or those of a recording."""

from typing import NamedTuple, Protocol

from .inventory import Gpu, Inventory
from .published import Partition


class NotThere(OSError):
    """The machine has no such thing. The message says what was looked for."""


class Xid(NamedTuple):
    """A GPU's driver reports an error, by number."""

    uuid: str
    number: int


class Lost(NamedTuple):
    """A GPU does not answer any more."""

    uuid: str


class Well(NamedTuple):
    """A GPU was repaired. Only people say so."""

    uuid: str


Event = Xid | Lost | Well


class Opened(NamedTuple):
    """A partition that containers can use."""

    capability_minors: tuple[int, ...] = ()  # of the device nodes that open it


class Backend(Protocol):
    def inventory(self) -> Inventory: ...

    def happened(self) -> tuple[Event, ...]:
        """What befell GPUs since this was last asked. Waits for nothing."""

    def cut(self, wanted: Partition) -> Opened:
        """Make a partition, unless it is there. Raises OSError."""

    def merge(self, wanted: Partition) -> None:
        """Take a partition away, if it is there. Raises OSError."""

    def slice_time(self, gpu: Gpu, interval: int) -> None:
        """How long a process goes before the next has its turn: 0 is the driver's own choice, 1 to 3 are
        short to long. Raises OSError."""


class Recorded:
    """GPUs of a recording: nothing befalls them, and their partitions are made up."""

    def __init__(self, recording: Inventory) -> None:
        self._recording = recording

    def inventory(self) -> Inventory:
        return self._recording

    def happened(self) -> tuple[Event, ...]:
        return ()

    def cut(self, wanted: Partition) -> Opened:
        """Two nodes for each slice of memory, so that no two partitions of a GPU share one."""
        first = 2 * (wanted.gpu.minor * 16 + wanted.placement.start) + 1
        return Opened((first, first + 1))

    def merge(self, wanted: Partition) -> None: ...

    def slice_time(self, gpu: Gpu, interval: int) -> None: ...
