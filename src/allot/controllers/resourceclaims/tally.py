"""How many claims there are, by kind: a gauge that moves with each change."""

from collections import Counter

from allot.api import Object, resource
from allot.informers import Added, Change, Deleted, Updated

from .views import claim_of

Labels = tuple[str, str, str]


def labels_of(object: Object) -> Labels:
    """(allocated, admin_access, source)."""
    claim = claim_of(object)
    requests = resource.shape.requests_of(claim)
    asks = any(one.exactly is not None and one.exactly.admin_access for one in requests)
    return str(claim.status.allocation is not None).lower(), str(asks).lower(), _source(claim)


def _source(claim: resource.ResourceClaim) -> str:
    annotations = claim.metadata.annotations
    if annotations.get(resource.limits.EXTENDED_RESOURCE_CLAIM_ANNOTATION) == "true":
        return "extended_resource"
    return "resource_claim_template" if resource.limits.POD_CLAIM_NAME_ANNOTATION in annotations else ""


class Tally:
    def __init__(self) -> None:
        self._counts: Counter[Labels] = Counter()
        self._of: dict[str, Labels] = {}

    def hear(self, change: Change) -> None:
        uid = change.object.uid
        match change:
            case Deleted():
                self._leave(uid)
            case Added() | Updated():
                self._leave(uid)
                self._of[uid] = labels_of(change.object)
                self._counts[self._of[uid]] += 1

    def _leave(self, uid: str) -> None:
        before = self._of.pop(uid, None)
        if before is not None:
            self._counts[before] -= 1

    def read(self) -> dict[tuple[str, ...], float]:
        return {labels: float(count) for labels, count in self._counts.items()}
