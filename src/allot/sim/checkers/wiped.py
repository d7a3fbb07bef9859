"""WIPE1: when a driver has been away for long, nothing of it is on offer.

Its agent must have been there all the time, and for a while before: one that begins anew has nobody to
miss until it has met the driver.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .on_machines import MACHINES, Machines

LONG_S = 400.0
"""Half a minute is what a driver may be away; the rest is for the server not to answer."""
MET_S = 150.0
"""An agent begins once the server has answered it, and then asks drivers who they are."""


class Wiped:
    follows = ("resourceslices", MACHINES)

    def __init__(self) -> None:
        self._now = LiveObjects("resourceslices")
        self._machines = Machines()

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        if seen.resource == MACHINES and seen.type == "BACK":
            node, driver = seen.object.name, seen.fields["driver"]
            machine = self._machines.nodes[node]
            since_s = machine.away[driver]
            is_watched = machine.agent_since_s + MET_S < since_s
            if is_watched and seen.at_s - since_s > LONG_S and self._offers(driver, node):
                yield f"WIPE1: {driver} has been away from {node} for long, and its devices are on offer"
        self._machines.see(seen)

    def _offers(self, driver: str, node: str) -> bool:
        specs = (one["spec"] for one in self._now.all("resourceslices"))
        return any(one["driver"] == driver and one.get("nodeName") == node for one in specs)

    def rest(self) -> Iterator[str]:
        yield from ()
