"""Every fleet of the catalogue is one that our server takes, and that makes sense as hardware."""

import pytest

from allot.apiserver import identities
from allot.fleet import CATALOGUE, FLEET_LABEL, UnknownFleet, fleet
from allot.fleet.mig import MEMORY_SLICES, PROFILES
from tidy.documents import ROOT, first_column, section

NODES = 9
EVERY = pytest.mark.parametrize("name", CATALOGUE)


@EVERY
def test_the_server_takes_every_object_strictly(name, allot_server):
    """A node registers itself and publishes its own slices; the rest is an administrator's."""

    async def story():
        made = fleet(name, NODES)
        admin = allot_server.client()
        for member in made.members():
            own = allot_server.client(identities.node(member.name))
            nodes = own.resource("", "v1", "nodes", namespaced=False)
            slices = own.resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)
            await nodes.create(member.node, field_validation="Strict")
            for one in member.slices:
                await slices.create(one, field_validation="Strict")
        for plural, objects in (
            ("resourceslices", made.shared),
            ("deviceclasses", made.classes),
            ("resourceclaimtemplates", made.templates),
        ):
            kind = admin.resource(
                "resource.k8s.io", "v1", plural, namespaced=plural == "resourceclaimtemplates"
            )
            for one in objects:
                await kind.create(one, field_validation="Strict")

    allot_server.run(story())


@EVERY
def test_the_same_number_is_always_the_same_machine(name):
    """A larger fleet begins with the smaller one, so that growing changes nothing that is there."""
    few, many = list(fleet(name, 3).members()), list(fleet(name, NODES).members())
    assert few == many[:3]
    names = [member.name for member in many]
    assert len(set(names)) == NODES
    assert fleet(name, NODES).names == set(names)
    assert all(member.node["metadata"]["labels"][FLEET_LABEL] == name for member in many)


@EVERY
def test_pools_are_complete_and_name_devices_once(name):
    made = fleet(name, 40)
    pools: dict[tuple[str, str], list[dict]] = {}
    for one in (*(s for member in made.members() for s in member.slices), *made.shared):
        pools.setdefault((one["spec"]["driver"], one["spec"]["pool"]["name"]), []).append(one["spec"])
    for specs in pools.values():
        assert {spec["pool"]["resourceSliceCount"] for spec in specs} == {len(specs)}
        devices = [device["name"] for spec in specs for device in spec.get("devices", ())]
        assert devices and len(set(devices)) == len(devices)


def test_every_example_asks_for_a_class_that_is_offered():
    for name in CATALOGUE:
        made = fleet(name, 4)
        offered = {one["metadata"]["name"] for one in made.classes}
        for template in made.templates:
            for request in template["spec"]["spec"]["devices"]["requests"]:
                for wanted in (request.get("exactly"), *request.get("firstAvailable", ())):
                    assert wanted is None or wanted["deviceClassName"] in offered


def test_three_mixed_nodes_are_three_kinds_of_nodes():
    """The smallest fleet shows a GPU server, GPUs in parts, and a device plugin."""
    kinds = [member.name.rpartition("-")[0] for member in fleet("mixed", 3).members()]
    assert kinds == ["gpu", "mig", "plugin"]


def test_a_device_plugin_shows_only_in_the_capacity():
    (member,) = fleet("plugin", 1).members()
    assert member.node["status"]["allocatable"]["example.com/gpu"] == "8"
    assert member.slices == ()


@EVERY
def test_what_devices_serve_shows_only_in_slices(name):
    """5004-SCHED-10: a node with devices has nothing of their extended resource in its status."""
    for member in fleet(name, 3).members():
        amounts = {**member.node["status"]["capacity"], **member.node["status"]["allocatable"]}
        assert not (member.slices and any("/" in resource for resource in amounts)), amounts


def test_partitions_of_one_gpu_exclude_each_other_where_they_overlap():
    """Seven small ones fit, or a 4g with a 3g; nothing fits beside the whole."""
    (member,) = fleet("mig", 1).members()
    specs = [one["spec"] for one in member.slices]
    counters = {one["name"]: amounts(one) for spec in specs for one in spec.get("sharedCounters", ())}
    drawn = {
        device["name"]: amounts(device["consumesCounters"][0])
        for spec in specs
        for device in spec.get("devices", ())
    }

    def fits(*names: str) -> bool:
        left = counters["gpu-0-counters"]
        return all(
            sum(drawn[f"gpu-0{name}"].get(counter, 0) for name in names) <= left[counter] for counter in left
        )

    assert fits("")
    assert not fits("", "-mig-1g-10gb-0")
    assert fits(*(f"-mig-1g-10gb-{at}" for at in range(7)))
    assert fits("-mig-4g-40gb-0", "-mig-3g-40gb-4")
    assert not fits("-mig-3g-40gb-0", "-mig-2g-20gb-2")
    assert not fits("-mig-7g-80gb-0", "-mig-1g-10gb-6")
    assert fits(*(f"-mig-1g-20gb-{at}" for at in (0, 2, 4, 6)))


def amounts(counted: dict) -> dict[str, int]:
    return {name: int(counter["value"]) for name, counter in counted["counters"].items()}


def test_no_profile_leaves_the_gpu():
    for profile in PROFILES:
        assert all(start + profile.memory_slices <= MEMORY_SLICES for start in profile.places)


def test_an_unknown_fleet_is_refused_with_the_names_there_are():
    with pytest.raises(UnknownFleet, match="mixed"):
        fleet("none-of-these", 1)
    with pytest.raises(UnknownFleet, match="nodes"):
        fleet("mixed", -1)


def test_the_page_lists_every_fleet():
    table = section(ROOT / "docs" / "up.md", "## Which nodes")
    assert first_column(table) == list(CATALOGUE)
