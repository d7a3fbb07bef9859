"""Nobody waits for ever.

P2  Once things are quiet, a pod for which a fitting node exists is on a node.
P3  A pod that waits says why, and what it says of nodes is about those that are there now.

A fitting node, read here for what made-up worlds ask: it is there and has no taints, every claim of
the pod that is allocated is on it, and as many healthy devices are free as the others ask for. Only pods
whose claims ask for any devices of the class are judged by P2, and only where the scheduler is ours.
"""

import re
from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import (
    Fields,
    asks_for_cards,
    asks_for_extended,
    claim_names,
    controller,
    is_classic,
    is_finished,
    is_leaving,
    name_of,
    node_of,
    place_of,
    results,
)
from .tainted import taints

CLASS, DRIVER = "gpu", "gpu.example.com"
SILENT = "forgetful-scheduler"
"""It tells nobody anything."""
NODES_COUNTED = re.compile(r"0/(\d+) nodes are available")


class Placed:
    follows = ("pods", "nodes", "resourceclaims", "resourceslices", "devicetaintrules")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        yield from ()

    def rest(self) -> Iterator[str]:
        for pod in self._now.all("pods"):
            if node_of(pod) or is_finished(pod) or is_leaving(pod):
                continue
            node = self._fitting(pod)
            if node:
                yield f"P2: pod {name_of(pod)} waits, and {node} has room for it"
            if pod["spec"].get("schedulerName") == SILENT:
                continue
            why = _explanation(pod)
            counted = NODES_COUNTED.match(why)
            nodes = sum(1 for _ in self._now.all("nodes"))
            if not why:
                yield f"P3: pod {name_of(pod)} waits and does not say why"
            elif counted and int(counted[1]) != nodes:
                yield f"P3: pod {name_of(pod)} waits and says {why!r}, where there are {nodes}"

    def _fitting(self, pod: Fields) -> str:
        namespace, _ = place_of(pod)
        homes = {
            one["spec"]["pool"]["name"]: one["spec"]["nodeName"] for one in self._now.all("resourceslices")
        }
        asked, held, uid = 0, set[str](), pod["metadata"]["uid"]
        entries = pod["spec"].get("resourceClaims") or ()
        generated = {one["name"] for one in entries if one.get("resourceClaimTemplateName")}
        for entry, name in claim_names(pod):
            claim = self._now.named("resourceclaims", name, namespace) if name else None
            if claim is None or is_leaving(claim) or controller(claim) not in ("", uid):
                return ""
            if is_classic(claim) or (entry in generated and controller(claim) != uid):
                return ""  # `classic_pods` knows; or somebody else's claim has the name of its own (C4)
            requests = claim["spec"]["devices"]["requests"]
            plain = [one["exactly"].get("deviceClassName") == CLASS for one in requests]
            if not all(plain) or any(one["exactly"].get("selectors") for one in requests):
                return ""
            held |= {homes.get(one["pool"], "") for one in results(claim)}
            asked += 0 if results(claim) else sum(one["exactly"].get("count", 1) for one in requests)
        if asks_for_extended(pod) or asks_for_cards(pod) or len(held) > 1 or pod["spec"].get("affinity"):
            return ""
        if pod["spec"].get("nodeSelector"):
            return ""  # `promised` knows
        for node in self._now.all("nodes"):
            name = name_of(node)
            if (node.get("spec") or {}).get("taints") or (held and name not in held):
                continue
            if self._free(name) >= asked:
                return name
        return ""

    def _free(self, node: str) -> int:
        published = [one["spec"] for one in self._now.all("resourceslices")]
        slices = [one for one in published if one["nodeName"] == node and one["driver"] == DRIVER]
        newest = max((one["pool"]["generation"] for one in slices), default=0)
        current = [one for one in slices if one["pool"]["generation"] == newest]
        if not current or len(current) != current[0]["pool"]["resourceSliceCount"]:
            return 0
        pool = current[0]["pool"]["name"]
        offered = {device["name"] for one in current for device in one.get("devices") or ()}
        given = [one for claim in self._now.all("resourceclaims") for one in results(claim)]
        rules = [*self._now.all("devicetaintrules")]
        unfit = {one for one in offered if any(taints(rule, (DRIVER, pool, one)) for rule in rules)}
        return len(offered - unfit - {one["device"] for one in given if one["pool"] == pool})


def _explanation(pod: Fields) -> str:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((one.get("message") or "" for one in conditions if one["type"] == "PodScheduled"), "")
