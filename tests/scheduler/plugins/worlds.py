"""Small clusters as plain data, and the snapshots that they make."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from allot.allocation import Features
from allot.api import Object, core, meta, resource
from allot.base import RandomIds
from allot.informers import Key
from allot.scheduler.cycle import Cycle, Outcome
from allot.scheduler.framework import CycleState, Plugin
from allot.scheduler.plugins.claims import ResourceClaims
from allot.scheduler.plugins.devices import DynamicResources
from allot.scheduler.plugins.node_affinity import NodeAffinity
from allot.scheduler.plugins.node_resources_fit import NodeResourcesFit
from allot.scheduler.plugins.preemption import DefaultPreemption
from allot.scheduler.pod import PodInfo
from allot.scheduler.snapshot import Snapshot

from ..objects import node, pod

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DRIVER = "gpu.example.com"
FABRIC = "fabric"
_encoder = msgspec.json.Encoder()


@dataclass(frozen=True)
class Running:
    """A pod on a node; `claim` names the claim whose devices it uses."""

    name: str
    node: str
    priority: int = 0
    cpu: int = 0
    claim: str = ""
    started: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    deleted: str = ""  # when it has to be gone
    preempted: bool = False

    @property
    def uid(self) -> str:
        return f"uid-of-{self.name}"


@dataclass(frozen=True)
class Wanting:
    """The pod for which room is sought."""

    cpu: int = 0
    gpus: int = 0
    priority: int = 10
    policy: str = ""
    nominated: str = ""
    claim: str = ""  # one that has its devices
    selector: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class World:
    nodes: Mapping[str, int]  # how much cpu
    gpus: Mapping[str, int] = field(default_factory=dict)  # by node; FABRIC: within reach of all
    pods: tuple[Running, ...] = ()
    claims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # devices by claim, as "pool/gpu-0"
    budgets: Mapping[str, int] = field(default_factory=dict)  # disruptions allowed, by label "app"
    gone: tuple[str, ...] = ()  # pods that left while their claims still have devices

    def without(self, names: Iterable[str]) -> "World":
        """As it is once these pods are gone and their claims have given back what nobody else uses."""
        going = frozenset(names)
        left = tuple(one for one in self.pods if one.name not in going)
        used = {one.claim for one in left}
        freed = {one.claim for one in self.pods} - used
        claims = {name: devices for name, devices in self.claims.items() if name not in freed}
        return replace(self, pods=left, claims=claims)

    def snapshot(self) -> Snapshot:
        made = Snapshot(Features())
        for name, cpu in self.nodes.items():
            made.put_node(node(name, allocatable={"cpu": str(cpu)}, labels={"name": name}))
        for pool, count in self.gpus.items():
            made.inventory.apply(_slice(pool, count))
        made.put_class(meta.view(resource.DeviceClass, {"metadata": {"name": "gpu"}}))
        for name, devices in self.claims.items():
            users = [one.uid for one in self.pods if one.claim == name]
            made.put_claim(claim(name, devices, users + [f"uid-of-{one}" for one in self.gone]))
        for one in self.pods:
            made.place(running(one), one.node)
        for app, allowed in self.budgets.items():
            made.prospects.budgets.set(Key("default", app), _budget(app, allowed))
        for name in self.gone:
            made.prospects.leave(f"uid-of-{name}", [Key("default", claim) for claim in self.claims])
        return made


def running(one: Running) -> PodInfo:
    status: dict[str, Any] = {"startTime": f"2026-01-01T{one.started:02}:00:00Z"}
    if one.preempted:
        status["conditions"] = [
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        ]
    made = pod(
        one.name,
        priority=one.priority,
        labels=one.labels,
        requests={"cpu": str(one.cpu)},
        status=status,
        **_using(*([one.claim] if one.claim else [])),
    )
    if one.deleted:
        made = PodInfo.of(made.object.changed({"metadata": {"deletionTimestamp": one.deleted}}))
    return made


def wanting(one: Wanting, snapshot: Snapshot) -> PodInfo:
    """Its claim, if it wants devices, is made with it, and it is nominated if it says so."""
    used = [one.claim] if one.claim else []
    if one.gpus:
        used.append("wanted")
        snapshot.put_claim(claim("wanted", count=one.gpus))
    made = pod(
        "wanting",
        priority=one.priority,
        requests={"cpu": str(one.cpu)},
        preemptionPolicy=one.policy,
        nodeSelector=dict(one.selector),
        **_using(*used),
    )
    if one.nominated:
        snapshot.nominate(made, one.nominated)
    return made


def others() -> list[Plugin]:
    devices = DynamicResources(RandomIds(random.Random(1)))
    return [NodeAffinity(), NodeResourcesFit(), ResourceClaims(), devices]


def schedule(one: PodInfo, snapshot: Snapshot, plugins: list[Plugin] | None = None) -> Outcome:
    asked = others()
    cycle = Cycle(plugins if plugins is not None else [*asked, DefaultPreemption(asked)])
    steps = cycle.schedule_one(CycleState(one, NOW), snapshot)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            outcome: Outcome = done.value
            return outcome


def _using(*claims: str) -> dict[str, Any]:
    return {"resourceClaims": [{"name": name, "resourceClaimName": name} for name in claims]}


def claim(name: str, devices: Iterable[str] = (), users: Iterable[str] = (), count: int = 1) -> Object:
    results = []
    for device in devices:
        pool, gpu = device.split("/")
        results.append({"request": "gpu", "driver": DRIVER, "pool": pool, "device": gpu})
    status: dict[str, Any] = {}
    if results:
        status = {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in users],
        }
    fields = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"claim-{name}", "resourceVersion": "1"},
        "spec": {
            "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count}}]}
        },
        "status": status,
    }
    return Object(_encoder.encode(fields))


def _slice(pool: str, count: int) -> resource.ResourceSlice:
    where = {"allNodes": True} if pool == FABRIC else {"nodeName": pool}
    fields = {
        "metadata": {"name": f"{pool}-slice", "uid": f"uid-of-{pool}-slice"},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{index}"} for index in range(count)],
            **where,
        },
    }
    return meta.view(resource.ResourceSlice, fields)


def _budget(app: str, allowed: int) -> core.PodDisruptionBudget:
    fields = {
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }
    return meta.view(core.PodDisruptionBudget, fields)
