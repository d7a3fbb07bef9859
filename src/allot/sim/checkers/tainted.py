"""Whoever has a device that somebody tainted.

D4  A tainted device is not given to anybody who does not tolerate it. Caches are up to minutes old, so
    the taint may be a little older than the allocation.
V1  Once things are quiet, nobody has a device that is tainted with NoExecute: its pods were told to go.

In made-up worlds taints come from rules, each for one device, and nobody tolerates any.
"""

from collections.abc import Iterator

from ..recording import Seen
from .reading import Fields, allocation, is_active, name_of, node_of, reserved, results
from .standing import Standing

OLD_S = 300.0
Device = tuple[str, str, str]


def tainted_device(rule: Fields) -> Device:
    chosen = rule["spec"]["deviceSelector"]
    return chosen["driver"], chosen["pool"], chosen["device"]


def _devices(claim: Fields) -> set[Device]:
    return {(one["driver"], one["pool"], one["device"]) for one in results(claim)}


class Tainted:
    follows = ("pods", "resourceclaims", "devicetaintrules")

    def __init__(self) -> None:
        self._now = Standing(*self.follows)
        self._since: dict[str, float] = {}  # by uid of the rule

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        if seen.resource == "devicetaintrules":
            self._since.setdefault(seen.object.uid, seen.at_s)
        if seen.resource == "resourceclaims" and seen.type != "DELETED" and not allocation(before or {}):
            yield from self._judge(seen)

    def _judge(self, seen: Seen) -> Iterator[str]:
        given = _devices(seen.fields)
        for rule in self._now.all("devicetaintrules"):
            age_s = seen.at_s - self._since[rule["metadata"]["uid"]]
            if tainted_device(rule) in given and age_s > OLD_S:
                yield f"D4: claim {seen.object.name} got {'/'.join(tainted_device(rule))}, which is tainted"

    def rest(self) -> Iterator[str]:
        rules = [*self._now.all("devicetaintrules")]
        forbidden = {tainted_device(one) for one in rules if one["spec"]["taint"]["effect"] == "NoExecute"}
        for claim in self._now.all("resourceclaims"):
            for device in sorted(_devices(claim) & forbidden):
                for consumer in reserved(claim):
                    pod = self._now.get("pods", consumer["uid"])
                    if pod is not None and is_active(pod) and node_of(pod):
                        yield f"V1: pod {name_of(pod)} still has {'/'.join(device)}, which it must leave"
