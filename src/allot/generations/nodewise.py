"""From a device plugin to a DRA driver, one node at a time: what is due on a node now. Pure.

    the plugin serves ──► cordoned ──► its pods are gone ──► the plugin is stopped ──► the driver publishes
                                                                                              │
                                        pods come back, served by claims ◄── uncordoned ◄─────┘

Whoever looks reads the stage from the cluster again, so it may be interrupted anywhere. A DeviceClass that
names the resource (`extendedResourceName`, KEP-5004) lets pods keep what they ask for: where no plugin counts
the resource, a claim serves it.

What it promises
    NODEWISE1  A node that a plugin and a driver both serve with one device is refused: whoever goes on there
               may hand the device out twice.
    NODEWISE2  Nothing is evicted before the node is closed, and the node is opened only when no device of the
               plugin is left on it and the driver's are there.
    NODEWISE3  Nobody is evicted whom no claim would serve next: whoever asks by a class (KEP-14) has devices
               of the plugin too, and the class must say which DeviceClass takes their place.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from allot.api import Fields, compute, core, meta

from .podspecs import asked_for

MOVING: Final = "generations.allot.dev/moving"
"""The annotation of a node that was closed for this, with the name of the resource."""
TWICE: Final = "DevicesAdvertisedTwice"


@dataclass(frozen=True, slots=True)
class Around:
    """A node, and what is on it."""

    node: Fields
    pods: tuple[Fields, ...] = ()
    slices: tuple[Fields, ...] = ()
    classes: tuple[Fields, ...] = ()  # device classes, of the cluster
    compute_classes: tuple[Fields, ...] = ()  # those of compute resources


@dataclass(frozen=True, slots=True)
class Due:
    refused: str = ""  # why nothing may be done
    close: bool = False
    evict: tuple[Fields, ...] = ()  # pods that have devices of the plugin, and are served by a claim next
    open: bool = False
    waits_for: str = ""  # what somebody else has to do
    done: bool = False


def due(resource: str, around: Around) -> Due:
    node = around.node
    name = _text(node, "metadata", "name")
    if not any(_text(one, "spec", "extendedResourceName") == resource for one in around.classes):
        return Due(f"no DeviceClass has extendedResourceName {resource}: no claim would serve its pods")
    drivers = sorted(
        {_text(one, "spec", "driver") for one in around.slices if _in(one, "spec").get("devices")}
    )
    if twice := _twice(resource, node, drivers):
        return Due(f"node {name}: {twice}")
    is_closed = bool(_in(node, "spec").get("unschedulable"))
    served = tuple(pod for pod in around.pods if _has_of_plugin(pod, resource))
    if stranded := _stranded(served, resource, around.compute_classes):
        return Due(stranded)
    if counted(node, resource) or served:
        if not is_closed:
            return Due(close=True, evict=served)
        waits_for = "" if served else f"stop the device plugin of {resource} on node {name}"
        return Due(evict=served, waits_for=waits_for)
    if not drivers:
        return Due(waits_for=f"start the driver on node {name}: nothing is published there")
    is_ours = _in(node, "metadata", "annotations").get(MOVING) == resource
    return Due(open=True, done=True) if is_closed and is_ours else Due(done=True)


def counted(node: Fields, resource: str) -> bool:
    """Whether devices of a plugin are there, counted or as compute resources."""
    capacity = _in(node, "status", "capacity").get(resource, "0")
    every = _in(node, "status").get("computeResources") or ()
    return str(capacity) != "0" or any(
        one.get("resourceName") == resource and one.get("devices") for one in every
    )


def _twice(resource: str, node: Fields, drivers: Iterable[str]) -> str:
    """NODEWISE1, as the node says itself. A kubelet does not, so a driver of the same vendor is enough."""
    for condition in _in(node, "status").get("conditions") or ():
        if condition.get("type") == TWICE and condition.get("status") == "True":
            return str(condition.get("message"))
    domain = resource.partition("/")[0]
    same = [one for one in drivers if one == domain or one.endswith(f".{domain}")]
    if same and counted(node, resource):
        return (
            f"driver {same[0]} publishes devices while a device plugin still has some of {resource}: two "
            "pods may be given the same device; stop one of the two"
        )
    return ""


def _stranded(pods: Iterable[Fields], resource: str, classes: Iterable[Fields]) -> str:
    """NODEWISE3, in words."""
    bridged = {_text(one, "metadata", "name") for one in classes if _text(one, "spec", "deviceClassName")}
    for pod in pods:
        for name in _asked_by(pod, resource):
            if compute.class_of(name) and compute.class_of(name) not in bridged:
                return (
                    f"pod {next(named([pod]))} asks for {name}, and class {compute.class_of(name)} names no "
                    "deviceClassName: no claim would serve it next"
                )
    return ""


def _asked_by(pod: Fields, resource: str) -> list[str]:
    """Names under which its containers were given compute resources of the plugin."""
    records = compute.records.given(meta.view(core.Pod, pod))
    return [
        name
        for record in records.values()
        for name, entries in record.items()
        if any(one.compute_resource_name.rpartition("-")[0] == resource for one in entries)
    ]


def _has_of_plugin(pod: Fields, resource: str) -> bool:
    if _text(pod, "status", "phase") in ("Succeeded", "Failed"):
        return False
    if _asked_by(pod, resource):
        return True
    mappings = _in(pod, "status", "extendedResourceClaimStatus").get("requestMappings") or ()
    by_claim = {one.get("containerName") for one in mappings if one.get("resourceName") == resource}
    return any(container not in by_claim for container in asked_for(_in(pod, "spec"), resource))


def _in(fields: Mapping[str, Any], *members: str) -> Mapping[str, Any]:
    found: Any = fields
    for member in members:
        found = found.get(member) or {}
    return found  # type: ignore[no-any-return]


def _text(fields: Mapping[str, Any], *members: str) -> str:
    return str(_in(fields, *members[:-1]).get(members[-1]) or "")


def next_one(pod: Fields) -> str:
    """What comes in the place of a pod that is evicted."""
    owners = (pod.get("metadata") or {}).get("ownerReferences") or ()
    if any(owner.get("controller") for owner in owners):
        return "a claim serves the next one"
    return "and nobody makes it anew: create it again yourself"


def named(pods: Iterable[Fields]) -> Iterator[str]:
    return (f"{_text(pod, 'metadata', 'namespace')}/{_text(pod, 'metadata', 'name')}" for pod in pods)
