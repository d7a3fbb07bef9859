"""What schedulers and drivers say about a pod.

P5  A PodScheduling is acted on only for the pod whose uid owns it, and goes once that pod is bound or gone.
P6  With several classic claims to be allocated a node is selected only when there is an answer for each.

Caches are up to minutes old: who wrote may have known what was so a while ago.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import Fields, allocation, claim_names, is_classic, name_of, node_of, owners

WAITED_S = 150.0
OLD_S = 300.0
"""A watch may be four minutes behind, and what follows on it later still (seed 632)."""


class Talks:
    follows = ("pods", "resourceclaims", "podschedulings")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)
        self._since_s: dict[str, float] = {}  # by uid: a claim waits for its driver, or a pod is there
        self.chosen = 0
        """How often one was selected where several claims waited."""

    def see(self, seen: Seen) -> Iterator[str]:
        before, uid = self._now.see(seen), seen.object.uid
        if seen.resource == "pods" and before is None:
            self._since_s[uid] = seen.at_s
        elif seen.resource == "resourceclaims":
            if seen.type == "DELETED" or allocation(seen.fields) is not None:
                self._since_s.pop(uid, None)
            elif is_classic(seen.fields):
                self._since_s.setdefault(uid, seen.at_s)
        elif seen.resource == "podschedulings" and seen.type != "DELETED":
            yield from self._written(seen, before) if _spec(seen.fields) != _spec(before or {}) else ()

    def _written(self, seen: Seen, before: Fields | None) -> Iterator[str]:
        name = seen.object.name
        pod = self._now.named("pods", name, seen.object.namespace)
        if pod is None:
            return
        if pod["metadata"]["uid"] not in {one["uid"] for one in owners(seen.fields)}:
            if seen.at_s - self._since_s[pod["metadata"]["uid"]] > OLD_S:
                yield f"P5: podscheduling {name} of a former pod was written to"
            return
        selected = _spec(seen.fields).get("selectedNode") or ""
        if not selected or selected == (_spec(before or {}).get("selectedNode") or ""):
            return
        waiting = [entry for entry, claim in self._claims(pod) if self._waits(claim, seen.at_s)]
        if len(waiting) < 2:
            return
        self.chosen += 1
        answered = {one["name"] for one in (seen.fields.get("status") or {}).get("resourceClaims") or ()}
        for entry in waiting:
            if entry not in answered:
                yield f"P6: {selected} was selected for pod {name}, and nobody has answered for {entry}"

    def _claims(self, pod: Fields) -> Iterator[tuple[str, Fields]]:
        namespace = pod["metadata"].get("namespace", "")
        for entry, name in claim_names(pod):
            claim = self._now.named("resourceclaims", name, namespace) if name else None
            if claim is not None and is_classic(claim):
                yield entry, claim

    def _waits(self, claim: Fields, now_s: float) -> bool:
        is_delayed = claim["spec"].get("allocationMode") != "Immediate"
        return is_delayed and now_s - self._since_s.get(claim["metadata"]["uid"], now_s) > WAITED_S

    def rest(self) -> Iterator[str]:
        for talk in self._now.all("podschedulings"):
            uids = [one["uid"] for one in owners(talk)]
            pod = next((one for one in map(self._pod, uids) if one is not None), None)
            if pod is None:
                yield f"P5: podscheduling {name_of(talk)} is there, and its pod is gone"
            elif node_of(pod):
                yield f"P5: podscheduling {name_of(talk)} is there, and its pod is bound"

    def _pod(self, uid: str) -> Fields | None:
        return self._now.get("pods", uid)


def _spec(talk: Fields) -> Fields:
    found: Fields = talk.get("spec") or {}
    return found
