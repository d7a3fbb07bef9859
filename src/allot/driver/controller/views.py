"""What the kit reads of claims in v1alpha1 and of pods: typed, as far as it looks at them.

A driver is a client of v1alpha1 alone, so it reads claims as that shows them.
"""

from allot.api import Object, classic, meta, resource
from allot.informers import ResourceId

from .values import Claim, Class

GROUP, VERSION = resource.limits.GROUP, classic.limits.VERSION
CLAIMS = ResourceId(GROUP, VERSION, classic.RESOURCE_CLAIM.plural)
CLASSES = ResourceId(GROUP, VERSION, classic.RESOURCE_CLASS.plural, namespaced=False)
SCHEDULINGS = ResourceId(GROUP, VERSION, classic.POD_SCHEDULING.plural)


class ClaimSpec(meta.View, frozen=True):
    resource_class_name: str = ""
    parameters_ref: resource.ResourceClaimParametersReference | None = None
    allocation_mode: str = ""

    @property
    def is_immediate(self) -> bool:
        return self.allocation_mode == "Immediate"


class AllocationResult(meta.View, frozen=True):
    resource_handle: str = ""
    available_on_nodes: meta.NodeSelector | None = None
    shareable: bool = False


class ClaimStatus(meta.View, frozen=True):
    driver_name: str = ""
    allocation: AllocationResult | None = None
    reserved_for: tuple[resource.ResourceClaimConsumerReference, ...] = ()
    deallocation_requested: bool = False


class ResourceClaim(meta.View, frozen=True):
    metadata: meta.ObjectMeta = meta.ObjectMeta()
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()

    @property
    def is_numeric(self) -> bool:
        """The scheduler allocates it, as its class says or said, and no driver does."""
        return resource.shape.NUMERIC_FINALIZER in self.metadata.finalizers

    def is_of(self, pod: "Pod") -> bool:
        """It was made for this pod (C4)."""
        owner = self.metadata.controlling_pod
        return owner is not None and owner.uid == pod.metadata.uid


class PodClaim(meta.View, frozen=True):
    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""

    def claim_of(self, pod: str) -> str:
        """The name of the claim, which for a generated one follows from the pod's."""
        return self.resource_claim_name or (f"{pod}-{self.name}" if self.resource_claim_template_name else "")


class PodSpec(meta.View, frozen=True):
    resource_claims: tuple[PodClaim, ...] = ()


class Pod(meta.View, frozen=True):
    metadata: meta.ObjectMeta = meta.ObjectMeta()
    spec: PodSpec = PodSpec()


def claim_of(object: Object) -> ResourceClaim:
    return object.view(ResourceClaim)


def class_of(object: Object) -> classic.ResourceClass:
    return object.view(classic.ResourceClass)


def scheduling_of(object: Object) -> classic.PodScheduling:
    return object.view(classic.PodScheduling)


def pod_uid(scheduling: classic.PodScheduling) -> str:
    """Of the pod that it was made for; "" where nobody says so."""
    name = scheduling.metadata.name
    mine = (one for one in scheduling.metadata.owner_references if one.kind == "Pod" and one.name == name)
    return next((one.uid for one in mine), "")


def as_told(object: Object) -> Claim:
    """A claim as the author of a driver sees it."""
    claim = claim_of(object)
    metadata, allocation = claim.metadata, claim.status.allocation
    return Claim(
        metadata.namespace,
        metadata.name,
        metadata.uid,
        claim.spec.resource_class_name,
        allocation.resource_handle if allocation is not None else "",
        allocation.available_on_nodes if allocation is not None else None,
        tuple(one.uid for one in claim.status.reserved_for),
        metadata.labels,
        metadata.annotations,
    )


def as_class(object: Object) -> Class:
    return Class(object.name, class_of(object).suitable_nodes)


def is_as_new(heard: Object, mine: Object) -> bool:
    """Versions of one server are numbers that grow; where they are not, another one is newer."""
    heard_at, mine_at = heard.resource_version, mine.resource_version
    if heard_at.isdigit() and mine_at.isdigit():
        return int(heard_at) >= int(mine_at)
    return heard_at != mine_at
