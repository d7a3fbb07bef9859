"""What was written, as the server counted it: everybody's writes, by verb and resource."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from allot.client import Client

_LABELLED = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_REQUESTS = "apiserver_request_total{"
_HOLD = "allot_event_loop_longest_hold_seconds "
_WRITES = ("create", "update", "patch", "delete", "deletecollection")


@dataclass(frozen=True, slots=True)
class Served:
    """What a server has done so far."""

    done: Mapping[str, float]  # "create pods/binding" -> how often
    refused: Mapping[str, float]  # "create pods/binding 409" -> how often
    reads: float
    longest_hold_s: float

    @property
    def writes(self) -> float:
        return sum(self.done.values()) + sum(self.refused.values())

    def since(self, earlier: "Served") -> "Served":
        return Served(
            _more(self.done, earlier.done),
            _more(self.refused, earlier.refused),
            self.reads - earlier.reads,
            self.longest_hold_s,
        )


def _more(now: Mapping[str, float], then: Mapping[str, float]) -> Mapping[str, float]:
    grown = {what: count - then.get(what, 0) for what, count in now.items()}
    return {what: count for what, count in sorted(grown.items()) if count}


async def served(client: Client) -> Served:
    return read((await client.send("GET", "/metrics", {})).body.decode())


def read(text: str) -> Served:
    """From the text that /metrics shows."""
    done: dict[str, float] = {}
    refused: dict[str, float] = {}
    reads, hold_s = 0.0, 0.0
    for line in text.splitlines():
        if line.startswith(_HOLD):
            hold_s = float(line.rpartition(" ")[2])
        if not line.startswith(_REQUESTS):
            continue
        labels, count = dict(_LABELLED.findall(line)), float(line.rpartition(" ")[2])
        if labels["verb"] not in _WRITES:
            reads += count
            continue
        resource = "/".join(part for part in (labels["resource"], labels["subresource"]) if part)
        what = f"{labels['verb']} {resource}"
        if labels["code"].startswith("2"):
            done[what] = done.get(what, 0.0) + count
        else:
            said = f"{what} {labels['code']}"
            refused[said] = refused.get(said, 0.0) + count
    return Served(done, refused, reads, hold_s)
