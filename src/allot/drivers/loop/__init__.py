"""Block devices on files of the size that a claim asks for: what `allot driver loop` runs. Needs root.

attaching   files and loop devices of the machine
making      the driver: room for files as one device, of which each claim takes a part
"""

from .attaching import CannotAttach, LoopDevices, room
from .making import DRIVER, Attached, Volumes, driver

__all__ = ["DRIVER", "Attached", "CannotAttach", "LoopDevices", "Volumes", "driver", "room"]
