"""KEP-14: templates with compute resources, matched against resource classes as real ones are."""

from typing import Any

from allot.api import Object, encode
from allot.autoscaler import Group, Growth, Template, grow
from allot.autoscaler.groups import GroupEntry, given
from allot.autoscaler.templates import lacks
from kep import compute
from kep.compute import node
from planning.clusters import Cluster, Fields, cluster

from .test_packing import by_group, simulated

A100, H100 = {"model": "a100"}, {"model": "h100"}


def group(name: str, *resources: Fields, price: float = 1.0, **amounts: str) -> Group:
    entry = GroupEntry(name=name, template={"node": node(name, *resources, **amounts)})
    return Group(name, price, template=given(entry))


def wants(*names: str, **limits: Any) -> list[Fields]:
    container = compute.container(**limits)
    container["resources"]["requests"] = container["resources"]["limits"]  # as the server would
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": [container]},
        }
        for name in names
    ]


def grown(here: Cluster, *groups: Group) -> Growth:
    return grow(simulated(here), here.waiting, groups)


FAST = compute.class_("fast", ("model", "In", "h100"))
ANY = compute.class_("any")


def test_the_group_whose_template_has_the_properties_grows_and_no_other():
    """14-AUTO-01, 14-AUTO-02, 14-AUTO-03, AUTO-44, AUTO-45: three devices are wanted, a node has two."""
    here = cluster(FAST, *wants("a", "b", "c", fast=1))
    groups = [group("old", compute.cr(A100), price=0.1), group("new", compute.cr(H100), price=5.0)]
    assert by_group(grown(here, *groups)) == {"new": 2}
    assert by_group(grown(cluster(ANY, *wants("a", any=1)), *groups)) == {"old": 1}
    alone = grown(here, groups[0])
    assert not alone.nodes and len(alone.helpless) == 3


def test_requests_for_classes_of_the_whole_cluster_are_left_out():
    """14-AUTO-06, AUTO-47, AUTO-48: the rest of the pod decides, and what no node has keeps it from none."""
    everywhere = compute.class_("licence", raw="example.com/licence", scope="Cluster")
    here = cluster(everywhere, *wants("a", licence=1, cpu=4))
    assert by_group(grown(here, group("tiny", cpu="2"), group("big", price=9.0))) == {"big": 1}


def test_what_is_exported_as_compute_resources_is_not_counted_twice():
    """AUTO-50: two devices, also where the node's capacity says two besides, and by whichever name."""
    both = group("g", compute.cr(H100, devices=2), **{compute.RAW: "2"})
    for name in ("any", compute.RAW):
        assert by_group(grown(cluster(ANY, *wants("a", "b", "c", **{name: 1})), both)) == {"g": 2}


def test_a_node_that_exports_less_than_its_template_is_told_apart():
    """14-AUTO-07."""
    promised = Template(compute.node("g", compute.cr(H100, devices=2)))
    same = Object(encode(compute.node("n", compute.cr(H100, devices=2))))
    less = Object(encode(compute.node("n", compute.cr(A100, devices=2))))
    assert lacks(promised, same, []) == ()
    assert lacks(promised, less, []) == (
        '2 devices of nvidia.com/gpu with {"model": "h100"} promised, 0 there',
    )
