"""Numeric claims: what they take, who allocates them, and how they are given back.

D6   No allocation takes more of an instance than it has at the moment it is written; capacity that shrinks
     takes nothing from anybody.
C8   It is allocated by the scheduler, with its finalizer before and for as long, and never changed in place.
C11  Once things are quiet, what nobody uses has been given back, whether its class is there or not, and what
     has nothing is not protected; an immediate one when it is deleted.
P2   Nobody waits for ever for what is there.
"""

from collections.abc import Iterator
from typing import Any

from ..recording import Seen
from .live import LiveObjects
from .reading import (
    NUMERIC_FINALIZER,
    Fields,
    allocation,
    asks_for_extended,
    claim_names,
    controller,
    is_finished,
    is_leaving,
    is_numeric,
    name_of,
    node_of,
    place_of,
    reserved,
    results,
)

ROOM = 40
"""For pods, as the nodes of made-up worlds say."""


class NumericClaims:
    follows = ("resourceclaims", "noderesourcecapacities", "pods", "nodes", "resourceclasses")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        if seen.resource != "resourceclaims" or seen.type == "DELETED" or not is_numeric(seen.fields):
            return
        name, now = seen.object.name, seen.fields
        held, had = allocation(now), allocation(before or {})
        if held is None:
            if had is not None and _is_immediate(now) and not is_leaving(now):
                yield f"C11: immediate claim {name} was given back, and nobody deleted it"
            return
        if NUMERIC_FINALIZER not in _finalizers(now):
            yield f"C8: claim {name} is allocated without the scheduler's finalizer"
        if had is not None:
            if held != had:
                yield f"C8: the allocation of claim {name} was changed in place"
            return
        if not results(now) or not held.get("resourceHandle"):
            yield f"C8: claim {name} was allocated by somebody else than the scheduler"
        if len(reserved(now)) != 1:
            yield f"C2: claim {name} was allocated for {len(reserved(now))} pods"
        for result in results(now):
            yield from self._taken(name, result)

    def _taken(self, claim: str, result: Any) -> Iterator[str]:
        place = result["driver"], result["pool"].removeprefix("numeric/"), result["device"]
        has, used = self._capacity(*place), self._used(*place)
        if used > has and _amount(result):
            yield f"D6: with claim {claim} {used} of {'/'.join(place)} are used: {has} are there"

    def _capacity(self, driver: str, node: str, id: str) -> int:
        for one in sorted(self._now.all("noderesourcecapacities"), key=name_of):
            if (one["driverName"], one["nodeName"]) == (driver, node):
                for instance in one.get("instances") or ():
                    if instance["id"] == id:
                        return int(instance["data"]["count"])
        return 0

    def _used(self, driver: str, node: str, id: str) -> int:
        wanted = driver, f"numeric/{node}", id
        held = (one for claim in self._now.all("resourceclaims") for one in results(claim))
        return sum(_amount(one) for one in held if (one["driver"], one["pool"], one["device"]) == wanted)

    def rest(self) -> Iterator[str]:
        for claim in filter(is_numeric, self._now.all("resourceclaims")):
            is_kept = _is_immediate(claim) and not is_leaving(claim)
            if allocation(claim) is not None and not reserved(claim) and not is_kept:
                yield f"C11: nobody uses claim {name_of(claim)}, and it keeps what it has"
            elif is_leaving(claim) and not reserved(claim):
                yield f"C11: claim {name_of(claim)} is to go, and nobody uses it"
            elif allocation(claim) is None and NUMERIC_FINALIZER in _finalizers(claim):
                yield f"C11: claim {name_of(claim)} is protected, and has nothing"
        for pod in self._now.all("pods"):
            node = "" if node_of(pod) or is_finished(pod) or is_leaving(pod) else self._fitting(pod)
            if node:
                yield f"P2: pod {name_of(pod)} waits, and its numeric claims can be had on {node}"

    def _fitting(self, pod: Fields) -> str:
        """A node for a pod all of whose claims are numeric and wait for it alone."""
        namespace, _ = place_of(pod)
        wanted = 0
        names = [name for _, name in claim_names(pod)]
        if not names or asks_for_extended(pod):
            return ""
        for name in names:
            claim = self._now.named("resourceclaims", name, namespace) if name else None
            if claim is None or not is_numeric(claim) or is_leaving(claim) or allocation(claim) is not None:
                return ""
            if controller(claim) not in ("", pod["metadata"]["uid"]):
                return ""
            if self._now.named("resourceclasses", claim["spec"]["resourceClassName"]) is None:
                return ""
            wanted += int(claim["spec"]["parametersRef"]["name"].rpartition("-")[2])
        for node in self._now.all("nodes"):
            name = name_of(node)
            taken = sum(node_of(one) == name and not is_finished(one) for one in self._now.all("pods"))
            if (node.get("spec") or {}).get("taints") or taken >= ROOM:
                continue
            driver = "frob.example.com"
            if self._capacity(driver, name, "c0") - self._used(driver, name, "c0") >= wanted:
                return name
        return ""


def _is_immediate(claim: Fields) -> bool:
    return bool(claim["spec"].get("allocationMode") == "Immediate")


def _amount(result: Any) -> int:
    return sum(int(amount) for amount in (result.get("consumedCapacity") or {}).values())


def _finalizers(claim: Fields) -> list[str]:
    return list(claim["metadata"].get("finalizers") or ())
