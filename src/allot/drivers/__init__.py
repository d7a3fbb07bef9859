"""Drivers that come with Allot, each written with the kit.

sim    the devices of a fleet of the catalogue, without hardware, with faults on request
"""

from . import sim

__all__ = ["sim"]
