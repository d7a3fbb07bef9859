"""Nodes that come when pods wait for them, and go when nobody needs them: simulated before it is done.

groups       groups of nodes that can grow, and the file that names them
templates    what a node of a group would be, and whether it came true
packing      which groups grow, and by how much: pure
offline      `allot plan`: the same for a cluster that was read
extenders    what is asked of drivers of classic claims: KEP-3063's extender
"""

from .extenders import (
    BadConfiguration,
    CannotPlace,
    Cycle,
    Extender,
    ExtenderFailed,
    Filtered,
    SessionLost,
    configured,
)
from .groups import LABEL, BadGroups, Configuration, Group, Origin, Template
from .groups import read as read_groups
from .offline import Plan, plan
from .packing import Growth, NewNode, grow

__all__ = [
    "LABEL",
    "BadConfiguration",
    "BadGroups",
    "CannotPlace",
    "Configuration",
    "Cycle",
    "Extender",
    "ExtenderFailed",
    "Filtered",
    "Group",
    "Growth",
    "NewNode",
    "Origin",
    "Plan",
    "SessionLost",
    "Template",
    "configured",
    "grow",
    "plan",
    "read_groups",
]
