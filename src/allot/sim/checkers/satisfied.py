"""An allocation is what was asked for, of what was there.

D3  A device is newly given away only out of a pool that is complete and up to date. Caches are up to
    minutes old, so the pool may have been so a while ago.
D4  An allocation satisfies its claim: so many devices for each request, all different, with the
    attributes that were asked for, on the node that it names.

Selectors are read here from a table: the few that made-up worlds use, in Python. What a device
was like is what it was like when it was last on offer.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..recording import Seen
from .live import LiveObjects
from .reading import Fields, allocation, is_classic, name_of, results

OLD_S = 300.0
DRIVER, SHARING = "gpu.example.com", "shared.example.com"
Device = tuple[str, str, str]


def _is_of_kind(kind: str) -> Callable[[str, Any], bool]:
    return lambda driver, known: driver == SHARING and known.get("kind") == {"string": kind}


SELECTORS: Mapping[str, Callable[[str, Any], bool]] = {
    f'device.driver == "{DRIVER}"': lambda driver, known: driver == DRIVER,
    f'device.attributes["{DRIVER}"].model == "large"': lambda driver, known: (
        known.get("model") == {"string": "large"}
    ),
    **{
        f'device.driver == "{SHARING}" && device.attributes["{SHARING}"].kind == "{kind}"': _is_of_kind(kind)
        for kind in ("part", "port")
    },
}


class Satisfied:
    follows = ("resourceclaims", "resourceslices", "deviceclasses")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)
        self._offered: dict[Device, Any] = {}  # the device and its node, as now on offer
        self._until: dict[Device, tuple[float, Any]] = {}  # no longer: until when, and as what

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        if seen.resource == "resourceslices":
            self._published(seen.at_s)
        if seen.resource != "resourceclaims" or seen.type == "DELETED":
            return
        is_new = allocation(seen.fields) is not None and allocation(before or {}) is None
        if is_new and not is_classic(seen.fields):  # those are their drivers' affair
            yield from self._judge(seen)

    def rest(self) -> Iterator[str]:
        yield from ()

    # -- what is on offer -----------------------------------------------------------------------

    def _published(self, now_s: float) -> None:
        offered = dict(self._valid())
        for device, known in self._offered.items():
            if device not in offered:
                self._until[device] = (now_s, known)
        self._offered = offered

    def _valid(self) -> Iterator[tuple[Device, Any]]:
        """The devices of complete pools in their newest generation."""
        pools: dict[tuple[str, str], list[Fields]] = {}
        for one in self._now.all("resourceslices"):
            pools.setdefault((one["spec"]["driver"], one["spec"]["pool"]["name"]), []).append(one["spec"])
        for (driver, pool), slices in pools.items():
            newest = max(one["pool"]["generation"] for one in slices)
            current = [one for one in slices if one["pool"]["generation"] == newest]
            if len(current) == current[0]["pool"]["resourceSliceCount"]:
                for one in current:
                    for device in one.get("devices") or ():
                        yield (driver, pool, device["name"]), (device, one.get("nodeName", ""))

    def _known(self, device: Device, now_s: float) -> Any:
        if device in self._offered:
            return self._offered[device]
        until_s, known = self._until.get(device, (0.0, None))
        return known if now_s - until_s <= OLD_S else None

    # -- one allocation -------------------------------------------------------------------------

    def _judge(self, seen: Seen) -> Iterator[str]:
        name, given = seen.object.name, results(seen.fields)
        devices = [(one["driver"], one["pool"], one["device"]) for one in given]
        known = {device: self._known(device, seen.at_s) for device in devices}
        for device, found in known.items():
            if found is None:
                yield f"D3: claim {name} got {'/'.join(device)}, which is on offer nowhere"
        if len(set(devices)) < len(devices):
            yield f"D4: claim {name} got a device twice"
        asked = seen.fields["spec"]["devices"]
        for request in asked["requests"]:
            mine = [d for d, one in zip(devices, given, strict=True) if one["request"] == request["name"]]
            yield from self._request(name, request["exactly"], mine, known)
        for constraint in asked.get("constraints") or ():
            attribute = constraint["matchAttribute"].rpartition("/")[2]
            values = [found[0].get("attributes", {}).get(attribute) for found in known.values() if found]
            if any(value is None or value != values[0] for value in values):
                yield f"D4: the devices of claim {name} differ in {attribute}: {values}"
        yield from self._place(name, seen.fields, [found[1] for found in known.values() if found])

    def _request(
        self, name: str, asked: Fields, mine: list[Device], known: Mapping[Device, Any]
    ) -> Iterator[str]:
        if len(mine) != asked.get("count", 1):
            yield f"D4: claim {name} asks for {asked.get('count', 1)} devices and got {len(mine)}"
        classes = [one for one in self._now.all("deviceclasses") if name_of(one) == asked["deviceClassName"]]
        if not classes:
            yield f"D4: claim {name} asks for a class that does not exist"
        selectors = [*(asked.get("selectors") or ())]
        selectors += [text for one in classes for text in one["spec"].get("selectors") or ()]
        for selector in selectors:
            fits = SELECTORS[selector["cel"]["expression"]]
            for device in mine:
                if known[device] and not fits(device[0], known[device][0].get("attributes", {})):
                    yield f"D4: claim {name} got {'/'.join(device)}, which it did not ask for"

    def _place(self, name: str, claim: Fields, nodes: list[str]) -> Iterator[str]:
        if len(set(nodes)) > 1:
            yield f"D4: the devices of claim {name} are on different nodes: {nodes}"
        terms = ((allocation(claim) or {}).get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
        named = [value for term in terms for one in term.get("matchFields") or () for value in one["values"]]
        if nodes and nodes[0] not in named:
            yield f"D4: claim {name} is for {named}, and its devices are on {nodes[0]}"
