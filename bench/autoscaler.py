"""How long a decision of the autoscaler and a what-if answer take in a large cluster. Prints JSON.

    bench/autoscaler.py [--nodes N] [--pods P] [--shapes S] [--groups G]

For `decision` the cluster is full, every device of every node is held: one decision for all pods that wait,
with boards that know the nodes already, as those of a running autoscaler do; `first` is the same without. For
`whatIf` half of the devices are free and nobody waits: one node is drained, after the cluster was read. Times
are of the wall and of the processor.
"""

import argparse
import gc
import json
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from allot.api import Gates, Object, encode
from allot.autoscaler import Group, Origin, Template, grow
from allot.base import RandomIds
from allot.fleet import CATALOGUE, fleet
from allot.planning import Cluster, parse, what_if
from allot.scheduler import SOURCES, Cycle, Gathered, PodInfo, Settings, Simulation, deciding_plugins

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GPU = "gpu.example.com"
DEVICES = 8
FLEETS = ("gpu", "mig", "edge", "nic", "plugin", "plain")
Fields = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("nodes", 5000), ("pods", 1000), ("shapes", 50), ("groups", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    gc.set_threshold(50_000, 2, 1000)  # as the loop of a component has it
    times, cluster = timed(lambda: Cluster(gathered(options.nodes, options.pods, options.shapes), Gates()))
    result: Fields = {
        "nodes": options.nodes,
        "pods": options.pods,
        "shapes": options.shapes,
        "groups": options.groups,
        "read": times,
    }
    result |= decisions(cluster, groups(options.groups))
    changes = [parse("drain gpu-7", lambda path: [], "default")]
    calm = Cluster(gathered(options.nodes, 0, 1, DEVICES // 2), Gates())
    gc.disable()  # as `allot what-if` does
    times, answer = timed(lambda: what_if(calm, changes, NOW, Settings()))
    result["whatIf"] = {**times, "evicted": len(answer.evicted), "placed": len(answer.placed)}
    print(json.dumps(result, indent=2))


def decisions(cluster: Cluster, candidates: list[Group]) -> Fields:
    snapshot = cluster.reading.snapshot
    plugins = deciding_plugins(RandomIds(random.Random(0)), Settings())
    cycle = Cycle(plugins)

    def hosts(pod: PodInfo) -> list[str]:
        return list(cycle.fitting(pod, NOW, snapshot))

    def decide() -> Any:
        return grow(Simulation(snapshot, plugins, NOW), cluster.waiting, candidates, hosts)

    first, growth = timed(decide)
    later, again = timed(decide)
    assert len(again.nodes) == len(growth.nodes)
    return {
        "first": first,
        "decision": {
            **later,
            "nodesAdded": len(again.nodes),
            "price": again.price(candidates),
            "helpless": len(again.helpless),
        },
    }


def timed(work: Any) -> tuple[Fields, Any]:
    began, spent = time.perf_counter(), time.process_time()
    answer = work()
    times = {"seconds": time.perf_counter() - began, "processorSeconds": time.process_time() - spent}
    return {name: round(value, 3) for name, value in times.items()}, answer


def groups(count: int) -> list[Group]:
    """Of the fleets in turn, each a little dearer than the last of its kind."""
    made = []
    for at in range(count):
        kind = FLEETS[at % len(FLEETS)]
        member = next(fleet(kind, 1).members())
        price = int(member.node["status"]["allocatable"]["cpu"]) * (1 + at / count)
        made.append(
            Group(f"{kind}-{at}", price, template=Template(member.node, member.slices, Origin.PROVIDED))
        )
    return made


# -- the cluster ----------------------------------------------------------------------------------


def gathered(nodes: int, pods: int, shapes: int, used: int = DEVICES) -> Gathered:
    by_plural = {(what.group, what.plural): what for what in SOURCES}
    found: dict[Any, list[Object]] = {what: [] for what in SOURCES}
    for number, (group, plural, fields) in enumerate(objects(nodes, pods, shapes, used)):
        metadata = {"uid": f"{plural}-{fields['metadata']['name']}", "resourceVersion": str(number + 1)}
        whole = {**fields, "metadata": {**metadata, **fields["metadata"]}}
        found[by_plural[group, plural]].append(Object(encode(whole)))
    return Gathered(found)


def objects(nodes: int, pods: int, shapes: int, used: int) -> Iterator[tuple[str, str, Fields]]:
    made = fleet("gpu", nodes)
    seen = set()
    for kind in CATALOGUE:
        for one in fleet(kind, 1).classes:
            if one["metadata"]["name"] not in seen:
                seen.add(one["metadata"]["name"])
                yield "resource.k8s.io", "deviceclasses", one
    for number, member in enumerate(made.members()):
        yield "", "nodes", member.node
        for one in member.slices:
            yield "resource.k8s.io", "resourceslices", one
        yield from pod(f"full-{number}", used, 1, node=member.name)
    for number in range(pods):
        shape = number % shapes
        yield from pod(f"p-{number}", 1 + shape % DEVICES, 1 + shape // DEVICES)


def pod(name: str, devices: int, cpus: int, node: str = "") -> Iterator[tuple[str, str, Fields]]:
    wanted = {"deviceClassName": GPU, "count": devices}
    claim: Fields = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": wanted}]}},
    }
    if node:
        results = [
            {"request": "gpu", "driver": GPU, "pool": node, "device": f"gpu-{at}"} for at in range(devices)
        ]
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
        claim["status"] = {
            "allocation": {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": terms}},
            "reservedFor": [{"resource": "pods", "name": name, "uid": f"pods-{name}"}],
        }
    yield "resource.k8s.io", "resourceclaims", claim
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
    container = {"name": "main", "resources": {"requests": {"cpu": str(cpus)}}}
    spec: Fields = {
        "containers": [container],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
        **({"nodeName": node} if node else {}),
    }
    metadata = {"name": name, "namespace": "default", "ownerReferences": [owner]}
    yield "", "pods", {"metadata": metadata, "spec": spec, "status": {"phase": "Running" if node else ""}}


if __name__ == "__main__":
    main()
