"""Nodes that come when pods wait for them, and go when nobody needs them: simulated before it is done.

groups       groups of nodes that can grow, and the file that names them
shapes       whether what is said of a node to come has the shape of one
templates    what a node of a group would be, and whether it came true
packing      which groups grow, and by how much: pure
shrinking    which nodes can go: pure
memory       what was asked for and has not come, or is not what was promised: pure
deciding     one decision, of all these
following    the cluster as it is told
providers    who has nodes to give
surveying    which groups there are and whose nodes are, where a provider knows
loop         the autoscaler as it runs
offline      `allot plan`: the same for a cluster that was read
classic      pods whose claims a driver allocates: the driver is asked
extenders    what is asked of drivers of classic claims: KEP-3063's extender
"""

from .deciding import Settings
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
from .groups import LABEL, Configuration, Group, GroupEntry, Origin, Template, at_provider
from .groups import read as read_groups
from .loop import Autoscaler, Dependencies, Options, Pace, run
from .memory import Patience
from .offline import Plan, plan
from .packing import Growth, NewNode, grow
from .providers import (
    Cloud,
    CommandProvider,
    HollowProvider,
    Provider,
    ProviderFailed,
    RemoteProvider,
    Serving,
    Survey,
)
from .shapes import BadGroups

__all__ = [
    "LABEL",
    "Autoscaler",
    "BadConfiguration",
    "BadGroups",
    "CannotPlace",
    "Cloud",
    "CommandProvider",
    "Configuration",
    "Cycle",
    "Dependencies",
    "Extender",
    "ExtenderFailed",
    "Filtered",
    "Group",
    "GroupEntry",
    "Growth",
    "HollowProvider",
    "NewNode",
    "Options",
    "Origin",
    "Pace",
    "Patience",
    "Plan",
    "Provider",
    "ProviderFailed",
    "RemoteProvider",
    "Serving",
    "SessionLost",
    "Settings",
    "Survey",
    "Template",
    "at_provider",
    "configured",
    "grow",
    "plan",
    "read_groups",
    "run",
]
