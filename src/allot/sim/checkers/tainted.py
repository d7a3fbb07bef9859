"""Whoever has a device that somebody tainted.

D4  A tainted device is not given to anybody who does not tolerate it. Caches are up to minutes old, so
    the taint may be a little older than the allocation.
TAINT1  Once things are quiet, nobody has a device that is tainted with NoExecute: its pods were told to go.

In made-up worlds taints come from rules, and nobody tolerates any.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import Fields, allocation, is_active, name_of, node_of, reserved, results

OLD_S = 300.0
Device = tuple[str, str, str]


def taints(rule: Fields, device: Device) -> bool:
    """What a rule does not name, it means all of; what nodes publish for numeric models are no devices."""
    if device[1].startswith("numeric/"):
        return False
    chosen = rule["spec"]["deviceSelector"]
    named = (chosen.get("driver"), chosen.get("pool"), chosen.get("device"))
    return all(one in (None, own) for one, own in zip(named, device, strict=True))


def _devices(claim: Fields) -> list[Device]:
    return [(one["driver"], one["pool"], one["device"]) for one in results(claim)]


class Tainted:
    follows = ("pods", "resourceclaims", "devicetaintrules")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)
        self._since: dict[str, float] = {}  # by uid of the rule

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        if seen.resource == "devicetaintrules":
            self._since.setdefault(seen.object.uid, seen.at_s)
        if seen.resource == "resourceclaims" and seen.type != "DELETED" and not allocation(before or {}):
            yield from self._judge(seen)

    def _judge(self, seen: Seen) -> Iterator[str]:
        rules = [*self._now.all("devicetaintrules")]
        old = [one for one in rules if seen.at_s - self._since[one["metadata"]["uid"]] > OLD_S]
        for device in _devices(seen.fields):
            if any(taints(rule, device) for rule in old):
                yield f"D4: claim {seen.object.name} got {'/'.join(device)}, which is tainted"

    def rest(self) -> Iterator[str]:
        rules = [*self._now.all("devicetaintrules")]
        evicting = [one for one in rules if one["spec"]["taint"]["effect"] == "NoExecute"]
        for claim in self._now.all("resourceclaims"):
            for device in _devices(claim):
                if not any(taints(rule, device) for rule in evicting):
                    continue
                for consumer in reserved(claim):
                    pod = self._now.get("pods", consumer["uid"])
                    if pod is not None and is_active(pod) and node_of(pod):
                        yield f"TAINT1: pod {name_of(pod)} still has {'/'.join(device)}, which it must leave"
