"""What a node of a group would be: learned from one that is, or said by somebody; and whether it came true.

A template is learned from a node that is ready and whose pools are complete. What its daemons take is taken
off, since they will be on the next one too. It is kept when the last node goes, for scale from zero.

Same hardware is expected to publish the same (AUTO-09). What a new node lacks of what was promised is told in
words; a name, an address or a serial number is nothing that was promised.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from allot.api import Fields, Object, Quantity, core
from allot.fleet import FLEET_LABEL, UnknownFleet, fleet
from allot.planning import PASSING, belongs_to_node
from allot.scheduler import SOURCE, NodeInfo, Snapshot

from .groups import LABEL, LEAVING, Group, GroupEntry, Offer, Origin, Template, given

TOLERANCE = 0.05
"""Of what a node has: kernels and agents keep a little more or less for themselves."""

OWN_LABELS = ("kubernetes.io/hostname", "topology.kubernetes.io/zone", LABEL)


def template_for(
    entry: GroupEntry,
    nodes: Mapping[str, Object],
    slices: Sequence[Object],
    remembered: Template | None = None,
    snapshot: Snapshot | None = None,
    said: Template | None = None,
) -> Template | None:
    """The first that says something: given, named, learned, provided (`said`, by a provider that can)."""
    own = with_published(said, slices) if said is not None else provided(entry)
    return given(entry) or _named(entry, nodes, slices, snapshot, own) or remembered or own


def with_published(said: Template, slices: Sequence[Object]) -> Template:
    """A provider may say under which name its nodes' devices are published, instead of naming them."""
    metadata = said.node["metadata"]
    source = (metadata.get("annotations") or {}).get(SOURCE)
    if said.slices or not source:
        return said
    own = tuple(dict(one.fields) for one in slices if one.fields["spec"].get("nodeName") == source)
    return Template({**said.node, "metadata": {**metadata, "name": source}}, own, said.origin)


def _named(
    entry: GroupEntry,
    nodes: Mapping[str, Object],
    slices: Sequence[Object],
    snapshot: Snapshot | None,
    known: Template | None,
) -> Template | None:
    """Capacity is published under the name of a node; the node itself need not be there."""
    if not entry.source:
        return None
    own = [dict(one.fields) for one in slices if one.fields["spec"].get("nodeName") == entry.source]
    node = nodes.get(entry.source)
    if node is None:
        fields: Fields = {"metadata": {"name": entry.source}} if known is None else dict(known.node)
        fields = {**fields, "metadata": {**fields["metadata"], "name": entry.source}}
        is_numeric = snapshot is not None and snapshot.capacity.is_published(entry.source)
        return Template(fields, tuple(own), Origin.NAMED) if own or is_numeric else None
    return Template(dict(node.fields), tuple(own), Origin.NAMED)


def provided(entry: GroupEntry) -> Template | None:
    """What a fleet of hollow nodes would be. The label that has them played is not one of the catalogue's:
    a restart of the hollow nodes would take them for its own and remove them."""
    if not entry.fleet:
        return None
    try:
        member = next(fleet(entry.fleet, 1).members())
    except UnknownFleet:
        return None
    metadata = member.node["metadata"]
    labels = {**metadata["labels"], FLEET_LABEL: f"group-{entry.name}"}
    node = {**member.node, "metadata": {**metadata, "labels": labels}}
    return Template(node, member.slices, Origin.PROVIDED)


def learned(node: Object, slices: Iterable[Object], info: NodeInfo | None) -> Template | None:
    """None while there is nothing to learn from it: it is not ready, or a pool of it is not complete."""
    own = [one for one in slices if one.fields["spec"].get("nodeName") == node.name]
    if not node.view(core.Node).is_ready or not _are_complete(own):
        return None
    return Template(_lasting(node, info), tuple(dict(one.fields) for one in own), Origin.LEARNED)


def _lasting(node: Object, info: NodeInfo | None) -> Fields:
    """What another node will have too: not how this one fares, nor that it is on its way out."""
    fields = node.fresh()
    status = {name: value for name, value in fields["status"].items() if name not in _PASSING}
    if info is not None:
        status["allocatable"] = _less_daemons(status, info)
    spec = fields.get("spec") or {}
    taints = [one for one in spec.get("taints") or () if one["key"] != LEAVING]
    metadata = {"name": node.name, "labels": fields["metadata"].get("labels") or {}}
    return {**fields, "metadata": metadata, "spec": {**spec, "taints": taints}, "status": status}


_PASSING = ("conditions", "addresses", "images", "volumesInUse", "volumesAttached")


def _less_daemons(status: Mapping[str, Any], info: NodeInfo) -> dict[str, str]:
    left = {name: Quantity.parse(amount) for name, amount in (status.get("allocatable") or {}).items()}
    for pod in info.pods.values():
        if belongs_to_node(pod):
            for container in pod.spec.containers:
                for name, amount in container.resources.requests.items():
                    if name in left:
                        left[name] = left[name] - Quantity.parse(amount)
            if "pods" in left:
                left["pods"] = left["pods"] - Quantity.of(1)
    return {name: str(amount) for name, amount in left.items()}


def _are_complete(slices: Sequence[Object]) -> bool:
    pools: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for one in slices:
        spec = one.fields["spec"]
        pools.setdefault((spec["driver"], spec["pool"]["name"]), []).append(spec["pool"])
    for pool in pools.values():
        newest = max(one.get("generation", 0) for one in pool)
        current = [one for one in pool if one.get("generation", 0) == newest]
        if len(current) < current[0].get("resourceSliceCount", 1):
            return False
    return True


# -- whether it came true -------------------------------------------------------------------------


def lacks(template: Template, node: Object, slices: Iterable[Object]) -> tuple[str, ...]:
    """What was promised and is not there, in words; empty when the node is what it was said to be."""
    own = [one.fields for one in slices if one.fields["spec"].get("nodeName") == node.name]
    return (
        *_amounts(template.node, node.fields),
        *_labels(template.node, node.fields),
        *_taints(template.node, node.fields),
        *_devices(template.slices, own),
        *_compute(template.node, node.fields),
    )


def _amounts(promised: Mapping[str, Any], found: Mapping[str, Any]) -> Iterable[str]:
    there = (found.get("status") or {}).get("allocatable") or {}
    for name, amount in ((promised.get("status") or {}).get("allocatable") or {}).items():
        wanted, has = Quantity.parse(amount).nano, Quantity.parse(there.get(name, "0")).nano
        if has < wanted * (1 - TOLERANCE):
            yield f"{amount} {name} promised, {there.get(name, 'none')} there"


def _labels(promised: Mapping[str, Any], found: Mapping[str, Any]) -> Iterable[str]:
    there = found["metadata"].get("labels") or {}
    for name, value in (promised["metadata"].get("labels") or {}).items():
        if name not in OWN_LABELS and there.get(name) != value:
            yield f"label {name}={value} promised, {there.get(name) or 'none'} there"


def _taints(promised: Mapping[str, Any], found: Mapping[str, Any]) -> Iterable[str]:
    said = {(one["key"], one.get("effect")) for one in (promised.get("spec") or {}).get("taints") or ()}
    for one in (found.get("spec") or {}).get("taints") or ():
        if (one["key"], one.get("effect")) not in said and not one["key"].startswith(PASSING):
            yield f"taint {one['key']}:{one.get('effect')} that nobody spoke of"


def _devices(promised: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    common = _common_attributes(promised)
    wanted, there = _kinds(promised, common), _kinds(found, common)
    for kind, count in wanted.items():
        if there[kind] < count:
            yield f"{count} devices of {kind[0]} promised, {there[kind]} like them there"


def _compute(promised: Mapping[str, Any], found: Mapping[str, Any]) -> Iterable[str]:
    """Compute resources (KEP-14): so many devices of a name, with these properties."""
    there = _compute_resources(found)
    for (name, properties), count in _compute_resources(promised).items():
        has = there[name, properties]
        if has < count:
            yield f"{count} devices of {name} with {properties} promised, {has} there"


def _compute_resources(node: Mapping[str, Any]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for one in (node.get("status") or {}).get("computeResources") or ():
        looks = json.dumps(one.get("properties") or {}, sort_keys=True)
        found[one.get("resourceName") or "", looks] += len(one.get("devices") or ())
    return found


Kind = tuple[str, str]


def _kinds(slices: Iterable[Mapping[str, Any]], common: Mapping[str, Mapping[str, Any]]) -> Counter[Kind]:
    """Devices by driver, capacity and the attributes that all of a driver's have in common."""
    found: Counter[Kind] = Counter()
    for one in slices:
        driver = one["spec"]["driver"]
        for device in one["spec"].get("devices") or ():
            attributes = device.get("attributes") or {}
            shared = {name: attributes.get(name) for name in common.get(driver, {})}
            looks = {"capacity": device.get("capacity") or {}, "attributes": shared}
            found[driver, json.dumps(looks, sort_keys=True)] += 1
    return found


def _common_attributes(slices: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    common: dict[str, dict[str, Any]] = {}
    for one in slices:
        driver = one["spec"]["driver"]
        for device in one["spec"].get("devices") or ():
            attributes = device.get("attributes") or {}
            known = common.setdefault(driver, dict(attributes))
            common[driver] = {name: value for name, value in known.items() if attributes.get(name) == value}
    return common


def promise(template: Template) -> str:
    """Equal for templates that promise the same, as `lacks` compares it."""
    node, common = template.node, _common_attributes(template.slices)
    labels = (node["metadata"].get("labels") or {}).items()
    taints = (node.get("spec") or {}).get("taints") or ()
    passing = (*PASSING, LEAVING)
    said = [
        (node.get("status") or {}).get("allocatable") or {},
        {name: value for name, value in labels if name not in OWN_LABELS},
        sorted((one["key"], one.get("effect", "")) for one in taints if not one["key"].startswith(passing)),
        sorted(_kinds(template.slices, common).items()),
        sorted(_compute_resources(node).items()),
    ]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


# -- groups of a cluster --------------------------------------------------------------------------


def group_of(node: Object) -> str:
    return (node.metadata.labels or {}).get(LABEL, "")


def groups_of(
    entries: Iterable[GroupEntry],
    nodes: Mapping[str, Object],
    slices: Sequence[Object],
    snapshot: Snapshot,
    remembered: Mapping[str, Template] = {},
    unsettled: Collection[str] = (),
    offers: Mapping[str, Offer] = {},
) -> list[Group]:
    """The groups of a cluster as it is: their size, and what is known of their nodes. A node that is
    `unsettled` teaches nothing while it lacks something that is known of its group."""
    found = []
    own: dict[str, list[Object]] = {}
    for one in slices:
        own.setdefault(one.fields["spec"].get("nodeName") or "", []).append(one)
    for entry in entries:
        members = [one for one in nodes.values() if group_of(one) == entry.name]
        known = remembered.get(entry.name)
        teachers = (
            node
            for node in members
            if known is None or node.name not in unsettled or not lacks(known, node, own.get(node.name, ()))
        )
        lessons = (learned(node, own.get(node.name, ()), snapshot.node(node.name)) for node in teachers)
        lesson = next((one for one in lessons if one is not None), None)
        offer = offers.get(entry.name) or Offer(entry)
        template = template_for(entry, nodes, slices, lesson or known, snapshot, offer.template)
        unsaid = f"nothing is published under the name {entry.source}" if entry.source else ""
        found.append(
            Group(
                entry.name,
                1.0 if entry.price is None else entry.price,
                len(members),
                entry.min,
                entry.max,
                template,
                offer.closed or (unsaid if template is None else ""),
                offer.unneeded_s,
                offer.arrival_s,
            )
        )
    return found
