"""What containers begin with, as their machine sees it.

N1  A container starts only when all claims of its pod are allocated, reserved for this pod, listed by
    the node, and made ready there.
N4  It gets the devices that it asked for and that were allocated: nothing more, nothing less.

Of a pod that is gone or about to be, reservations may be gone already: whoever starts it has not heard.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .on_machines import MACHINES, Machines, devices_of
from .reading import Fields, allocation, is_active, name_of, reserved


class Contained:
    follows = ("pods", "resourceclaims", "preparedclaims", MACHINES)

    def __init__(self) -> None:
        self._now = LiveObjects("pods", "resourceclaims", "preparedclaims")
        self._machines = Machines()
        self.starts = 0

    def see(self, seen: Seen) -> Iterator[str]:
        if seen.resource == MACHINES and seen.type == "STARTED":
            self.starts += 1
            yield from self._judge(seen)
        self._now.see(seen)
        self._machines.see(seen)

    def _judge(self, seen: Seen) -> Iterator[str]:
        pod = self._machines.pods.get(seen.fields["pod"])
        if pod is None:
            yield f"N1: a container starts on {seen.object.name} of a pod that never was"
            return
        where = f"container {seen.fields['container']} of pod {name_of(pod)} starts on {seen.object.name}"
        node = self._machines.nodes.get(seen.object.name)
        live = self._now.get("pods", seen.fields["pod"])
        for name, claim in self._machines.claims_of(pod):
            if claim is None:
                yield f"N1: {where} without its claim {name}"
                continue
            uid = claim["metadata"]["uid"]
            users = {one["uid"] for one in reserved(claim)} if allocation(claim) is not None else set()
            if live is not None and is_active(live) and seen.fields["pod"] not in users:
                yield f"N1: {where} with the claim {name}, which is not its own"
            if uid not in self._listed(seen.object.name):
                yield f"N1: {where} before the claim {name} is listed"
            if node is None or not {key for key in node.answered if key[1] == uid}:
                yield f"N1: {where} before the claim {name} is made ready"
        if live is not None and is_active(live):
            wanted, got = self._wanted(pod, seen.fields["container"]), set(seen.fields["devices"])
            if wanted != got:
                yield f"N4: {where} with {sorted(got)}, and was given {sorted(wanted)}"

    def _wanted(self, pod: Fields, container: str) -> set[str]:
        by_entry = dict(self._entries(pod))
        found: set[str] = set()
        for one in pod["spec"]["containers"]:
            if one["name"] != container:
                continue
            for use in (one.get("resources") or {}).get("claims") or ():
                claim = by_entry.get(use["name"])
                found |= devices_of(claim, use.get("request", "")) if claim is not None else set()
        extended = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
        special = self._claim(pod, extended.get("resourceClaimName", ""))
        for one in extended.get("requestMappings") or ():
            if one["containerName"] == container and special is not None:
                found |= devices_of(special, one["requestName"])
        return found

    def _entries(self, pod: Fields) -> Iterator[tuple[str, Fields]]:
        made = {one["name"]: one.get("resourceClaimName") for one in _statuses(pod)}
        for entry in pod["spec"].get("resourceClaims") or ():
            claim = self._claim(pod, entry.get("resourceClaimName") or made.get(entry["name"]) or "")
            if claim is not None:
                yield entry["name"], claim

    def _claim(self, pod: Fields, name: str) -> Fields | None:
        return self._machines.claims.get((pod["metadata"].get("namespace", ""), name))

    def _listed(self, node: str) -> set[str]:
        for listed in self._now.all("preparedclaims"):
            if name_of(listed) == node:
                return {one["uid"] for one in (listed.get("status") or {}).get("claims") or ()}
        return set()

    def rest(self) -> Iterator[str]:
        yield from ()


def _statuses(pod: Fields) -> list[Fields]:
    return (pod.get("status") or {}).get("resourceClaimStatuses") or []
