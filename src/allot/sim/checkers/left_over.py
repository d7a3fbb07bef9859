"""What is on machines once things are quiet.

N5  An agent and its drivers, however often they died, are where they would be if they had not: what the API
    says runs is running, and whoever could run does; what was made ready is as its driver left it.
N8  Whatever is there (containers, files, devices, entries of checkpoints) belongs to a pod that the server
    has.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .on_machines import MACHINES, Machines, checkpoint_claims, state_claims
from .reading import (
    Fields,
    allocation,
    controller,
    is_active,
    is_finished,
    is_leaving,
    name_of,
    node_of,
    reserved,
)


class LeftOver:
    follows = ("pods", "resourceclaims", "nodes", MACHINES)

    def __init__(self) -> None:
        self._now = LiveObjects("pods", "resourceclaims", "nodes")
        self._machines = Machines()
        self._left: dict[str, Fields] = {}

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        self._machines.see(seen)
        if seen.resource == MACHINES and seen.type == "LEFT":
            self._left[seen.object.name] = seen.fields
        yield from ()

    def rest(self) -> Iterator[str]:
        for node, left in self._left.items():
            if left["is_on"]:
                yield from self._belongs(node, left)
                yield from self._runs(node, left)

    # -- N8 -------------------------------------------------------------------------------------

    def _belongs(self, node: str, left: Fields) -> Iterator[str]:
        for pod, name, number in left["running"]:
            found = self._now.get("pods", pod)
            if found is None or is_finished(found):
                yield f"N8: container {name} #{number} of {self._shown(pod)} runs on {node} for nobody"
        for pod in dict.fromkeys([*left["pods"], *(one[0] for one in left["records"])]):
            if self._now.get("pods", pod) is None:
                yield f"N8: {node} keeps something of {self._shown(pod)}, which is gone"
        told = checkpoint_claims(left["checkpoint"])
        for claim, pods in told.items():
            for pod in pods:
                found = self._now.get("pods", pod)
                if found is None or is_finished(found):
                    yield f"N8: {node}'s agent keeps claim {claim} for {self._shown(pod)}, which has ended"
        yield from self._of_drivers(node, left, told)

    def _of_drivers(self, node: str, left: Fields, told: dict[str, list[str]]) -> Iterator[str]:
        held = self._machines.nodes[node].held
        for driver, text in left["states"].items():
            prepared = state_claims(text)
            for claim in prepared:
                if claim not in told:
                    yield f"N8: {driver} on {node} keeps claim {claim}, which its agent does not know of"
            for other, claim in held:
                if other == driver and claim not in prepared:
                    yield f"N8: {driver} on {node} has forgotten claim {claim}, whose device is ready"
        known = {claim for text in left["states"].values() for claim in state_claims(text)}
        for file in left["cdi"]:
            if not any(claim in file for claim in known):
                yield f"N8: {node} has the file {file}, whose claim nobody has"

    # -- N5 -------------------------------------------------------------------------------------

    def _runs(self, node: str, left: Fields) -> Iterator[str]:
        running = {(pod, name) for pod, name, _ in left["running"]}
        machine = self._machines.nodes[node]
        for pod in self._now.all("pods"):
            if node_of(pod) != node or not is_active(pod):
                continue
            uid, status = pod["metadata"]["uid"], pod.get("status") or {}
            said = [one for one in status.get("containerStatuses") or () if "running" in one["state"]]
            for one in said:
                if (uid, one["name"]) not in running:
                    yield f"N5: pod {name_of(pod)} on {node} says that {one['name']} runs, and it does not"
            for one in pod["spec"]["containers"]:
                if (uid, one["name"]) in running and one["name"] not in {known["name"] for known in said}:
                    yield f"N5: {one['name']} of pod {name_of(pod)} runs on {node}, and nobody says so"
            runs = [(uid, one["name"]) in running for one in pod["spec"]["containers"]]
            stays = pod["spec"].get("restartPolicy", "Always") == "Always"
            if not (all(runs) if stays else any(runs)) and self._could_run(pod):
                yield f"N5: pod {name_of(pod)} on {node} could run, and does not: {_waits(status)}"
            for name, claim in self._machines.claims_of(pod):
                is_used = any(one == uid for one, _ in running)
                if is_used and claim is not None and claim["metadata"]["uid"] not in machine.claims:
                    yield f"N5: pod {name_of(pod)} runs on {node}, and its claim {name} is not ready there"

    def _could_run(self, pod: Fields) -> bool:
        uid = pod["metadata"]["uid"]
        entries = pod["spec"].get("resourceClaims") or ()
        claims = [*self._machines.claims_of(pod)]
        if len(claims) < len(entries):
            return False
        for _, claim in claims:
            if claim is None or self._now.get("resourceclaims", claim["metadata"]["uid"]) is None:
                return False
            owner = controller(claim)
            is_own = any(one["uid"] == uid for one in reserved(claim)) and owner in ("", uid)
            if allocation(claim) is None or not is_own or is_leaving(claim):
                return False
        return True

    def _shown(self, pod: str) -> str:
        found = self._machines.pods.get(pod)
        return f"pod {name_of(found)}" if found is not None else f"pod {pod}"


def _waits(status: Fields) -> str:
    states = [one["state"] for one in status.get("containerStatuses") or ()]
    return "; ".join(str(state.get("waiting") or state) for state in states) or "it says nothing"
