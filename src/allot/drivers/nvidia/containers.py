"""What a container gets with a GPU: its device node, those that every GPU needs, and the driver's files.
Pure.

`NVIDIA_VISIBLE_DEVICES=void` tells NVIDIA's own container hooks, where a machine has them, that this
container has all that it should. A partition needs its GPU's node too, and is opened by nodes of its
own.
"""

from collections.abc import Iterable
from typing import Final

from allot.driver import DeviceNode, Edits, Mount

from .backend import Opened
from .inventory import Gpu, Inventory, Node

HANDS_OFF: Final = "NVIDIA_VISIBLE_DEVICES=void"
CAPABILITIES: Final = "/dev/nvidia-caps/nvidia-cap"


def edits(inventory: Inventory, gpu: Gpu, opened: Opened, variables: Iterable[str]) -> Edits:
    nodes = (
        *((gpu.node,) if gpu.node is not None else ()),
        *inventory.control_nodes,
        *(
            Node(f"{CAPABILITIES}{minor}", inventory.capabilities_major, minor)
            for minor in opened.capability_minors
        ),
    )
    return Edits(
        env=(HANDS_OFF, *variables),
        device_nodes=tuple(DeviceNode(one.path, type="c", major=one.major, minor=one.minor) for one in nodes),
        mounts=tuple(
            Mount(path, path, ("ro", "nosuid", "nodev", "bind"))
            for path in (*inventory.libraries, *inventory.programs)
        ),
    )
