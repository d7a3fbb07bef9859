"""Classic claims as typed views, in the shape of resource.k8s.io/v1alpha1.

A claim itself is read in v1 like all others: `resource.ResourceClaim` has the members of both shapes.
"""

from ..meta import NodeSelector, ObjectMeta, View
from ..numeric import NumericParameterType


class ResourceClassParametersReference(View, frozen=True):
    api_group: str = ""  # "" is the core group
    kind: str = ""
    name: str = ""
    namespace: str = ""  # "" for kinds without


class ResourceClass(View, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    driver_name: str = ""
    parameters_ref: ResourceClassParametersReference | None = None
    suitable_nodes: NodeSelector | None = None  # None: every node
    numeric_parameters: tuple[NumericParameterType, ...] = ()  # (): claims are allocated by the driver


class PodSchedulingSpec(View, frozen=True):
    selected_node: str = ""  # "" while none is
    potential_nodes: tuple[str, ...] = ()


class ResourceClaimSchedulingStatus(View, frozen=True):
    name: str = ""  # of the entry in the pod's spec, not of the claim
    unsuitable_nodes: tuple[str, ...] = ()


class PodSchedulingStatus(View, frozen=True):
    resource_claims: tuple[ResourceClaimSchedulingStatus, ...] = ()


class PodScheduling(View, frozen=True):
    """What scheduler and drivers tell each other about one pod, whose name it has."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSchedulingSpec = PodSchedulingSpec()
    status: PodSchedulingStatus = PodSchedulingStatus()
