"""Groups of nodes that can grow: what one of their nodes would be, how many there may be, what each costs.

A group is the provider's; which nodes are in it is said by a label. What a node of it would have is its
template, from the first of these that says something (docs/decisions, template precedence):

    GIVEN       the administrator wrote it into the groups' file
    NAMED       the administrator named a node, real or not, under whose name capacity is published
    LEARNED     a node of the group was complete, and was remembered
    PROVIDED    the provider says so
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import msgspec
import yaml

from allot.api import Fields, compute
from allot.planning import Imagined, imagined

LABEL: Final = "autoscaler.allot.dev/group"
LEAVING: Final = "autoscaler.allot.dev/leaving"
"""The taint of a node on its way out."""
NODES_MAX: Final = 10_000


class BadGroups(ValueError):
    """The message names the place."""


class Origin(Enum):
    GIVEN = "given"
    NAMED = "named"
    LEARNED = "learned"
    PROVIDED = "provided"


@dataclass(frozen=True, slots=True)
class Template:
    """A node of the group as it will be, with what its drivers will publish."""

    node: Fields
    slices: tuple[Fields, ...] = ()
    origin: Origin = Origin.GIVEN

    def named(self, name: str, group: str) -> Imagined:
        labels = {**(self.node["metadata"].get("labels") or {}), LABEL: group}
        node = {**self.node, "metadata": {**self.node["metadata"], "labels": labels}}
        return imagined(node, self.slices, name)


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    price: float = 1.0
    size: int = 0  # nodes there are, and nodes that were asked for
    least: int = 0
    most: int = NODES_MAX
    template: Template | None = None
    closed: str = ""  # why it is not to grow just now

    @property
    def room(self) -> int:
        return 0 if self.closed else max(0, self.most - self.size)


class GroupEntry(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """A group in the administrator's file."""

    name: str
    price: float = 1.0
    min: int = 0
    max: int = NODES_MAX
    template: dict[str, Any] | None = None
    source: str = ""
    fleet: str = ""  # of the hollow provider


class Configuration(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    groups: tuple[GroupEntry, ...]
    command: tuple[str, ...] = ()
    """Of the provider, if it is not the one of hollow nodes."""
    extenders: tuple[dict[str, str], ...] = ()
    """Of drivers of classic claims: `driver` and `url` (`extenders.configured`)."""


def read(text: str) -> Configuration:
    """Raises BadGroups."""
    try:
        found = msgspec.convert(yaml.safe_load(text) or {}, Configuration)
    except yaml.YAMLError as wrong:
        raise BadGroups(f"not YAML: {wrong}") from None
    except msgspec.ValidationError as wrong:
        raise BadGroups(str(wrong)) from None
    names = [one.name for one in found.groups]
    for at, one in enumerate(found.groups):
        where = f"groups[{at}]"
        if names.count(one.name) > 1:
            raise BadGroups(f"{where}.name: {one.name} is named twice")
        if not 0 <= one.min <= one.max <= NODES_MAX:
            raise BadGroups(f"{where}: 0 <= min <= max <= {NODES_MAX} must hold, not {one.min} and {one.max}")
        if one.price < 0:
            raise BadGroups(f"{where}.price: {one.price} is below nothing")
        if one.template is not None and one.source:
            raise BadGroups(f"{where}: `template` and `source` are two answers to one question")
        given(one, where)
    return found


def given(entry: GroupEntry, where: str = "template") -> Template | None:
    """What the administrator wrote. Raises BadGroups."""
    if entry.template is None:
        return None
    node, slices = entry.template.get("node"), entry.template.get("slices") or []
    if not isinstance(node, dict) or not isinstance(slices, list):
        raise BadGroups(f"{where}.template: `node` is an object and `slices` a list of objects")
    metadata = {"name": f"template-of-{entry.name}", **(node.get("metadata") or {})}
    whole: list[Fields] = []
    for at, one in enumerate(slices):
        spec = one.get("spec") if isinstance(one, dict) else None
        if not isinstance(spec, dict) or not {"driver", "pool"} <= spec.keys():
            raise BadGroups(f"{where}.template.slices[{at}].spec: `driver` and `pool` are needed")
        if spec.get("nodeSelector") or spec.get("allNodes") or spec.get("perDeviceNodeSelection"):
            raise BadGroups(f"{where}.template.slices[{at}]: devices that nodes share come with no node")
        pool = {"generation": 1, "resourceSliceCount": _in_pool(slices, spec), **spec["pool"]}
        title = (one.get("metadata") or {}).get("name") or f"{metadata['name']}-{at}"
        fixed = {"nodeName": metadata["name"], "pool": pool}
        whole.append({**one, "metadata": {"name": title}, "spec": {**spec, **fixed}})
    return Template(_with_names({**node, "metadata": metadata}), tuple(whole))


def _with_names(node: Fields) -> Fields:
    """Compute resources (KEP-14) are called by what they are, as a server would call them."""
    status = node.get("status") or {}
    listed = status.get("computeResources")
    if not listed:
        return node
    named = [{"name": _compute_name(one), **one} for one in listed]
    return {**node, "status": {**status, "computeResources": named}}


def _compute_name(listed: Fields) -> str:
    return compute.compute_resource_name(listed.get("resourceName", ""), listed.get("properties") or {})


def _in_pool(slices: Sequence[Mapping[str, Any]], spec: Mapping[str, Any]) -> int:
    """How many slices the pool has: administrators forget to say so."""
    pool = (spec["driver"], spec["pool"].get("name"))
    return sum(
        ((one.get("spec") or {}).get("driver"), ((one.get("spec") or {}).get("pool") or {}).get("name"))
        == pool
        for one in slices
    )
