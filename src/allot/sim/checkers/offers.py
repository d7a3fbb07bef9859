"""What was published, and when: the devices that a checker compares allocations with.

Whoever allocates works from what it has heard so far, so a device is remembered in
every form that it had, and until when it had it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..recording import Seen

Json = Any
DeviceKey = tuple[str, str, str]  # driver, pool, device
RESOURCES = ("resourceslices", "deviceclasses", "nodes", "devicetaintrules")


@dataclass(slots=True, eq=False)
class Offer:
    """A device in one of its forms."""

    spec: Json  # of the slice
    device: Json
    ended: int | None = None  # the revision at which it changed or went away

    @property
    def key(self) -> DeviceKey:
        return self.spec["driver"], self.spec["pool"]["name"], self.device["name"]

    def reaches(self, node: Json) -> bool:
        """Whether the device can be used on the node."""
        where = self.device if self.spec.get("perDeviceNodeSelection") else self.spec
        if where.get("nodeName"):
            return bool(where["nodeName"] == node["metadata"]["name"])
        return bool(where.get("allNodes")) or selects(where.get("nodeSelector"), node)


class Offers:
    def __init__(self) -> None:
        self.classes: dict[str, Json] = {}
        self.nodes: dict[str, Json] = {}
        self.rules: dict[str, Json] = {}
        self._offers: dict[DeviceKey, list[Offer]] = {}
        self._of_slice: dict[str, list[Offer]] = {}

    def see(self, seen: Seen) -> None:
        if seen.resource == "resourceslices":
            self._slice(seen)
            return
        known = {"deviceclasses": self.classes, "nodes": self.nodes, "devicetaintrules": self.rules}
        if seen.type != "DELETED":
            known[seen.resource][seen.object.name] = seen.fields
        elif seen.resource == "devicetaintrules":
            self.rules.pop(seen.object.name, None)
        # Classes and nodes are remembered: what was allocated while they were there stays right.

    def of(self, key: DeviceKey, since: int) -> list[Offer]:
        """The forms that a device had at `since` or later, the newest last."""
        return [one for one in self._offers.get(key, ()) if one.ended is None or one.ended >= since]

    def present(self) -> Iterator[Offer]:
        """Everything that is published now."""
        for offers in self._of_slice.values():
            yield from offers

    def taints(self, offer: Offer) -> Iterator[Json]:
        yield from offer.device.get("taints") or ()
        driver, pool, device = offer.key
        for rule in self.rules.values():
            chosen = rule["spec"].get("deviceSelector") or {}
            named = (chosen.get("driver"), chosen.get("pool"), chosen.get("device"))
            if all(one in (None, own) for one, own in zip(named, (driver, pool, device), strict=True)):
                yield rule["spec"]["taint"]

    def _slice(self, seen: Seen) -> None:
        for offer in self._of_slice.pop(seen.object.name, ()):
            offer.ended = seen.revision
        if seen.type == "DELETED":
            return
        spec = seen.fields["spec"]
        now = self._of_slice[seen.object.name] = [Offer(spec, one) for one in spec.get("devices") or ()]
        for offer in now:
            self._offers.setdefault(offer.key, []).append(offer)


def selects(selector: Json, node: Json) -> bool:
    """Whether a node selector includes the node. None selects nothing."""
    labels = node["metadata"].get("labels") or {}
    fields = {"metadata.name": node["metadata"]["name"]}
    for term in (selector or {}).get("nodeSelectorTerms") or ():
        expressions, names = term.get("matchExpressions") or (), term.get("matchFields") or ()
        if (expressions or names) and _hold(expressions, labels) and _hold(names, fields):
            return True
    return False


def _hold(requirements: Sequence[Json], labels: Mapping[str, str]) -> bool:
    return all(_holds(one, labels.get(one["key"])) for one in requirements)


def _holds(requirement: Json, found: str | None) -> bool:
    wanted: Sequence[str] = requirement.get("values") or ()
    match requirement["operator"]:
        case "In":
            return found in wanted
        case "NotIn":
            return found not in wanted
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case "Gt":
            return found is not None and int(found) > int(wanted[0])
        case "Lt":
            return found is not None and int(found) < int(wanted[0])
    return False
