"""Devices for claims that have none, and for extended resources: from the question to the hold.

    asking      what a pod wants: its claims that have none, and extended names
    checking    whether a node has them: one outline a node and signature
    reserving   the devices of the chosen node, held until they are written
    telling     why they do not do, in a sentence, and which nodes to look at for that

`DynamicResources` says whether, and prefers nodes that serve a first choice;
`DeviceFit` says where devices are best spent. Nothing is allocated by asking.
"""

from .plugin import DeviceFit, DynamicResources

__all__ = ["DeviceFit", "DynamicResources"]
