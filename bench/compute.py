"""How resource classes over compute resources (KEP-14) scale: each dimension alone, and while classes change.

    bench/compute.py [--nodes N] [--pods M] [--duration S] [--tries T]

The scheduler's own core decides on a snapshot, without a server: a mirror is fed nodes, classes and pods, and
cycles place pods one after the other, the choice and its bookkeeping included. Prints one JSON object:

    properties, devices, nodes, classes    microseconds a pod when that dimension grows and the others stay
    changes                                pods a second without class changes and with one every second,
                                           the longest time that a placement and a change took, how often
                                           a class was held against a set of properties (`evaluations`)
    status_bytes                           the size of a node's status by number of devices

What others do on a shared machine only ever takes away: of several tries the best counts. Fails when placing
while classes change keeps less than four fifths of the rate.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from allot.api import Gates, Object, compute, encode
from allot.base import RandomIds
from allot.informers import Added, Deleted, Updated
from allot.scheduler import Settings
from allot.scheduler.cycle import Cycle, Placed
from allot.scheduler.framework import CycleState
from allot.scheduler.mirror import COMPUTE_CLASSES, NODES, Mirror, News
from allot.scheduler.plugins import default
from allot.scheduler.pod import PodInfo
from allot.scheduler.snapshot import snapshot_for

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RAW = "example.com/gpu"
WANTED = 0.8
EVERY_S = 1.0
"""Between two class changes."""
DEVICES_FOR_CHANGES = 128
"""Of each node: a fast machine must not run out of them while classes change."""


class Silent:
    """Nothing here is misread."""

    def misread(self, what: object, object: object, why: Exception) -> None:
        raise why

    def well(self, what: object, object: object) -> None:
        pass


def thing(**fields: Any) -> Object:
    return Object(encode(fields))


def node(number: int, *, devices: int, properties: int, kinds: int) -> Object:
    """Devices of one of some kinds, told apart by one property among many."""
    said = {f"property-{at}": "some value" for at in range(properties - 1)} | {"kind": f"k{number % kinds}"}
    ids = [f"device-{at}" for at in range(devices)]
    exported = {
        "name": compute.compute_resource_name(RAW, said),
        "resourceName": RAW,
        "properties": said,
        "devices": ids,
        "allocatableDevices": ids,
    }
    room = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    return thing(
        apiVersion="v1",
        kind="Node",
        metadata={"name": f"node-{number}", "uid": f"n{number}"},
        status={"allocatable": room, "computeResources": [exported]},
    )


def class_(number: int, kinds: int, edition: int = 0) -> Object:
    need = {"key": "kind", "operator": "In", "values": [f"k{number % kinds}", f"edition-{edition}"]}
    spec = {"resourceName": RAW, "resourceSelector": [{"matchExpressions": [need]}]}
    name = {"name": f"class-{number}", "uid": f"c{number}", "generation": edition + 1}
    return thing(apiVersion=compute.limits.API_VERSION, kind="ResourceClass", metadata=name, spec=spec)


def pod(number: int, asked: str) -> PodInfo:
    limits = {asked: "1", "cpu": "100m"}
    container = {"name": "c", "image": "i", "resources": {"limits": limits, "requests": limits}}
    metadata = {"name": f"pod-{number}", "namespace": "default", "uid": f"p{number}"}
    spec = {"containers": [container]}
    return PodInfo.of(thing(apiVersion="v1", kind="Pod", metadata=metadata, spec=spec))


class World:
    def __init__(
        self, *, nodes: int, classes: int, devices: int = 8, properties: int = 4, kinds: int = 4
    ) -> None:
        self.kinds = kinds
        self.snapshot = snapshot_for(Gates())
        self._mirror = Mirror(self.snapshot, Silent())
        self._cycle = Cycle(default(RandomIds(), Settings()))
        self._pods = 0
        for number in range(nodes):
            one = node(number, devices=devices, properties=properties, kinds=kinds)
            self._mirror.hear(News(NODES, Added(one)))
        for number in range(classes):
            self._mirror.hear(News(COMPUTE_CLASSES, Added(class_(number, kinds))))

    def change(self, number: int, edition: int) -> None:
        """It stands for something else; every third time it goes before it comes again."""
        before, after = (class_(number, self.kinds, one) for one in (edition - 1, edition))
        if edition % 3:
            self._mirror.hear(News(COMPUTE_CLASSES, Updated(before, after)))
        else:
            self._mirror.hear(News(COMPUTE_CLASSES, Deleted(before)))
            self._mirror.hear(News(COMPUTE_CLASSES, Added(after)))

    def place(self, asked: str) -> None:
        self._pods += 1
        deciding = self._cycle.schedule_one(CycleState(pod(self._pods, asked), NOW), self.snapshot)
        try:
            while True:
                aside = next(deciding)
                if aside is not None:
                    aside()
        except StopIteration as end:
            if not isinstance(end.value, Placed):
                raise SystemExit(f"a pod for {asked} was not placed: {end.value.reasons}") from None

    def microseconds_per_pod(self, pods: int) -> float:
        self.place("class-0")  # what is made once for a signature
        began = time.perf_counter()
        for _ in range(pods):
            self.place("class-0")
        return round(1e6 * (time.perf_counter() - began) / pods, 1)


def best(tries: int, measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(tries))


def along(
    name: str, sizes: tuple[int, ...], pods: int, tries: int, **rest: int
) -> Iterator[tuple[str, dict[str, float]]]:
    found = {
        str(size): best(tries, lambda: World(**{**rest, name: size}).microseconds_per_pod(pods))  # noqa: B023
        for size in sizes
    }
    yield name, found


def changes(nodes: int, seconds: float) -> dict[str, Any]:
    """Of four classes one a second is changed, or deleted and created: at times the one that pods ask for."""
    world = World(nodes=nodes, classes=4, devices=DEVICES_FOR_CHANGES)
    world.place("class-0")

    def run(has_changes: bool) -> tuple[float, float, float]:
        longest = slowest = 0.0
        pods = edition = 0
        began = now = time.perf_counter()
        while now < began + seconds:
            if has_changes and now > began + edition * EVERY_S:
                edition += 1
                world.change(edition % 4, edition)
                slowest = max(slowest, time.perf_counter() - now)
                now = time.perf_counter()
            world.place("class-0")
            pods += 1
            before, now = now, time.perf_counter()
            longest = max(longest, now - before)
        return pods / (now - began), longest, slowest

    plain, steady, _ = run(has_changes=False)
    changing, longest, slowest = run(has_changes=True)
    return {
        "nodes": nodes,
        "pods_per_second": round(plain),
        "pods_per_second_with_changes": round(changing),
        "kept": round(changing / plain, 3),
        "longest_placement_ms": round(1000 * steady, 2),
        "longest_placement_with_changes_ms": round(1000 * longest, 2),
        "longest_change_ms": round(1000 * slowest, 3),
        "evaluations": world.snapshot.compute.evaluations,
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=500, help="placed for each figure of a dimension")
    parser.add_argument("--duration", type=float, default=6.0, help="of placing while classes change, in s")
    parser.add_argument("--tries", type=int, default=3)
    options = parser.parse_args()
    count, tries = options.pods, options.tries
    figures: dict[str, Any] = dict(along("properties", (1, 8, 64), count, tries, nodes=500, classes=4))
    figures |= dict(along("devices", (8, 64, 1024), count, tries, nodes=500, classes=4))
    figures |= dict(along("nodes", (500, options.nodes), count, tries, classes=4))
    figures |= dict(along("classes", (4, 64, 512), count, tries, nodes=500))
    runs = [changes(options.nodes, options.duration) for _ in range(tries)]
    figures["changes"] = max(runs, key=lambda one: float(one["kept"]))
    figures["kept"] = [one["kept"] for one in runs]
    figures["status_bytes"] = {
        str(size): len(node(0, devices=size, properties=8, kinds=4).stored) for size in (8, 512, 8192)
    }
    print(json.dumps(figures))
    return 0 if figures["changes"]["kept"] >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
