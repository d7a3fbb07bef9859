"""Who has what, between machines and the API.

N2  A claim is deallocated only when no machine has its devices; a device is made ready for one claim at a
    time, shares aside.
N6  What a node lists contains what its drivers were told to prepare and have not given back.
N7  No container of a pod runs once unprepare was called for one of its claims, and that comes before the
    pod's end is told.

A node whose Node is gone says nothing more, and a pod that was taken for lost is told of by others.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .on_machines import MACHINES, Machines, OnMachine
from .reading import Fields, allocation, is_finished, name_of, node_of


class LetGo:
    follows = ("pods", "resourceclaims", "preparedclaims", "nodes", MACHINES)

    def __init__(self) -> None:
        self._now = LiveObjects("pods", "resourceclaims", "preparedclaims", "nodes")
        self._machines = Machines()

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        match seen.resource:
            case "resourceclaims":
                yield from self._deallocated(seen, before or {})
            case "preparedclaims":
                yield from self._said(seen)
            case "pods":
                yield from self._ended(seen, before or {})
            case "machines" if seen.type == "PREPARE":
                yield from self._told(seen)
            case "machines" if seen.type == "UNPREPARE":
                yield from self._given_back(seen)
        self._machines.see(seen)

    def _deallocated(self, seen: Seen, before: Fields) -> Iterator[str]:
        if allocation(before) is None or (seen.type != "DELETED" and allocation(seen.fields) is not None):
            return
        for node, machine in self._here():
            if seen.object.uid in machine.claims:
                yield f"N2: claim {seen.object.name} was deallocated while {node} had its devices"

    def _said(self, seen: Seen) -> Iterator[str]:
        node = seen.object.name
        machine = self._machines.nodes.get(node)
        if machine is None or not self._is_there(node):
            return
        listed = _uids(seen.fields) if seen.type != "DELETED" else set()
        for (driver, claim), told in machine.held.items():
            if claim not in listed:
                yield f"N6: {node} does not list claim {told['named']}, which {driver} has not given back"

    def _told(self, seen: Seen) -> Iterator[str]:
        node, told = seen.object.name, seen.fields
        listed = next((_uids(one) for one in self._now.all("preparedclaims") if name_of(one) == node), set())
        if self._is_there(node) and told["claim"] not in listed:
            yield f"N6: {told['driver']} is told to prepare {told['named']}, which {node} does not list"
        machine = self._machines.nodes.get(node, OnMachine())
        for (_, claim), other in machine.held.items():
            both = set(other["devices"]) & set(told["devices"])
            if claim != told["claim"] and both and not (other["shared"] and told["shared"]):
                yield f"N2: {sorted(both)} is made ready for {told['named']}, and {other['named']} has it"

    def _given_back(self, seen: Seen) -> Iterator[str]:
        machine = self._machines.nodes.get(seen.object.name, OnMachine())
        for pod, name, _ in sorted(machine.running):
            if self._machines.uses(pod, seen.fields["claim"]):
                shown = name_of(self._machines.pods[pod])
                yield (
                    f"N7: claim {seen.fields['named']} is unprepared on {seen.object.name} while container "
                    f"{name} of pod {shown} runs"
                )

    def _ended(self, seen: Seen, before: Fields) -> Iterator[str]:
        pod, node = seen.fields, node_of(seen.fields)
        machine = self._machines.nodes.get(node)
        if machine is None or seen.type == "DELETED" or not is_finished(pod) or is_finished(before or {}):
            return
        if _is_taken_for_lost(pod):
            return
        for name in sorted({one for uid, one, _ in machine.running if uid == seen.object.uid}):
            yield f"N7: pod {seen.object.name} has ended, it says, and its container {name} runs on {node}"
        others = [
            uid for uid, one in self._machines.pods.items() if uid != seen.object.uid and node_of(one) == node
        ]
        for (driver, claim), told in machine.held.items():
            if self._machines.uses(seen.object.uid, claim) and not any(
                self._machines.uses(other, claim) for other in others
            ):
                yield (
                    f"N7: pod {seen.object.name} is said to have ended before {driver} on {node} has "
                    f"given back {told['named']}"
                )

    def _here(self) -> Iterator[tuple[str, OnMachine]]:
        for node, machine in self._machines.nodes.items():
            if self._is_there(node):
                yield node, machine

    def _is_there(self, node: str) -> bool:
        return any(name_of(one) == node for one in self._now.all("nodes"))

    def rest(self) -> Iterator[str]:
        yield from ()


def _uids(prepared: Fields) -> set[str]:
    return {one["uid"] for one in (prepared.get("status") or {}).get("claims") or ()}


def _is_taken_for_lost(pod: Fields) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one.get("reason") == "DeletionByPodGC" for one in conditions)
