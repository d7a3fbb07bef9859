"""Extended resources that devices serve.

C5  A pod has at most one claim for its extended resources; at rest its status names it. What others are
    listed in stays after a failed attempt (C12).
P1  A pod is bound only when its status names that claim, which is allocated and reserved for it. Judged
    only where nothing else serves extended resources, and the scheduler is ours.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import (
    allocation,
    asks_for_extended,
    controller,
    is_leaving,
    is_special,
    name_of,
    node_of,
    others_listed,
    reserved,
)


class ExtendedClaims:
    follows = ("pods", "resourceclaims")

    def __init__(self, *, only_devices: bool = False) -> None:
        self._now = LiveObjects(*self.follows)
        self._only_devices = only_devices

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        if not self._only_devices or seen.resource != "pods" or before is None:
            return
        if node_of(seen.fields) and not node_of(before) and asks_for_extended(seen.fields):
            told = (seen.fields.get("status") or {}).get("extendedResourceClaimStatus") or {}
            claim = self._now.named(
                "resourceclaims", told.get("resourceClaimName", ""), seen.object.namespace
            )
            users = [one["uid"] for one in reserved(claim or {})]
            if claim is None or allocation(claim) is None or seen.object.uid not in users:
                yield f"P1: pod {seen.object.name} was bound without devices for its extended resources"

    def rest(self) -> Iterator[str]:
        made: dict[str, list[str]] = {}
        for claim in self._now.all("resourceclaims"):
            if is_special(claim) and not is_leaving(claim) and not others_listed(claim):
                made.setdefault(controller(claim), []).append(name_of(claim))
        for pod in self._now.all("pods"):
            claims = made.get(pod["metadata"]["uid"], [])
            told = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
            if len(claims) > 1:
                yield f"C5: pod {name_of(pod)} has {len(claims)} claims for its extended resources: {claims}"
            if claims and not node_of(pod):
                yield f"C5: pod {name_of(pod)} is on no node, and {claims} is left of an attempt"
            if claims and node_of(pod) and told.get("resourceClaimName") not in claims:
                yield f"C5: pod {name_of(pod)} does not name its claim {claims}"
