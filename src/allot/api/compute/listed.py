"""What a node has of compute resources, beside the Node: for servers that have no `status.computeResources`.

Any other Kubernetes drops the field. There a NodeComputeResources named like the node has the same content.
Its definition is for an administrator to apply, and no server judges it by more than that. So whoever reads
one judges it by the rules of the field, and takes nothing of one that is wrong.

What it promises
    LISTED1  Where the Node says something itself, that counts and not the list.
    LISTED2  What the Node counts is not had from the list as well: the two are written one after the other.
"""

from collections.abc import Collection, Iterable

import msgspec

from .. import core
from ..kind import Fields
from ..meta import ObjectMeta, View
from ..object import Object
from ..quantity import Quantity
from . import limits, nodes

Entries = tuple[core.ComputeResource, ...]


class NodeComputeResources(View, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    compute_resources: Entries = ()


class BadList(ValueError):
    """The message says what is wrong."""


def read(listed: Object) -> Entries:
    """Raises BadList."""
    try:
        entries = listed.view(NodeComputeResources).compute_resources
    except msgspec.ValidationError as wrong:
        raise BadList(str(wrong)) from None
    for one in nodes.errors({"status": {"computeResources": listed.fields.get("computeResources")}}):
        raise BadList(f"{str(one.path).removeprefix('status.')}: {one.text()}")
    return entries


def uncounted(entries: Entries, counted: Collection[str]) -> Entries:
    """LISTED2. `counted` names what the Node has some of."""
    return tuple([one for one in entries if one.resource_name not in counted])


def body(owner: Fields, entries: Iterable[Fields]) -> Fields:
    """It goes with the Node that it belongs to."""
    return {
        "apiVersion": limits.API_VERSION,
        "kind": limits.LIST_KIND,
        "metadata": {"name": owner["name"], "ownerReferences": [owner]},
        "computeResources": list(entries),
    }


def with_listed(node: Object, listed: Object | None) -> Object:
    """The Node as a server that has the field would show it (LISTED1, LISTED2)."""
    status = node.fields.get("status") or {}
    if listed is None or status.get("computeResources"):
        return node
    try:
        counted = {
            name for name, amount in (status.get("allocatable") or {}).items() if Quantity.parse(amount)
        }
        own = {one.name for one in uncounted(read(listed), counted)}
    except ValueError:
        return node
    kept = [one for one in listed.fields.get("computeResources") or () if one["name"] in own]
    return node.changed({"status": {"computeResources": kept}}) if kept else node
