"""resource.k8s.io/v1alpha1: classic claims (KEP-3063), which a driver allocates and not the scheduler.

types          typed views of classes and of what scheduler and drivers tell each other; claims are read in v1
kinds          what the server serves: `served` is the whole group, `KINDS` what is v1alpha1's own
shapes         which rules judge a claim, and what clients of another version may do to it
claims, claimstatus, classes, drivers, podscheduling, permissions    the rules
versions       v1alpha1 and the stored form
limits         numbers and well-known strings
"""

from . import limits
from .kinds import (
    KINDS,
    POD_SCHEDULING,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_CLASS,
    served,
    unserved,
)
from .types import (
    PodScheduling,
    PodSchedulingSpec,
    PodSchedulingStatus,
    ResourceClaimSchedulingStatus,
    ResourceClass,
    ResourceClassParametersReference,
)
from .versions import in_v1alpha1

__all__ = [
    "KINDS",
    "POD_SCHEDULING",
    "RESOURCE_CLAIM",
    "RESOURCE_CLAIM_TEMPLATE",
    "RESOURCE_CLASS",
    "PodScheduling",
    "PodSchedulingSpec",
    "PodSchedulingStatus",
    "ResourceClaimSchedulingStatus",
    "ResourceClass",
    "ResourceClassParametersReference",
    "in_v1alpha1",
    "limits",
    "served",
    "unserved",
]
