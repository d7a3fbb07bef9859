"""What has to be written so that the API shows a fleet, and no more than that. Pure.

What it promises
    REG1  What is there already and right is left alone: a second start writes nothing.
    REG2  Only nodes and slices that carry the label of a fleet of the catalogue are touched.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from allot.api import Object, resource
from allot.fleet import CATALOGUE, FLEET_LABEL
from allot.node import awake as node_awake
from allot.node import is_awake as is_node_awake

Fields = dict[str, Any]

_CONDITIONS = {
    "MemoryPressure": ("False", "HollowHasSufficientMemory"),
    "DiskPressure": ("False", "HollowHasNoDiskPressure"),
    "PIDPressure": ("False", "HollowHasSufficientPID"),
    "Ready": ("True", "HollowReady"),
}


def node_info(version: str) -> Fields:
    return {
        "architecture": "amd64",
        "bootID": "",
        "containerRuntimeVersion": f"hollow://{version}",
        "kernelVersion": "hollow",
        "kubeletVersion": f"v1.37.0-allot-{version}",
        "kubeProxyVersion": "",
        "machineID": "",
        "operatingSystem": "linux",
        "osImage": "none: a hollow node",
        "systemUUID": "",
    }


def awake(node: Mapping[str, Any], now: str) -> list[Fields]:
    return node_awake(node, now, _CONDITIONS, "a node without a machine says so")


def is_awake(node: Object) -> bool:
    return is_node_awake(node, _CONDITIONS)


def registered(node: Mapping[str, Any], version: str, now: str) -> Fields:
    """A node as it first shows itself."""
    status = {**node["status"], "nodeInfo": node_info(version)}
    return {**node, "status": {**status, "conditions": awake(node, now)}}


def is_hollow(node: Object) -> bool:
    """Somebody asked for it to be played: it has the label, with whatever value."""
    return FLEET_LABEL in (node.metadata.labels or {})


def superfluous(known: Iterable[Object], wanted: frozenset[str], fleet: str) -> list[Object]:
    """Nodes that `fleet` does not have, or that belong to another one of the catalogue (REG2)."""
    found = []
    for node in known:
        label = (node.metadata.labels or {}).get(FLEET_LABEL)
        if label in CATALOGUE and (label != fleet or node.name not in wanted):
            found.append(node)
    return found


def pool_changes(
    wanted: Sequence[Fields], known: Sequence[Object], owner: Fields | None
) -> resource.pools.Changes:
    """From the slices that one pool has to those that it should have, owned by its node (REG1)."""
    return resource.pools.changes([_owned(one, owner) for one in wanted], known)


def _owned(slice: Fields, owner: Fields | None) -> Fields:
    metadata = dict(slice["metadata"])
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    return {**slice, "metadata": metadata}
