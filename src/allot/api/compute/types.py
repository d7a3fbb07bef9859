"""Classes of compute resources as typed views, in the shape of compute.allot.dev/v1alpha1.

What nodes have (`core.ComputeResource`) and what containers were given (`core.AllocatedResource`) are members
of nodes and pods, and are read with them.
"""

from ..core import Amount
from ..meta import ObjectMeta, View
from . import limits


class ResourceSelectorRequirement(View, frozen=True):
    key: str = ""
    operator: str = ""  # In, NotIn, Exists, DoesNotExist, Gt, Lt
    values: tuple[str, ...] = ()


class ResourcePropertySelector(View, frozen=True):
    """All expressions must hold."""

    match_expressions: tuple[ResourceSelectorRequirement, ...] = ()


class ResourceGroupMember(View, frozen=True):
    """Devices, or an amount of something native, that are part of one thing to ask for."""

    resource_name: str = ""
    resource_selector: tuple[ResourcePropertySelector, ...] = ()
    count: int = 1
    amount: Amount = ""  # of a native resource, in place of devices


class ResourceClassSpec(View, frozen=True):
    resource_name: str = ""
    resource_selector: tuple[ResourcePropertySelector, ...] = ()  # one suffices; none: no constraint
    priority: int = 0
    scope: str = limits.NODE_SCOPE
    device_class_name: str = ""
    members: tuple[ResourceGroupMember, ...] = ()  # in place of a resource name
    same_property: tuple[str, ...] = ()

    @property
    def is_of_cluster(self) -> bool:
        return self.scope == limits.CLUSTER_SCOPE


class ResourceClass(View, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClassSpec = ResourceClassSpec()
