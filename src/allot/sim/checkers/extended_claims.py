"""C5: a pod has at most one claim for its extended resources; at rest its status names it."""

from collections.abc import Iterator

from ..recording import Seen
from .reading import controller, is_leaving, name_of, node_of
from .standing import Standing

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"


class ExtendedClaims:
    follows = ("pods", "resourceclaims")

    def __init__(self) -> None:
        self._now = Standing(*self.follows)

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        yield from ()

    def rest(self) -> Iterator[str]:
        made: dict[str, list[str]] = {}
        for claim in self._now.all("resourceclaims"):
            if (claim["metadata"].get("annotations") or {}).get(ANNOTATION) and not is_leaving(claim):
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
