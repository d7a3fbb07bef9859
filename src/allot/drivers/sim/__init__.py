"""The devices of a fleet of the catalogue, without hardware: what `allot driver sim` runs.

A node gets the machine that the fleet has under its name, or the one that was asked for; each driver of
that machine is served. Containers are told their devices: `DEVICE_<NAME>=<driver>/<pool>/<device>` and,
where that is wanted, a file under `/run/allot/devices`. What the machine has counted is served by a device
plugin.

    declared   devices of the catalogue as the kit's values
    counted    devices that are only counted
    faults     what goes wrong, and when: pure
    making     the drivers of a node
"""

from .declared import pool
from .faults import Faults
from .making import BUILD_HELP, Kept, UnknownBuild, drivers, offers, plugins, simulated

__all__ = [
    "BUILD_HELP",
    "Faults",
    "Kept",
    "UnknownBuild",
    "drivers",
    "offers",
    "plugins",
    "pool",
    "simulated",
]
