"""What is on machines at one moment, from what was noted of them: containers that run, and devices that
drivers were told to make ready. Several checkers keep one of these. No word of the code under test."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..recording import Seen
from .reading import Fields, allocation, claim_names, is_classic, place_of

MACHINES = "machines"
Container = tuple[str, str, int]  # pod, container, number


@dataclass
class OnMachine:
    boot: str = ""
    running: set[Container] = field(default_factory=set)
    held: dict[tuple[str, str], Fields] = field(default_factory=dict)  # driver, claim: told to prepare
    answered: dict[tuple[str, str], list[str]] = field(default_factory=dict)  # what was said of it
    away: dict[str, float] = field(default_factory=dict)  # drivers, since when
    agent_since_s: float = 0.0

    @property
    def claims(self) -> set[str]:
        return {claim for _, claim in self.held}


class Machines:
    def __init__(self) -> None:
        self.nodes: dict[str, OnMachine] = {}
        self.pods: dict[str, Fields] = {}  # by uid, as each was last seen
        self.claims: dict[tuple[str, str], Fields] = {}  # by place, as each was last seen

    def see(self, seen: Seen) -> None:
        """After it was judged: checkers want to know how things stood before."""
        if seen.resource == "pods":
            self.pods[seen.object.uid] = seen.fields
        elif seen.resource == "resourceclaims":
            self.claims[place_of(seen.fields)] = seen.fields
        elif seen.resource == MACHINES:
            self._note(self.nodes.setdefault(seen.object.name, OnMachine()), seen)

    def _note(self, node: OnMachine, seen: Seen) -> None:
        of = seen.fields
        match seen.type:
            case "ON":
                node.boot = of["boot"]
            case "AGENT":
                node.agent_since_s = seen.at_s
            case "OFF":
                node.running.clear()
                node.held.clear()
                node.answered.clear()
            case "STARTED":
                node.running.add(container(of))
            case "ENDED":
                node.running.discard(container(of))
            case "PREPARE":
                node.held[of["driver"], of["claim"]] = of
            case "ANSWERED" if (of["driver"], of["claim"]) in node.held:
                node.answered[of["driver"], of["claim"]] = of["names"]
            case "UNPREPARE":
                node.answered.pop((of["driver"], of["claim"]), None)
            case "UNPREPARED":
                node.held.pop((of["driver"], of["claim"]), None)
            case "AWAY":
                node.away[of["driver"]] = seen.at_s
            case "BACK":
                node.away.pop(of["driver"], None)

    def claims_of(self, pod: Fields) -> Iterator[tuple[str, Fields | None]]:
        """Name and claim of all that a pod uses, those for its extended resources, too."""
        namespace, _ = place_of(pod)
        for name in names_of(pod):
            yield name, self.claims.get((namespace, name))

    def uses(self, pod: str, claim: str) -> bool:
        found = self.claims_of(self.pods[pod]) if pod in self.pods else ()
        return any(one is not None and one["metadata"]["uid"] == claim for _, one in found)


def container(of: Fields) -> Container:
    return of["pod"], of["container"], of["number"]


def names_of(pod: Fields) -> list[str]:
    extended = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    special = [extended["resourceClaimName"]] if extended.get("resourceClaimName") else []
    return [*(name for _, name in claim_names(pod) if name), *special]


def checkpoint_claims(text: str) -> dict[str, list[str]]:
    """Claims of an agent's checkpoint, each with its pods; none of one that is torn."""
    found = (_data(text, "Data") or {}).get("ClaimInfoStateList") or ()
    return {one["ClaimUID"]: list(one["PodUIDs"] or ()) for one in found}


def state_claims(text: str) -> dict[str, str]:
    """Claims of a driver's state, each with the boot in which it was prepared; none of one that is torn."""
    return {one["uid"]: one.get("boot", "") for one in _data(text, "data") or ()}


def _data(text: str, name: str) -> Any:
    try:
        return json.loads(json.loads(text)[name])
    except ValueError:
        return None


def devices_of(claim: Fields, request: str = "") -> set[str]:
    """All of a classic claim is one resource: its driver, the handle and the claim."""
    if is_classic(claim):
        handle = (allocation(claim) or {}).get("resourceHandle") or ""
        return {f"{claim['status']['driverName']}/{handle}/{claim['metadata']['uid']}"} if handle else set()
    results = ((allocation(claim) or {}).get("devices") or {}).get("results") or ()
    return {
        f"{one['driver']}/{one['pool']}/{one['device']}"
        for one in results
        if not request or one["request"].partition("/")[0] == request
    }
