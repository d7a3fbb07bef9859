"""What nodes have of compute resources where no Node can say it (14-OPEN-25): questions, dumps and plans."""

from pathlib import Path

from allot.api import Gates, Object, encode
from allot.autoscaler.groups import LABEL, GroupEntry
from allot.autoscaler.templates import groups_of, lacks
from allot.planning import Cluster, Dump, load, save
from autoscaler.test_compute import H100, grown, wants
from kep import compute
from kep.compute import node

from .clusters import Fields, ask, cluster, gathered

FAST = compute.class_("fast", ("model", "In", "h100"))


def listing(name: str, *resources: Fields) -> Fields:
    named = [{"name": compute.named(one["properties"]), **one} for one in resources]
    return {
        "apiVersion": "compute.allot.dev/v1alpha1",
        "kind": "NodeComputeResources",
        "metadata": {"name": name},
        "computeResources": named,
    }


def beside(name: str, *resources: Fields, labels: Fields | None = None) -> tuple[Fields, Fields]:
    """A node as another Kubernetes keeps it, and its list."""
    plain = node(name)
    del plain["status"]["computeResources"]
    plain["metadata"]["labels"].update(labels or {})
    return plain, listing(name, *resources)


def test_a_node_like_one_with_a_list_has_what_is_listed():
    here = cluster(FAST, *beside("n", compute.cr(H100, 1)), *wants("p", "q", fast=1))
    assert [*ask(here).waiting] == ["default/q"]
    answer = ask(here, "add 1 like n")
    assert not answer.waiting
    assert answer.placed["default/q"] == "n-1"


def test_a_dump_has_the_lists_and_answers_like_its_cluster(tmp_path: Path):
    """DUMP1."""
    found = gathered([FAST, *beside("n", compute.cr(H100, 1)), *wants("p", fast=1)])
    save(Dump(found, Gates()), tmp_path / "dump")
    again = load(tmp_path / "dump")
    assert not ask(Cluster(again.gathered, again.gates)).waiting


def test_a_group_grows_by_what_the_list_of_one_of_its_nodes_says():
    """14-AUTO-02, learned: the node that is there is full."""
    label = {LABEL: "gpus"}
    here = cluster(FAST, *beside("n", compute.cr(H100, 1), labels=label), *wants("a", "b", "c", fast=1))
    (group,) = groups_of([GroupEntry(name="gpus")], here.nodes, [], here.reading.snapshot)
    assert len(grown(here, group).nodes) == 3
    assert group.template is not None
    plain, listed = beside("m", compute.cr(H100, 1), labels=label)
    assert lacks(group.template, Object(encode(plain)), []) != ()
    assert lacks(group.template, cluster(plain, listed).nodes["m"], []) == ()
