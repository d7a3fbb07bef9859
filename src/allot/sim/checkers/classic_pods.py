"""Where pods with classic claims go.

ALLOC  A pod is bound only to a node on which each of its classic claims can be used.
P1     Once things are quiet, a pod that waits has none of its classic claims reserved.
P2     Once things are quiet, no pod waits whose classic claims can all be had; no two wait for each other.

What can be had, read here for what made-up worlds ask: every claim is there and the pod's to use, none is
in use by another that does not share it, and there is one node without taints that is not full, where
the driver has a device for each claim that is to be allocated or could be allocated anew.
"""

from collections import Counter
from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import (
    Fields,
    allocation,
    asks_for_extended,
    claim_names,
    controller,
    is_classic,
    is_finished,
    is_leaving,
    is_numeric,
    name_of,
    node_of,
    place_of,
    reserved,
)

DEVICES_PER_NODE = 2


class ClassicPods:
    follows = ("pods", "nodes", "resourceclaims", "resourceclasses")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        if seen.resource != "pods" or before is None or node_of(before) or not node_of(seen.fields):
            return
        for claim in self._claims(seen.fields):
            where = nodes_of(claim)
            if is_classic(claim) and where is not None and node_of(seen.fields) not in where:
                name = name_of(claim)
                yield f"ALLOC: pod {seen.object.name} is on {node_of(seen.fields)}, and {name} on {where}"

    def rest(self) -> Iterator[str]:
        for claim in filter(is_classic, self._now.all("resourceclaims")):
            for user in reserved(claim):
                waiting = self._now.get("pods", user["uid"])
                if waiting is not None and not node_of(waiting) and not is_finished(waiting):
                    yield f"P1: claim {name_of(claim)} is reserved for {name_of(waiting)}, which waits"
        for pod in self._now.all("pods"):
            if node_of(pod) or is_finished(pod) or is_leaving(pod) or asks_for_extended(pod):
                continue
            claims = [*self._claims(pod)]
            wanted = len([*claim_names(pod)])
            if not claims or len(claims) < wanted or not all(self._is_to_be_had(one, pod) for one in claims):
                continue
            node = self._node_for(claims, pod["metadata"]["uid"])
            if node:
                yield f"P2: pod {name_of(pod)} waits, and its claims can be had on {node}"

    def _claims(self, pod: Fields) -> Iterator[Fields]:
        namespace, _ = place_of(pod)
        for _, name in claim_names(pod):
            found = self._now.named("resourceclaims", name, namespace) if name else None
            if found is not None:
                yield found

    def _is_to_be_had(self, claim: Fields, pod: Fields) -> bool:
        uid = pod["metadata"]["uid"]
        if (
            not is_classic(claim)
            or is_numeric(claim)
            or is_leaving(claim)
            or controller(claim) not in ("", uid)
        ):
            return False
        if allocation(claim) is None and self._driver(claim) is None:
            return False
        others = [one for one in reserved(claim) if one["uid"] != uid]
        return not others or bool((allocation(claim) or {}).get("shareable"))

    def _node_for(self, claims: list[Fields], uid: str) -> str:
        """Idle claims can be moved, unless their driver allocates them without waiting for a pod."""
        fixed = [one for one in claims if allocation(one) is not None and not is_movable(one, uid)]
        moved = {one["metadata"]["uid"] for one in claims if one not in fixed}
        taken: Counter[tuple[str, str]] = Counter()
        for one in self._now.all("resourceclaims"):
            for place in nodes_of(one) or () if one["metadata"]["uid"] not in moved else ():
                taken[self._driver(one) or "", place] += 1
        asked = Counter(self._driver(one) or "" for one in claims if one not in fixed)
        for node in self._now.all("nodes"):
            name = name_of(node)
            if (node.get("spec") or {}).get("taints") or self._is_full(name):
                continue
            if any(name not in (nodes_of(one) or {name}) for one in fixed):
                continue
            if all(taken[driver, name] + count <= DEVICES_PER_NODE for driver, count in asked.items()):
                return name
        return ""

    def _is_full(self, node: str) -> bool:
        room = 40  # as the nodes of made-up worlds say
        return sum(node_of(pod) == node and not is_finished(pod) for pod in self._now.all("pods")) >= room

    def _driver(self, claim: Fields) -> str | None:
        driver = (claim.get("status") or {}).get("driverName")
        if driver:
            return str(driver)
        known = self._now.named("resourceclasses", claim["spec"].get("resourceClassName") or "", "")
        return str(known["driverName"]) if known is not None else None


def nodes_of(claim: Fields) -> set[str] | None:
    """The nodes on which an allocated claim can be used; None: every one, or it is not allocated."""
    selector = (allocation(claim) or {}).get("nodeSelector")
    if selector is None:
        return None
    fields = [one for term in selector["nodeSelectorTerms"] for one in term.get("matchFields") or ()]
    return {name for one in fields for name in one["values"]}


def is_movable(claim: Fields, uid: str) -> bool:
    is_idle = all(one["uid"] == uid for one in reserved(claim))
    return is_idle and claim["spec"].get("allocationMode") != "Immediate"
