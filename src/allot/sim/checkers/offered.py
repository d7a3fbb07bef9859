"""What machines have of counters, and what is shown and given of it.

PUBLISH1  Whatever is shown of a driver on a node, the driver has said.
PUBLISH2  At rest the API shows what each driver said last, every instance once; of nodes that are gone,
          nothing.
PUBLISH3  When a driver has been away for long, nothing of it is shown. Its agent must have been there all the
          time, and for a while before.
OFFER1    A claim is made ready only where its resource is there, beside what is ready for others.
"""

from collections import Counter
from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .on_machines import MACHINES, Machines
from .reading import Fields
from .wiped import LONG_S, MET_S

CAPACITIES = "noderesourcecapacities"
MOMENT_S = 1.0
"""A driver looks at what there is, writes that down, and then sets it up."""

Counts = dict[str, int]


class Offered:
    follows = (CAPACITIES, "nodes", MACHINES)

    def __init__(self) -> None:
        self._now = LiveObjects(CAPACITIES, "nodes")
        self._machines = Machines()
        self._said: dict[tuple[str, str], list[tuple[float, Counts]]] = {}  # by node and driver: when, what
        self._on: set[str] = set()  # machines that are on at the end
        self._takes: dict[tuple[str, str], Counts] = {}  # by node and claim

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        if seen.resource == CAPACITIES and seen.type != "DELETED":
            yield from self._shown(seen.fields)
        elif seen.resource == MACHINES:
            yield from self._noted(seen)
        self._machines.see(seen)

    def _shown(self, of: Fields) -> Iterator[str]:
        said = self._said.get((of["nodeName"], of["driverName"]))
        if said is None:
            return  # not of a machine
        for one in of.get("instances") or ():
            id, count = one["id"], one["data"]["count"]
            if not any(counts.get(id) == count for _, counts in said):
                yield f"PUBLISH1: {of['nodeName']} shows {count} of {id}, which {of['driverName']} never said"

    def _noted(self, seen: Seen) -> Iterator[str]:
        node, of = seen.object.name, seen.fields
        match seen.type:
            case "OFFERS":
                self._said.setdefault((node, of["driver"]), []).append((seen.at_s, dict(of["counts"])))
            case "PREPARE" if "takes" in of:
                yield from self._prepared(seen)
                self._takes[node, of["claim"]] = of["takes"]
            case "BACK" if (node, of["driver"]) in self._said:
                yield from self._was_away(seen)
            case "LEFT" if of["is_on"]:
                self._on.add(node)

    def _prepared(self, seen: Seen) -> Iterator[str]:
        node, of = seen.object.name, seen.fields
        said, since_s = self._said.get((node, of["driver"]), []), seen.at_s - MOMENT_S
        before = [counts for at_s, counts in said if at_s < since_s]
        lately = [counts for at_s, counts in said if at_s >= since_s]
        others = self._ready(node, of["driver"], of["claim"])
        for id, count in of["takes"].items():
            there = max((counts.get(id, -1) for counts in (*before[-1:], *lately)), default=-1)
            if others[id] + count > there:
                yield (
                    f"OFFER1: {node} made {count} of {id} ready for claim {of['named']} beside {others[id]}, "
                    f"and there is {max(there, 0)}"
                )

    def _ready(self, node: str, driver: str, besides: str) -> Counter[str]:
        """What other claims have."""
        found = Counter[str]()
        for owner, claim in self._machines.nodes[node].answered if node in self._machines.nodes else ():
            if owner == driver and claim != besides:
                found.update(self._takes.get((node, claim), {}))
        return found

    def _was_away(self, seen: Seen) -> Iterator[str]:
        node, driver = seen.object.name, seen.fields["driver"]
        machine = self._machines.nodes[node]
        since_s = machine.away[driver]
        is_watched = machine.agent_since_s + MET_S < since_s
        if is_watched and seen.at_s - since_s > LONG_S and self._of(node, driver):
            yield f"PUBLISH3: {driver} has been away from {node} for long, and its capacity is shown"

    def _of(self, node: str, driver: str) -> list[Fields]:
        shown = self._now.all(CAPACITIES)
        return [one for one in shown if (one["nodeName"], one["driverName"]) == (node, driver)]

    def rest(self) -> Iterator[str]:
        for (node, driver), said in self._said.items():
            objects = self._of(node, driver)
            shown = [
                (one["id"], one["data"]["count"])
                for object in objects
                for one in object.get("instances") or ()
            ]
            if self._now.named("nodes", node) is None:
                if objects:
                    yield f"PUBLISH2: node {node} is gone, and {driver}'s capacity is shown"
            elif node in self._on and (sorted(shown) != sorted(said[-1][1].items()) or not objects):
                yield f"PUBLISH2: {node} shows {sorted(shown)} of {driver}, which said {said[-1][1]}"
