"""Accelerators in an enclosure of their own, attached to the node that needs one: for classic claims.

    enclosure    which accelerator is attached where: a file stands in for the fabric's manager
    driver       both halves

The enclosure is the driver's own record: whatever it has attached for claims that no longer exist, after a
crash, a deletion by force or the loss of a node, is detached and serves others.
"""

from .driver import NAME, Fabric, node_plugin
from .enclosure import BadEnclosure, Enclosure, Link

__all__ = ["NAME", "BadEnclosure", "Enclosure", "Fabric", "Link", "node_plugin"]
