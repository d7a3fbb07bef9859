"""What has to be written so that the API shows a fleet, and no more than that. Pure.

What it promises
    G1  What is there already and right is left alone: a second start writes nothing.
    G2  A pool changes as a whole: when one of its slices is wrong, all of them get the next
        generation, and those that it has no more are deleted.
    G3  Only nodes and slices that carry the label of a fleet of the catalogue are touched.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allot.api import Object, core
from allot.fleet import CATALOGUE, FLEET_LABEL

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
    """The conditions of a node whose agent is there. What others say about it stays."""
    known = {one.get("type", ""): one for one in (node.get("status") or {}).get("conditions") or ()}
    for type, (status, reason) in _CONDITIONS.items():
        if known.get(type, {}).get("status") != status:
            known[type] = {
                "type": type,
                "status": status,
                "reason": reason,
                "message": "a node without a machine says so",
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }
    return list(known.values())


def is_awake(node: Object) -> bool:
    said = {one.type: one.status for one in node.view(core.Node).status.conditions}
    return all(said.get(type) == status for type, (status, _) in _CONDITIONS.items())


def registered(node: Mapping[str, Any], version: str, now: str) -> Fields:
    """A node as it first shows itself."""
    status = {**node["status"], "nodeInfo": node_info(version)}
    return {**node, "status": {**status, "conditions": awake(node, now)}}


def is_hollow(node: Object) -> bool:
    """Somebody asked for it to be played: it has the label, with whatever value."""
    return FLEET_LABEL in (node.metadata.labels or {})


def superfluous(known: Iterable[Object], wanted: frozenset[str], fleet: str) -> list[Object]:
    """Nodes that `fleet` does not have, or that belong to another one of the catalogue (G3)."""
    found = []
    for node in known:
        label = (node.metadata.labels or {}).get(FLEET_LABEL)
        if label in CATALOGUE and (label != fleet or node.name not in wanted):
            found.append(node)
    return found


@dataclass(frozen=True, slots=True)
class Changes:
    create: tuple[Fields, ...] = ()
    replace: tuple[Fields, ...] = ()
    delete: tuple[Object, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.create or self.replace or self.delete)


def pool_changes(wanted: Sequence[Fields], known: Sequence[Object], owner: Fields | None) -> Changes:
    """From the slices that one pool has to those that it should have (G1, G2)."""
    by_name = {one.name: one for one in known}
    owned = [_owned(one, owner) for one in wanted]
    names = {one["metadata"]["name"] for one in owned}
    extra = tuple(one for one in known if one.name not in names)
    if not extra and all(_is_right(one, by_name.get(one["metadata"]["name"])) for one in owned):
        return Changes()
    generations = [int(one.fields["spec"]["pool"].get("generation") or 0) for one in known]
    generation = max(generations, default=0) + 1
    anew = [_in_generation(one, generation) for one in owned]
    return Changes(
        tuple(one for one in anew if one["metadata"]["name"] not in by_name),
        tuple(one for one in anew if one["metadata"]["name"] in by_name),
        extra,
    )


def by_pool(slices: Iterable[Fields]) -> dict[tuple[str, str], list[Fields]]:
    found: dict[tuple[str, str], list[Fields]] = {}
    for one in slices:
        found.setdefault(pool_of(one), []).append(one)
    return found


def pool_of(slice: Mapping[str, Any]) -> tuple[str, str]:
    return slice["spec"]["driver"], slice["spec"]["pool"]["name"]


def owner_reference(node: Object) -> Fields:
    return {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}


def _owned(slice: Fields, owner: Fields | None) -> Fields:
    metadata = dict(slice["metadata"])
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    return {**slice, "metadata": metadata}


def _is_right(wanted: Fields, known: Object | None) -> bool:
    if known is None:
        return False
    metadata, found = wanted["metadata"], known.fields["metadata"]
    if any(found.get(name) != metadata.get(name) for name in ("labels", "ownerReferences")):
        return False
    generation = known.fields["spec"]["pool"].get("generation")
    return bool(_in_generation(wanted, generation)["spec"] == known.fields["spec"])


def _in_generation(slice: Fields, generation: int) -> Fields:
    spec = slice["spec"]
    return {**slice, "spec": {**spec, "pool": {**spec["pool"], "generation": generation}}}
