"""Small clusters for questions about moving: GPUs in parts, whole ones, and pods that somebody makes anew."""

import random
from collections.abc import Iterable
from typing import Any

from allot.api import Object, encode
from allot.fleet import fleet
from allot.fleet.mig import PROFILES, partitionable_gpus
from allot.planning import Cluster
from allot.planning.defrag import Course, Terms, Wanted, from_manifests, waiting
from allot.planning.manifests import Manifest
from allot.scheduler import PODS, Settings

from ..clusters import NOW, Fields, cluster

GPU, MIG = "gpu.example.com", "mig.example.com"
CLASSES = fleet("mig", 1).classes
WIDE = {one.name: one for one in PROFILES}


def node(name: str, cpu: str = "64", **status: Any) -> Fields:
    have = {"cpu": cpu, "memory": "512Gi", "pods": "110", **status}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "capacity": have,
            "allocatable": have,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def whole(name: str, count: int) -> Fields:
    """A slice with so many GPUs that cannot be divided."""
    kind = {"attributes": {"type": {"string": "gpu"}}, "capacity": {"memory": {"value": "80Gi"}}}
    spec = {
        "driver": GPU,
        "nodeName": name,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{at}", **kind} for at in range(count)],
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{name}-gpus"},
        "spec": spec,
    }


def divided(name: str, count: int) -> list[Fields]:
    """The slices of so many GPUs that can be had in parts."""
    return [{**one, "metadata": {**one["metadata"]}} for one in partitionable_gpus(name, count).slices()]


def template(name: str, device_class: str, count: int = 1, profile: str = "") -> Fields:
    selector = {"cel": {"expression": f'device.attributes["{GPU}"].profile == "{profile}"'}}
    exactly = {
        "deviceClassName": device_class,
        "count": count,
        **({"selectors": [selector]} if profile else {}),
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    }


def running(
    name: str,
    on: str,
    devices: Iterable[str],
    wanted: Fields,
    *,
    owner: str = "ReplicaSet",
    cpu: str = "0",
    labels: Fields | None = None,
    annotations: Fields | None = None,
    **spec: Any,
) -> list[Fields]:
    """A pod on a node, with devices of the pool that is called like the node by a claim of a template."""
    results = [{"request": "gpu", "driver": GPU, "pool": on, "device": one} for one in devices]
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [on]}]}]
    claim: Fields = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": f"{name}-gpu",
            "namespace": "default",
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": name,
                    "uid": f"uid-Pod-{name}",
                    "controller": True,
                }
            ],
        },
        "spec": wanted["spec"]["spec"],
        "status": {
            "allocation": {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": terms}},
            "reservedFor": [{"resource": "pods", "name": name, "uid": f"uid-Pod-{name}"}],
        },
    }
    return [
        claim,
        pod(
            name,
            wanted["metadata"]["name"],
            claim=f"{name}-gpu",
            nodeName=on,
            owner=owner,
            cpu=cpu,
            labels=labels,
            annotations=annotations,
            **spec,
        ),
    ]


def pod(
    name: str,
    wanted: str = "",
    *,
    claim: str = "",
    owner: str = "",
    cpu: str = "0",
    labels: Fields | None = None,
    annotations: Fields | None = None,
    **spec: Any,
) -> Fields:
    metadata: Fields = {"name": name, "namespace": "default", "labels": labels or {"app": name}}
    if annotations:
        metadata["annotations"] = annotations
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": owner, "name": f"of-{name}", "uid": f"of-{name}"}
        metadata["ownerReferences"] = [{**reference, "controller": True}]
    status: Fields = {"phase": "Running"} if spec.get("nodeName") else {}
    if wanted:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": wanted}]
    if claim:
        status["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": claim}]
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
        "status": status,
    }


def here(*objects: Fields) -> Cluster:
    return cluster(*CLASSES, *objects)


def course(wanted: Wanted, terms: Terms | None = None) -> Course:
    return Course(wanted.reading, wanted.pods, terms or Terms(wanted.priority), NOW, Settings())


# -- made at random -------------------------------------------------------------------------------

TEMPLATES = {
    **{name: template(f"part-{name.replace('.', '-')}", MIG, profile=name) for name in WIDE},
    **{f"{count}x": template(f"gpus-{count}", GPU, count) for count in (1, 2, 3, 4)},
}


class World:
    """A cluster of a few nodes, and something that does not fit."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.movable: set[str] = set()
        objects: list[Fields] = [*CLASSES, *TEMPLATES.values()]
        is_divided = rng.random() < 0.5
        tight = rng.random() < 0.3
        for at in range(rng.choice((2, 2, 3))):
            name = f"n{at}"
            objects.append(node(name, cpu="6" if tight else "64"))
            if is_divided:
                objects += divided(name, 1)
                pods = self._parts(rng, name)
            else:
                size = rng.choice((3, 4, 4))
                objects.append(whole(name, size))
                pods = self._wholes(rng, name, size)
            for label, used, wanted in pods:
                owner = rng.choice(("ReplicaSet", "ReplicaSet", "ReplicaSet", "StatefulSet", ""))
                cpu = str(rng.choice((1, 2))) if tight else "0"
                objects += running(label, name, used, wanted, owner=owner, cpu=cpu)
                if owner:
                    self.movable.add(f"uid-Pod-{label}")
        names = ("7g.80gb", "4g.40gb", "3g.40gb", "2g.20gb") if is_divided else ("2x", "3x", "4x")
        chosen = TEMPLATES[rng.choice(names)]
        target = pod("target", chosen["metadata"]["name"], cpu="2" if tight else "0")
        self.is_there = rng.random() < 0.5
        if self.is_there:
            claim, _ = running("target", "n0", (), chosen)
            told = [{"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}]
            waits = {**target, "status": {"resourceClaimStatuses": told}}
            self.cluster = cluster(*objects, waits, {**claim, "status": {}})
            self.wanted = waiting(self.cluster, "target", "default")
        else:
            target["metadata"]["uid"] = "uid-Pod-target"
            self.cluster = cluster(*objects)
            self.wanted = from_manifests(self.cluster, [Manifest(PODS, Object(encode(target)))])

    def _parts(self, rng: random.Random, name: str) -> list[tuple[str, list[str], Fields]]:
        free, left, found = set(range(8)), 7, []
        choices = [
            (one, start)
            for one in PROFILES
            if one.memory_slices <= rng.choice((2, 2, 4))
            for start in one.places
        ]
        rng.shuffle(choices)
        for profile, start in choices[: rng.choice((3, 4, 8))]:
            covered = set(range(start, start + profile.memory_slices))
            if covered <= free and profile.decoders <= left and len(found) < 3:
                free -= covered
                left -= profile.decoders
                device = f"gpu-0-mig-{profile.name.replace('.', '-')}-{start}"
                found.append((f"{name}-{len(found)}", [device], TEMPLATES[profile.name]))
        return found

    def _wholes(self, rng: random.Random, name: str, size: int) -> list[tuple[str, list[str], Fields]]:
        order = list(range(size))
        rng.shuffle(order)
        found: list[tuple[str, list[str], Fields]] = []
        keep = rng.choice((1, 1, 2))
        while len(order) > keep:
            count = min(rng.choice((1, 1, 1, 2)), len(order))
            devices = [f"gpu-{order.pop()}" for _ in range(count)]
            found.append((f"{name}-{len(found)}", devices, TEMPLATES[f"{count}x"]))
        return found
