"""Network interfaces, moved into the network namespace of a pod and back: what `allot driver net` runs.

making       the driver
interfaces   interfaces of the machine
moving       the moves themselves: a CDI hook, and its way back, run as a file
"""

from .interfaces import MachineInterfaces, require_root, spare
from .making import DRIVER, Interface, Interfaces, Offered, driver

__all__ = [
    "DRIVER",
    "Interface",
    "Interfaces",
    "MachineInterfaces",
    "Offered",
    "driver",
    "require_root",
    "spare",
]
