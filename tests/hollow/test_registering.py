"""From what the API shows to what it should show, and no write more."""

import copy
from typing import Any

from allot.api import Object, encode, resource
from allot.fleet import fleet
from allot.hollow.registering import awake, is_awake, pool_changes, registered, superfluous

from .objects import node

NOW = "2026-11-15T08:00:00Z"
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "mig-0", "uid": "u"}


def slices() -> list[dict[str, Any]]:
    """A pool of three slices: counters, and two with devices."""
    (member,) = fleet("mig", 1).members()
    ((_, found),) = resource.pools.by_pool(member.slices).items()
    assert len(found) == 3
    return found


def stored(objects) -> list[Object]:
    return [Object(encode({**one, "metadata": {**one["metadata"], "uid": "s"}})) for one in objects]


def test_a_pool_that_is_not_there_is_created():
    changes = pool_changes(slices(), [], OWNER)
    assert len(changes.create) == 3
    assert not changes.replace and not changes.delete
    assert all(one["metadata"]["ownerReferences"] == [OWNER] for one in changes.create)


def test_a_pool_that_is_right_is_left_alone_whatever_its_generation():
    """REG1."""
    first = pool_changes(slices(), [], OWNER).create
    later = copy.deepcopy(first)
    for one in later:
        one["spec"]["pool"]["generation"] = 7
    assert not pool_changes(slices(), stored(first), OWNER)
    assert not pool_changes(slices(), stored(later), OWNER)


def test_slices_of_an_earlier_node_of_the_name_get_the_new_owner():
    """Otherwise the garbage collector would take them with the old node."""
    known = stored(pool_changes(slices(), [], {**OWNER, "uid": "earlier"}).create)
    changes = pool_changes(slices(), known, OWNER)
    assert all(one["metadata"]["ownerReferences"] == [OWNER] for one in changes.replace)
    assert len(changes.replace) == 3


def test_only_nodes_of_the_catalogue_are_superfluous():
    """REG2: what a person made stays, and so does what was never hollow."""
    known = [
        node("gpu-0", "mixed"),
        node("gpu-9", "mixed"),
        node("edge-0", "edge"),
        node("mine", "my-own"),
        Object(encode({"metadata": {"name": "real"}})),
    ]
    extra = superfluous(known, frozenset(["gpu-0"]), "mixed")
    assert [one.name for one in extra] == ["gpu-9", "edge-0"]


def test_a_node_of_the_same_name_in_another_fleet_is_another_machine():
    assert [one.name for one in superfluous([node("gpu-0", "gpu")], frozenset(["gpu-0"]), "mixed")] == [
        "gpu-0"
    ]


def test_a_registered_node_is_awake():
    (member,) = fleet("gpu", 1).members()
    shown = Object(encode(registered(member.node, "1.0", NOW)))
    assert is_awake(shown)
    assert shown.fields["status"]["capacity"]["cpu"] == "192"


def test_waking_keeps_what_others_say():
    said = [{"type": "Ready", "status": "Unknown"}, {"type": "DiskOnFire", "status": "True"}]
    asleep = node(status={"conditions": said})
    assert not is_awake(asleep)
    conditions = {one["type"]: one["status"] for one in awake(asleep.fields, NOW)}
    assert conditions["Ready"] == "True"
    assert conditions["DiskOnFire"] == "True"


def test_a_condition_without_a_type_stays_and_keeps_nobody_asleep():
    nameless = {"status": "True"}
    told = awake({"status": {"conditions": [nameless]}}, "2026-05-01T10:00:00Z")
    assert nameless in told and any(one.get("type") == "Ready" for one in told)
