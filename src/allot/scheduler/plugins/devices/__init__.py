"""Devices: claims and extended resources, from the question to the hold. Digest, section 5.

    asking      what a pod wants: claims that have devices, claims that want some, extended names
    checking    whether a node has them: one outline a node and signature
    readiness   whether devices that must be made ready first are ready
    reserving   the devices of the chosen node, held until they are written
    telling     why they do not do, in a sentence, and which nodes to look at for that

`DynamicResources` says whether, and prefers nodes that serve a first choice;
`DeviceFit` says where devices are best spent. Nothing is allocated by asking.
"""

from .checking import places
from .plugin import DeviceFit, DynamicResources
from .readiness import Readiness, awaited, readiness, unready
from .telling import alike, attempts, examples, told

__all__ = [
    "DeviceFit",
    "DynamicResources",
    "Readiness",
    "alike",
    "attempts",
    "awaited",
    "examples",
    "places",
    "readiness",
    "told",
    "unready",
]
