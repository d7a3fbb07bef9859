"""Cores, whole and for one claim each: what `allot driver cpu` runs.

topology   cores by NUMA node and cache
making     the driver
machine    the cores of this machine
pinning    what keeps a container to its CPUs: a CDI hook, run as a file
"""

from .machine import Pins, cores
from .making import DRIVER, Pinning, driver
from .topology import Core, listed

__all__ = ["DRIVER", "Core", "Pinning", "Pins", "cores", "driver", "listed"]
