"""Groups of nodes that can grow: what one of their nodes would be, how many there may be, what each costs.

A group is the provider's; which nodes are in it is said by a label. What a node of it would have is its
template, from the first of these that says something (docs/decisions, template precedence):

    GIVEN       the administrator wrote it into the groups' file
    NAMED       the administrator named a node, real or not, under whose name capacity is published
    LEARNED     a node of the group was complete, and was remembered
    PROVIDED    the provider says so
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import structs

from allot.api import Fields, compute, names
from allot.base import NoDocuments, documents, duration_s
from allot.planning import Imagined, imagined
from allot.wire import remote

from .shapes import BadGroups, check_shapes

LABEL: Final = "autoscaler.allot.dev/group"
LEAVING: Final = "autoscaler.allot.dev/leaving"
"""The taint of a node on its way out."""
NODES_MAX: Final = 10_000
TIMEOUT_S_MAX: Final = 300.0


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
    unneeded_s: float | None = None  # how long its nodes are not needed before they go, if it cares
    arrival_s: float | None = None  # how long they may take to come, if it cares

    @property
    def room(self) -> int:
        return 0 if self.closed else max(0, self.most - self.size)


class GroupEntry(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """A group in the administrator's file."""

    name: str
    price: float | None = None  # nothing said: the provider's, or else 1
    min: int = 0
    max: int = NODES_MAX
    template: dict[str, Any] | None = None
    source: str = ""
    fleet: str = ""  # of the hollow provider


class Broken(NamedTuple):
    """A machine that will be no node: what its provider calls it, and why."""

    instance: str
    why: str


@dataclass(frozen=True, slots=True)
class Offer:
    """A group as its provider has it."""

    entry: GroupEntry
    target: int = 0  # nodes that it has, and nodes that it is making
    template: Template | None = None
    closed: str = ""  # why it is not to grow
    broken: tuple[Broken, ...] = ()
    unneeded_s: float | None = None  # how long its nodes are not needed before they go, if it cares
    arrival_s: float | None = None  # how long they may take to come


class ProviderEntry(remote.Endpoint, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A provider that speaks the cluster autoscaler's gRPC protocol, as that one's configuration has it."""

    grpc_timeout: str = "5s"

    @property
    def timeout_s(self) -> float:
        return duration_s(self.grpc_timeout)


class Configuration(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    groups: tuple[GroupEntry, ...] = ()
    """With `provider`: what the administrator knows better than it does."""
    command: tuple[str, ...] = ()
    """Of the provider, if it is not the one of hollow nodes."""
    provider: ProviderEntry | None = None
    """Where it is served, if it is neither: it names the groups."""
    extenders: tuple[dict[str, str], ...] = ()
    """Of drivers of classic claims: `driver` and `url` (`extenders.configured`)."""


def at_provider(address: str) -> Configuration:
    """A provider at an address and no file: whatever groups it has. Raises BadGroups."""
    found = Configuration(provider=ProviderEntry(address=address))
    _check_provider(found)
    return found


def read(text: str, folder: Path | None = None) -> Configuration:
    """Files that are named lie in `folder`. Raises BadGroups."""
    try:
        found = msgspec.convert(next(iter(documents(text)), {}), Configuration)
    except NoDocuments as wrong:
        raise BadGroups(f"not YAML: {wrong}") from None
    except msgspec.ValidationError as wrong:
        raise BadGroups(str(wrong)) from None
    if found.provider is not None:
        found = structs.replace(found, provider=_in_folder(found.provider, folder or Path()))
    _check_provider(found)
    called = Counter(one.name for one in found.groups)
    for at, one in enumerate(found.groups):
        where = f"groups[{at}]"
        if called[one.name] > 1:
            raise BadGroups(f"{where}.name: {one.name} is named twice")
        if not 0 <= one.min <= one.max <= NODES_MAX:
            raise BadGroups(f"{where}: 0 <= min <= max <= {NODES_MAX} must hold, not {one.min} and {one.max}")
        if bad := names.label_value(one.name) or ([] if one.name else ["it is empty"]):
            raise BadGroups(f"{where}.name: {one.name!r} cannot be a label's value: {bad[0]}")
        if one.price is not None and not 0 <= one.price < inf:
            raise BadGroups(f"{where}.price: {one.price} is no price")
        if one.template is not None and one.source:
            raise BadGroups(f"{where}: `template` and `source` are two answers to one question")
        if one.template is not None:
            _check_template(one.template, f"{where}.template")
        given(one, where)
    return found


def _check_template(template: dict[str, Any], where: str) -> None:
    if unknown := template.keys() - {"node", "slices"}:
        raise BadGroups(f"{where}: `node` and `slices` are known, and not {sorted(unknown)[0]!r}")
    node, slices = template.get("node"), template.get("slices") or []
    if not isinstance(node, dict) or not isinstance(slices, list):
        raise BadGroups(f"{where}: `node` is an object and `slices` a list of objects")
    unknown_fields = check_shapes(node, slices, where)
    if unknown_fields:
        raise BadGroups(f"{where}.{unknown_fields[0]}")


def _check_provider(found: Configuration) -> None:
    if found.provider is None:
        if not found.groups:
            raise BadGroups("groups: there are none, and no `provider` that would name some")
        return
    if found.command:
        raise BadGroups("`command` and `provider` are two answers to one question")
    try:
        found.provider.check()
        if not 0 < found.provider.timeout_s <= TIMEOUT_S_MAX:
            raise ValueError(f"grpc_timeout: more than nothing and at most {TIMEOUT_S_MAX:g}s")
    except ValueError as wrong:
        raise BadGroups(f"provider: {wrong}") from None


def _in_folder(provider: ProviderEntry, folder: Path) -> ProviderEntry:
    files = {name: getattr(provider, name) for name in ("cert", "key", "cacert")}
    return structs.replace(provider, **{name: str(folder / one) for name, one in files.items() if one})


def given(entry: GroupEntry, where: str = "template") -> Template | None:
    """What the administrator wrote. Raises BadGroups."""
    if entry.template is None:
        return None
    node, slices = entry.template["node"], entry.template.get("slices") or []
    return whole(entry.name, node, slices, f"{where}.template")


def whole(
    group: str, node: Fields, slices: Sequence[Any], where: str, origin: Origin = Origin.GIVEN
) -> Template:
    """What somebody said, with what need not be said. Raises BadGroups."""
    metadata = {"name": f"template-of-{group}", **(node.get("metadata") or {})}
    found: list[Fields] = []
    for at, one in enumerate(slices):
        spec = one.get("spec") if isinstance(one, dict) else None
        if not isinstance(spec, dict) or not {"driver", "pool"} <= spec.keys():
            raise BadGroups(f"{where}.slices[{at}].spec: `driver` and `pool` are needed")
        if spec.get("nodeSelector") or spec.get("allNodes") or spec.get("perDeviceNodeSelection"):
            raise BadGroups(f"{where}.slices[{at}]: devices that nodes share come with no node")
        pool = {"generation": 1, "resourceSliceCount": _in_pool(slices, spec), **spec["pool"]}
        title = (one.get("metadata") or {}).get("name") or f"{metadata['name']}-{at}"
        fixed = {"nodeName": metadata["name"], "pool": pool}
        found.append({**one, "metadata": {"name": title}, "spec": {**spec, **fixed}})
    return Template(_with_names({**node, "metadata": metadata}), tuple(found), origin)


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
