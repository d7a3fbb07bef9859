"""How long it takes to say how fragmented a large cluster is, and to find moves that make room. Prints JSON.

    bench/defrag.py [--nodes N]

Four of five nodes have eight GPUs, of which pods hold five, one and one; the others have four GPUs in parts,
with a small part taken in the middle of each. `report` is the fragmentation of all of it. `oneMove` makes
room for two GPUs on one node, `twoMoves` for three, `partMoves` for the larger half of a GPU; `none` is
sought for eight, which so few moves do not give. The scheduler packs nodes (MostAllocated). Each is asked of
the cluster as it was read. Times are of the wall and of the processor.
"""

import argparse
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from allot.api import Gates, Object, encode
from allot.fleet import fleet
from allot.planning import Cluster
from allot.planning.defrag import Course, Plan, Terms, fragmentation, of_profile, plan
from allot.scheduler import SOURCES, Gathered, Scoring, Settings, Strategy

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GPU, PART = "gpu.example.com", "mig.example.com"
GROUP = "resource.k8s.io"
MOVES_MAX = 2
PACKING = Settings(scoring=Scoring(Strategy.MOST_ALLOCATED))
Fields = dict[str, Any]
ASKED = {"oneMove": f"2x{GPU}", "twoMoves": f"3x{GPU}", "partMoves": "4g.40gb", "none": f"8x{GPU}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    options = parser.parse_args()
    times, cluster = timed(lambda: Cluster(gathered(options.nodes), Gates()))
    result: Fields = {"nodes": options.nodes, "pods": len(cluster.reading.pods), "read": times}
    times, found = timed(lambda: fragmentation(cluster.reading.snapshot))
    result["report"] = {**times, "pools": len(found.pools), "makes": len(found.makes)}
    for name, profile in ASKED.items():
        times, answer = timed(lambda profile=profile: planned(cluster, profile))
        result[name] = {
            **times,
            "moves": len(answer.steps) if isinstance(answer, Plan) else None,
            "certain": answer.is_certain,
        }
    print(json.dumps(result, indent=2))


def planned(cluster: Cluster, profile: str) -> Any:
    wanted = of_profile(cluster, profile, "default")
    return plan(Course(wanted.reading, wanted.pods, Terms(), NOW, PACKING), MOVES_MAX)


def timed(work: Any) -> tuple[Fields, Any]:
    began, spent = time.perf_counter(), time.process_time()
    answer = work()
    times = {"seconds": time.perf_counter() - began, "processorSeconds": time.process_time() - spent}
    return {name: round(value, 3) for name, value in times.items()}, answer


# -- the cluster ----------------------------------------------------------------------------------


def gathered(nodes: int) -> Gathered:
    by_plural = {(what.group, what.plural): what for what in SOURCES}
    found: dict[Any, list[Object]] = {what: [] for what in SOURCES}
    for number, (group, plural, fields) in enumerate(objects(nodes)):
        metadata = {"uid": f"{plural}-{fields['metadata']['name']}", "resourceVersion": str(number + 1)}
        whole = {**fields, "metadata": {**metadata, **fields["metadata"]}}
        found[by_plural[group, plural]].append(Object(encode(whole)))
    return Gathered(found)


def objects(nodes: int) -> Iterator[tuple[str, str, Fields]]:
    divided = max(1, nodes // 5)
    for one in fleet("mig", 1).classes:
        yield GROUP, "deviceclasses", one
    for name, count in (("gpu", nodes - divided), ("mig", divided)):
        for member in fleet(name, count).members():
            yield "", "nodes", member.node
            for one in member.slices:
                yield GROUP, "resourceslices", one
            if name == "gpu":
                for at, devices in enumerate((range(5), range(5, 6), range(6, 7))):
                    yield from pod(f"{member.name}-{at}", member.name, [f"gpu-{one}" for one in devices], GPU)
            else:
                for at in range(4):
                    yield from pod(
                        f"{member.name}-{at}", member.name, [f"gpu-{at}-mig-1g-10gb-3"], PART, "1g.10gb"
                    )


def pod(
    name: str, node: str, devices: list[str], device_class: str, profile: str = ""
) -> Iterator[tuple[str, str, Fields]]:
    selector = {"cel": {"expression": f'device.attributes["{GPU}"].profile == "{profile}"'}}
    wanted: Fields = {"deviceClassName": device_class, "count": len(devices)}
    if profile:
        wanted["selectors"] = [selector]
    results = [{"request": "gpu", "driver": GPU, "pool": node, "device": one} for one in devices]
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"pods-{name}", "controller": True}
    yield (
        GROUP,
        "resourceclaims",
        {
            "metadata": {"name": f"{name}-gpu", "namespace": "default", "ownerReferences": [owner]},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": wanted}]}},
            "status": {
                "allocation": {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": terms}},
                "reservedFor": [{"resource": "pods", "name": name, "uid": f"pods-{name}"}],
            },
        },
    )
    maker = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
    yield (
        "",
        "pods",
        {
            "metadata": {"name": name, "namespace": "default", "ownerReferences": [maker]},
            "spec": {
                "nodeName": node,
                "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
            },
            "status": {
                "phase": "Running",
                "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}],
            },
        },
    )


if __name__ == "__main__":
    main()
