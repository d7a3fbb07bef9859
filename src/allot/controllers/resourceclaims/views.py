"""The few fields that this controller reads of pods, and of what nodes have prepared."""

from allot.api import Object, meta, podclaims, resource

PREPARED_GROUP, PREPARED_VERSION, PREPARED_PLURAL = "node.allot.dev", "v1alpha1", "preparedclaims"
"""One object a node, named like it and written by it alone: `status.claims[]` are the claims,
by uid, that it has prepared or is about to prepare. A node says so before it prepares, and
takes it back after it has unprepared."""


class PodClaim(meta.View, frozen=True):
    """An entry of spec.resourceClaims."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodClaimStatus(meta.View, frozen=True):
    """An entry of status.resourceClaimStatuses; without a claim none is wanted."""

    name: str = ""
    resource_claim_name: str | None = None


class ExtendedClaimStatus(meta.View, frozen=True):
    resource_claim_name: str = ""


class PodSpec(meta.View, frozen=True):
    node_name: str = ""
    resource_claims: tuple[PodClaim, ...] = ()


class PodStatus(meta.View, frozen=True):
    phase: str = ""
    resource_claim_statuses: tuple[PodClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedClaimStatus | None = None


class Pod(meta.View, frozen=True):
    metadata: meta.ObjectMeta = meta.ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_done(self) -> bool:
        """It needs its claims no more: it has finished, or it will never run."""
        finished = self.status.phase in ("Succeeded", "Failed")
        return finished or (bool(self.metadata.deletion_timestamp) and not self.spec.node_name)

    def recorded(self, name: str) -> PodClaimStatus | None:
        return next((one for one in self.status.resource_claim_statuses if one.name == name), None)

    @property
    def claim_names(self) -> tuple[str, ...]:
        return podclaims.names(self)


class PreparedClaim(meta.View, frozen=True):
    uid: str = ""


class PreparedStatus(meta.View, frozen=True):
    claims: tuple[PreparedClaim, ...] = ()


class Prepared(meta.View, frozen=True):
    status: PreparedStatus = PreparedStatus()


def pod_of(object: Object) -> Pod:
    return object.view(Pod)


def claim_of(object: Object) -> resource.ResourceClaim:
    return object.view(resource.ResourceClaim)


def prepared_uids(object: Object) -> tuple[str, ...]:
    """An index function: the claims that a node has prepared."""
    return tuple(one.uid for one in object.view(Prepared).status.claims)


def is_for(claim: resource.ResourceClaim, pod: Pod) -> bool:
    """C4: a claim of the right name is not enough."""
    owner = claim.metadata.controlling_pod
    return owner is not None and owner.uid == pod.metadata.uid
