"""What it costs to decide where a pod goes, without the writes: by number of nodes.

Pods with a claim of their own, all of one template, on nodes with ten devices each. A pod
comes, its claim comes, the pod is taken from the queue and placed; then the answers of the
server come: the claim with its allocation, twice (the answer and the watch), and the pod with
its node. All of it is the deciding task's work. The same is done for a cluster that is half
full at random, so that nodes differ.

    python bench/deciding.py [--nodes 500,5000] [--pods 2000]
"""

import argparse
import json
import random
import time
from datetime import UTC, datetime
from typing import Any

import msgspec

from allot.allocation import DeviceId, Features, Taken
from allot.api import Gates, Object
from allot.base import RandomIds
from allot.informers import Added, Updated
from allot.scheduler.cycle import Cycle, Placed
from allot.scheduler.framework import CycleState
from allot.scheduler.intake import Intake
from allot.scheduler.mirror import CLAIMS, CLASSES, NODES, PODS, SLICES, News
from allot.scheduler.plugins import default, events
from allot.scheduler.queue import Queue
from allot.scheduler.settings import Settings
from allot.scheduler.snapshot import Snapshot
from allot.scheduler.writes import AllocateClaim

DRIVER = "gpu.example.com"
DEVICES = 10
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def encoded(fields: dict[str, Any]) -> Object:
    return Object(msgspec.json.encode(fields))


class Decider:
    def __init__(self, nodes: int, busy: float) -> None:
        features = Features.from_gates(Gates())
        ids = RandomIds(random.Random(1))
        plugins = default(ids, Settings())
        self.snapshot = Snapshot(features)
        self.cycle = Cycle(plugins)
        self.queue = Queue(events(plugins))
        self.intake = Intake(self.snapshot, self.queue, self.cycle, Settings().names)
        self.version = 0
        self.hear(CLASSES, self.object("DeviceClass", "gpu", spec={"selectors": [_driver()]}))
        rng = random.Random(2)
        for at in range(nodes):
            name = f"node-{at:05}"
            self.hear(NODES, self.object("Node", name, status={"allocatable": _NODE}))
            self.hear(SLICES, self.object("ResourceSlice", name, spec=_slice(name)))
            for device in range(DEVICES):
                if rng.random() < busy:
                    taken = Taken(DeviceId(DRIVER, name, f"gpu-{device}"))
                    self.snapshot.ledger.settle(f"{name}-{device}", [taken])

    def object(self, kind: str, name: str, **rest: Any) -> Object:
        self.version += 1
        metadata: dict[str, Any] = {
            "name": name,
            "uid": f"uid-of-{kind}-{name}",
            "resourceVersion": str(self.version),
        }
        if kind in ("Pod", "ResourceClaim"):
            metadata["namespace"] = "default"
        if kind == "ResourceClaim":
            owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-of-Pod-{name}"}
            metadata["ownerReferences"] = [{**owner, "controller": True}]
        return encoded({"apiVersion": "v1", "kind": kind, "metadata": metadata, **rest})

    def hear(self, what: Any, object: Object, old: Object | None = None) -> None:
        change = Added(object) if old is None else Updated(old, object)
        self.intake.hear(News(what, change), 0.0)

    def place(self, name: str) -> bool:
        """One pod, from the first word of it to the last."""
        status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": name}]}
        pod = self.object("Pod", name, spec=_POD, status=status)
        claim = self.object("ResourceClaim", name, spec=_CLAIM)
        self.hear(PODS, pod)
        self.hear(CLAIMS, claim)
        queued = self.queue.take(0.0)
        if queued is None:
            return False
        outcome = finished(self.cycle.schedule_one(CycleState(queued.pod, NOW), self.snapshot))
        if not isinstance(outcome, Placed):
            return False
        self.queue.placed(queued.pod.uid, 0.0)
        (write,) = outcome.writes
        assert isinstance(write, AllocateClaim)
        allocated = {
            "allocation": msgspec.to_builtins(write.allocation),
            "reservedFor": [{"resource": "pods", "name": name, "uid": pod.uid}],
        }
        written = self.object("ResourceClaim", name, spec=_CLAIM, status=allocated)
        self.intake.claim(written, 0.0)
        self.hear(CLAIMS, written, claim)
        bound = self.object("Pod", name, spec={**_POD, "nodeName": outcome.node}, status=status)
        self.queue.remove(queued.pod.uid, 0.0)
        self.hear(PODS, bound, pod)
        return True


def finished(cycle: Any) -> Any:
    while True:
        try:
            next(cycle)
        except StopIteration as done:
            return done.value


def _driver() -> dict[str, Any]:
    return {"cel": {"expression": f'device.driver == "{DRIVER}"'}}


def _slice(node: str) -> dict[str, Any]:
    devices = [
        {
            "name": f"gpu-{at}",
            "attributes": {"model": {"string": "large"}, "uuid": {"string": f"{node}-{at}"}},
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for at in range(DEVICES)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}


_NODE = {"cpu": "64", "memory": "512Gi", "pods": "110"}
_CLAIM = {
    "devices": {
        "requests": [
            {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
        ]
    }
}
_POD = {
    "containers": [
        {
            "name": "main",
            "image": "busybox",
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "claims": [{"name": "gpu"}]},
        }
    ],
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
    "schedulerName": "default-scheduler",
    "priority": 0,
}


def measure(nodes: int, pods: int, busy: float) -> dict[str, Any]:
    decider = Decider(nodes, busy)
    began = time.process_time()
    placed = int(decider.place("first"))
    first_s = time.process_time() - began
    began = time.process_time()
    placed += sum(decider.place(f"pod-{at}") for at in range(pods))
    spent_s = time.process_time() - began
    return {
        "nodes": nodes,
        "busy": busy,
        "placed": placed,
        "first_pod_ms": round(first_s * 1e3, 2),
        "us_per_pod": round(spent_s / pods * 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", default="50,500,5000")
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    if options.profile:
        import cProfile
        import pstats

        decider = Decider(int(options.nodes.split(",")[0]), 0.5)
        profile = cProfile.Profile()
        profile.runcall(lambda: [decider.place(f"pod-{at}") for at in range(options.pods)])
        pstats.Stats(profile).sort_stats("tottime").print_stats(40)
        return
    runs = [
        measure(int(nodes), min(options.pods, int(nodes) * 4), busy)
        for nodes in options.nodes.split(",")
        for busy in (0.0, 0.5)
    ]
    print(json.dumps({"benchmark": "deciding", "runs": runs}, indent=2))


if __name__ == "__main__":
    main()
