"""The driver of loop devices. Pure, but for the port.

The room for files is one device, `loop`, which claims share: each asks for a part of its capacity
`storage` and gets a block device of that size, which is its own. What was written there is gone with the
claim.
"""

from typing import Final, NamedTuple, Protocol

from allot.api import Quantity
from allot.driver import (
    Allocated,
    Capacity,
    Claim,
    Device,
    DeviceNode,
    Driver,
    Edits,
    Entry,
    Given,
    Held,
    Node,
    NotUsable,
    Pool,
    capitals,
)

DRIVER: Final = "loop.allot.dev"
DEVICE, STORAGE = "loop", "storage"
SMALLEST, USUAL = "1Mi", "1Gi"


class Attached(NamedTuple):
    """A block device."""

    path: str
    major: int
    minor: int


class Volumes(Protocol):
    """The port: files that are block devices."""

    def attach(self, name: str, size: int) -> Attached:
        """The device of a file, made unless it is there. Raises OSError."""

    def detach(self, name: str) -> None:
        """Neither device nor file is left. Raises OSError."""

    def let_go(self, name: str) -> None:
        """The device is free again; the file stays, and can be attached again. Raises OSError."""

    def sweep(self) -> None:
        """No device is left whose file was removed behind our back."""


def driver(volumes: Volumes, size: int) -> Driver:
    """With room for so many bytes."""
    one = _Loop(volumes, size)
    return Driver(DRIVER, one.pools, one.prepare, one.unprepare, put_away=one.put_away)


class _Loop:
    def __init__(self, volumes: Volumes, size: int) -> None:
        self._volumes, self._size = volumes, size

    def pools(self, node: Node) -> list[Pool]:
        self._volumes.sweep()
        whole = Quantity.parse(self._size)
        usual = USUAL if whole >= Quantity.parse(USUAL) else str(self._size)
        storage = Capacity(str(self._size), default=usual, min=SMALLEST, step=SMALLEST)
        return [Pool(node.name, [Device(DEVICE, {"type": "loop"}, {STORAGE: storage}, shared=True)])]

    def prepare(self, claim: Claim) -> Given:
        return {one: self._given(claim, one) for one in claim.devices}

    def unprepare(self, entry: Entry) -> None:
        for held in entry.devices:
            self._volumes.detach(_name(entry.uid, held))

    def put_away(self, entry: Entry) -> None:
        for held in entry.devices:
            self._volumes.let_go(_name(entry.uid, held))

    def _given(self, claim: Claim, one: Allocated) -> Edits:
        asked = one.consumed.get(STORAGE)
        if asked is None:
            raise NotUsable(f"claim {claim}: its allocation does not say how much {STORAGE} it has")
        size = Quantity.parse(asked).as_int()
        made = self._volumes.attach(_name(claim.uid, one), size)
        node = DeviceNode(made.path, type="b", major=made.major, minor=made.minor, permissions="rw")
        return Edits(env=(f"LOOP_DEVICE_{capitals(one.request)}={made.path}",), device_nodes=(node,))


def _name(uid: str, one: Allocated | Held) -> str:
    """Of a file: a claim may have several parts, and each has an id of its own."""
    return f"{uid}-{one.share_id or one.request.replace('/', '.')}"
