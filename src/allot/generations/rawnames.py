"""From the raw name of a resource to a class over it (KEP-14): what would change in a namespace. Pure.

A class and the raw name draw on the same devices, so workloads move one by one, and nothing happens to the
others. What moves is what makes pods: its new pods ask by the class. A pod on its own cannot be changed.

What it promises
    RAW1  Nothing moves to a class that is not there, or that is over another resource: its pods would wait.
    RAW2  Every pod that would change path is named.
    RAW3  Nothing moves while a node advertises one device twice, as compute resource and in a slice: a
          class and a claim would be given the same device.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from allot.api import Fields, compute, meta

from .nodewise import TWICE
from .podspecs import asked_for, pod_spec, renamed

CHANGEABLE: Final = {
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "ReplicaSet": "replicasets",
    "CronJob": "cronjobs",
    "ReplicationController": "replicationcontrollers",
}
"""Kinds whose pods are made from a template that may change."""

_REQUESTS = "requests."


@dataclass(frozen=True, slots=True)
class Move:
    """A workload that asks by the class from now on."""

    kind: str
    name: str
    patch: Fields  # a strategic merge patch
    pods: tuple[str, ...]  # which change path


@dataclass(frozen=True, slots=True)
class Plan:
    refused: str = ""
    moves: tuple[Move, ...] = ()
    stay: tuple[str, ...] = ()  # what asks by the raw name and cannot be changed, and why
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Around:
    """A namespace, and what its pods may run on."""

    workloads: tuple[Fields, ...] = ()
    pods: tuple[Fields, ...] = ()
    quotas: tuple[Fields, ...] = ()
    nodes: tuple[Fields, ...] = ()


def plan(
    raw: str, class_name: str, classes: Sequence[Fields], around: Around, only: Sequence[str] = ()
) -> Plan:
    """`only` are names of workloads, all of them if there are none. The class is named as pods are to ask for
    it, bare or qualified."""
    own = compute.class_of(class_name)
    found = next((one for one in classes if one["metadata"]["name"] == own), None)
    if found is None:
        return Plan(f"there is no class {own or class_name}: pods that ask for it would wait")
    if wrong := compute.unusable(found):
        return Plan(f"nobody can use class {own}: {wrong}")
    spec = meta.view(compute.ResourceClass, found).spec
    if spec.resource_name != raw:
        return Plan(f"class {own} is over {spec.resource_name or 'a group'}, not over {raw}")
    if spec.is_of_cluster:
        return Plan(f"class {own} is of the cluster: its pods would be given no devices of nodes")
    if missing := _missing(raw, around, only):
        return Plan(f"no workload {missing} asks for {raw}")
    for node in around.nodes:
        if twice := _advertised_twice(raw, node):
            return Plan(f"node {node['metadata']['name']}: {twice}")
    moves = []
    stay = []
    for one in around.workloads:
        asking = pod_spec(one)
        if asking is None or not asked_for(asking, raw) or (only and one["metadata"]["name"] not in only):
            continue
        kind, name = str(one["kind"]), str(one["metadata"]["name"])
        if kind in CHANGEABLE and not _is_owned(one):
            pods = tuple(_made_by(one, around))
            moves.append(Move(kind, name, _patch(kind, renamed(asking, raw, class_name)), pods))
        elif not _is_owned(one):
            stay.append(f"{kind} {name}: what it is made of cannot be changed; delete it and create it anew")
    stay += [
        f"Pod {pod['metadata']['name']}: a pod cannot be changed; delete it and create it anew"
        for pod in around.pods
        if not only and not _is_owned(pod) and asked_for(pod["spec"], raw)
    ]
    return Plan("", tuple(moves), tuple(stay), tuple(_notes(raw, spec, class_name, moves, around)))


def _missing(raw: str, around: Around, only: Sequence[str]) -> str:
    """One that is named, and is not there or does not ask for it."""
    asking = {str(one["metadata"]["name"]) for one in around.workloads if asked_for(pod_spec(one) or {}, raw)}
    return next((name for name in only if name not in asking), "")


def _advertised_twice(raw: str, node: Fields) -> str:
    status = node.get("status") or {}
    is_exported = any(one.get("resourceName") == raw for one in status.get("computeResources") or ())
    for condition in status.get("conditions") or () if is_exported else ():
        if condition.get("type") == TWICE and condition.get("status") == "True":
            return str(condition.get("message"))
    return ""


def _patch(kind: str, spec: Fields) -> Fields:
    template = {"spec": {"template": {"spec": spec}}}
    return {"spec": {"jobTemplate": template}} if kind == "CronJob" else template


def _notes(
    raw: str, spec: compute.ResourceClassSpec, class_name: str, moves: Sequence[Move], around: Around
) -> Iterator[str]:
    there = sum(
        len(one.get("allocatableDevices") or ())
        for node in around.nodes
        for one in (node.get("status") or {}).get("computeResources") or ()
        if one.get("resourceName") == raw
        and compute.selects(spec.resource_selector, one.get("properties") or {})
    )
    if not there and not spec.device_class_name:
        yield f"class {class_name} matches no device of any node now: pods that ask for it will wait"
    moved = sum(len(one.pods) for one in moves)
    for quota in around.quotas:
        hard = (quota.get("spec") or {}).get("hard") or {}
        shares = {compute.class_of(name.removeprefix(_REQUESTS)) for name in hard}
        for name in (raw, f"{_REQUESTS}{raw}"):
            if name in hard and compute.class_of(class_name) not in shares:
                yield (
                    f"quota {quota['metadata']['name']} counts {name} ({hard[name]}) and not {class_name}: "
                    f"give the class its share, pods that move: {moved}"
                )


def _made_by(workload: Fields, around: Around) -> Iterator[str]:
    """Its pods, also through what it makes pods by."""
    uids = {workload["metadata"].get("uid")}
    uids |= {one["metadata"].get("uid") for one in around.workloads if _owners(one) & uids}
    for pod in around.pods:
        if _owners(pod) & uids and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            yield str(pod["metadata"]["name"])


def _owners(one: Fields) -> set[Any]:
    return {
        owner.get("uid") for owner in one["metadata"].get("ownerReferences") or () if owner.get("controller")
    }


def _is_owned(one: Fields) -> bool:
    return bool(_owners(one))
