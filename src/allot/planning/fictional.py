"""Nodes that are not there, made from one that is, or from what somebody says a node would be.

What belongs to the node goes with it: its slices get its name, as `nodeName` and in the name of their pool.
Pools that nodes reach by a selector are not the node's: another node brings no more of them.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from allot.api import Fields, Object, encode
from allot.scheduler import SOURCE

HOSTNAME = "kubernetes.io/hostname"
PASSING = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Taints by which a cluster says how a node is just now."""


class Imagined(NamedTuple):
    """A node, with what its drivers would publish."""

    node: Object
    slices: tuple[Object, ...] = ()

    @property
    def name(self) -> str:
        return self.node.name


def imagined(node: Mapping[str, Any], slices: Sequence[Mapping[str, Any]], name: str) -> Imagined:
    """One more like this one, under another name: open, healthy and empty."""
    metadata = node["metadata"]
    source = metadata["name"]
    labels = {**(metadata.get("labels") or {})}
    if HOSTNAME in labels:
        labels[HOSTNAME] = name
    spec = {key: value for key, value in (node.get("spec") or {}).items() if key not in _OF_ONE_NODE}
    taints = [one for one in spec.get("taints") or () if not str(one.get("key")).startswith(PASSING)]
    made = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"<node {name}>",
            "labels": labels,
            "annotations": {SOURCE: source},
        },
        "spec": {**spec, "taints": taints},
        "status": _status(node.get("status") or {}),
    }
    own = (one for one in slices if (one.get("spec") or {}).get("nodeName") == source)
    return Imagined(Object(encode(made)), tuple(Object(encode(_slice(one, source, name))) for one in own))


_OF_ONE_NODE = ("podCIDR", "podCIDRs", "providerID", "unschedulable")


def _status(status: Mapping[str, Any]) -> Fields:
    kept = {key: value for key, value in status.items() if key not in ("conditions", "addresses", "images")}
    return {**kept, "conditions": [{"type": "Ready", "status": "True"}]}


def _slice(slice: Mapping[str, Any], source: str, name: str) -> Fields:
    metadata, spec = slice["metadata"], slice["spec"]
    pool = {**spec["pool"], "name": _renamed(spec["pool"]["name"], source, name)}
    known = str(metadata["name"])
    title = known.replace(source, name) if source in known else f"{known}-{name}"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": title, "uid": f"<slice {title}>", "labels": metadata.get("labels") or {}},
        "spec": {**spec, "nodeName": name, "pool": pool},
    }


def _renamed(pool: str, source: str, name: str) -> str:
    """Pools of one driver must differ from node to node, whatever they are called."""
    return pool.replace(source, name) if source in pool else f"{pool}-{name}"


def free_names(base: str, taken: Collection[str], count: int) -> list[str]:
    found: list[str] = []
    number = 0
    while len(found) < count:
        number += 1
        if f"{base}-{number}" not in taken:
            found.append(f"{base}-{number}")
    return found
