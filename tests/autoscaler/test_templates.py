"""Templates: where they come from, which one counts, and what is said of a node that is not as promised."""

import json
from pathlib import Path

import pytest
import yaml

from allot.api import Fields, Object, encode
from allot.autoscaler import BadGroups, Origin, Template, read_groups
from allot.autoscaler.groups import LABEL, LEAVING, GroupEntry
from allot.autoscaler.templates import groups_of, lacks, learned, promise, template_for
from allot.cli import main
from allot.fleet import fleet
from allot.planning import Dump, save
from allot.scheduler import SOURCE
from planning.clusters import claim, cluster, gathered, hardware, pod

from .test_packing import asking, only_offers, template

READY = [{"type": "Ready", "status": "True"}]


def objects(kind: str = "gpu", name: str = "n", *, ready: bool = True) -> tuple[Object, list[Object]]:
    made = template(kind).named(name, "group")
    node = made.node if ready else made.node.changed({"status": {"conditions": []}})
    return node, list(made.slices)


def test_a_template_is_learned_from_a_node_that_is_complete():
    node, slices = objects()
    lesson = learned(node, slices, None)
    assert lesson is not None and lesson.origin is Origin.LEARNED
    again = lesson.named("next", "group")
    assert again.node.metadata.annotations == {SOURCE: "n"}  # AUTO-07
    assert [one.fields["spec"]["nodeName"] for one in again.slices] == ["next"] * len(slices)
    assert {one.fields["spec"]["pool"]["name"] for one in again.slices} == {"next"}
    assert learned(*objects(ready=False), None) is None
    assert (
        learned(node, [one.changed({"spec": {"pool": {"resourceSliceCount": 2}}}) for one in slices], None)
        is None
    )


def test_what_daemons_take_is_not_promised():
    daemon = pod("d", node="gpu-0", owner="daemon", container={"resources": {"requests": {"cpu": "10"}}})
    here = cluster(*hardware("gpu", 1), daemon)
    info = here.reading.snapshot.node("gpu-0")
    node = objects()[0]
    lesson = learned(node, [], info)
    assert lesson is not None
    assert lesson.node["status"]["allocatable"]["cpu"] == "180"
    assert lesson.node["status"]["allocatable"]["pods"] == "109"


def test_the_first_that_says_something_counts():
    """AUTO-08, AUTO-44, AUTO-45: given, named, learned, provided."""
    written = {"node": {"status": {"allocatable": {"cpu": "7"}}}}
    lesson = Template({"metadata": {"name": "n"}}, (), Origin.LEARNED)
    published = objects("gpu", "made-up")[1]

    def origin(entry: GroupEntry, remembered: Template | None) -> Origin | None:
        found = template_for(entry, {}, published, remembered)
        return found.origin if found is not None else None

    assert origin(GroupEntry(name="g", template=written, fleet="gpu"), lesson) is Origin.GIVEN
    assert origin(GroupEntry(name="g", source="made-up", fleet="gpu"), lesson) is Origin.NAMED
    assert origin(GroupEntry(name="g", source="nowhere", fleet="gpu"), lesson) is Origin.LEARNED
    assert origin(GroupEntry(name="g", fleet="gpu"), lesson) is Origin.LEARNED
    assert origin(GroupEntry(name="g", fleet="gpu"), None) is Origin.PROVIDED
    assert origin(GroupEntry(name="g"), None) is None


def test_groups_know_their_size_and_learn_from_their_nodes():
    members = [dict(member.node) for member in fleet("gpu", 2).members()]
    for one in members:
        one["metadata"] = {**one["metadata"], "labels": {**one["metadata"]["labels"], LABEL: "gpus"}}
        one["status"] = {**one["status"], "conditions": READY}
    nodes = {one["metadata"]["name"]: Object(encode(one)) for one in members}
    (found,) = groups_of([GroupEntry(name="gpus", max=5)], nodes, [], cluster().reading.snapshot)
    assert (found.size, found.room) == (2, 3)
    assert found.template is not None and found.template.origin is Origin.LEARNED


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, ()),
        ({"status": {"allocatable": {"cpu": "187"}}}, ()),
        ({"status": {"allocatable": {"cpu": "100"}}}, ("190 cpu promised, 100 there",)),
        (
            {"metadata": {"labels": {"kubernetes.io/arch": "arm64"}}},
            ("label kubernetes.io/arch=amd64 promised, arm64 there",),
        ),
        (
            {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}},
            ("taint x:NoSchedule that nobody spoke of",),
        ),
        ({"spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]}}, ()),
    ],
)
def test_a_node_that_is_not_what_was_promised_is_told_apart(change: Fields, told: tuple[str, ...]):
    """AUTO-09, 14-AUTO-07."""
    node, slices = objects("gpu", "fresh")
    assert lacks(template("gpu"), node.changed(change), slices) == told


def test_missing_and_other_devices_are_told():
    """AUTO-09."""
    node, slices = objects("gpu", "fresh")
    few = [one.changed({"spec": {"devices": one.fields["spec"]["devices"][:3]}}) for one in slices]
    assert lacks(template("gpu"), node, few) == ("8 devices of gpu.example.com promised, 3 like them there",)
    assert lacks(template("gpu"), node, []) == ("8 devices of gpu.example.com promised, 0 like them there",)
    other = json.loads(json.dumps([one.fields for one in slices]).replace("H100-SXM5-80GB", "A100"))
    changed = [Object(encode(one)) for one in other]
    assert lacks(template("gpu"), node, changed) == (
        "8 devices of gpu.example.com promised, 0 like them there",
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("groups: 7", "Expected `array`"),
        ("groups: [{name: a}, {name: a}]", "named twice"),
        ("groups: [{name: a, min: 3, max: 2}]", "min <= max"),
        ("groups: [{name: a, price: -1}]", "is no price"),
        ("groups: [{name: a, colour: red}]", "colour"),
        ("groups: [{name: a, source: b, template: {node: {}}}]", "two answers"),
        ("groups: [{name: a, template: {node: {}, slices: [{}]}}]", "`driver` and `pool`"),
        (
            "groups: [{name: a, template: {node: {}, slices: [{spec: {driver: d, pool: {}, "
            "allNodes: true}}]}}]",
            "share",
        ),
        ("[", "not YAML"),
        ("groups: " + "[" * 3000, "nested too deeply"),
        ("{}", "there are none"),
        ("groups: [{name: a, price: .nan}]", "is no price"),
        ("groups: [{name: a/b}]", "label's value"),
        ("groups: [{name: ''}]", "it is empty"),
        ("groups: [{name: a, template: {node: {}, nodes: 1}}]", "not 'nodes'"),
        ("groups: [{name: a, template: {node: {metadata: x}}}]", "Node.metadata"),
        (
            "groups: [{name: a, template: {node: {status: {allocatable: {cpu: lots}}}}}]",
            "not a quantity: 'lots'",
        ),
        ("groups: [{name: a, template: {node: {status: {allocatable: {cpu: -1}}}}}]", "below nothing"),
        ("groups: [{name: a, template: {node: {status: {allocatables: {}}}}}]", "allocatables"),
        ("groups: [{name: a, template: {node: {status: {computeResources: [x]}}}}]", "computeResources"),
        ("groups: [{name: a, template: {node: {}, slices: [{spec: {driver: d, pool: x}}]}}]", "spec.pool"),
        ("groups: [{name: a, template: {node: {}, slices: [x]}}]", "an object is needed"),
        ("{provider: {address: 'x:1'}, command: [x]}", "two answers"),
        ("provider: {address: x}", "HOST:PORT"),
        ("provider: {address: 'x:1', grpc_timeout: 0s}", "grpc_timeout"),
        ("provider: {address: 'x:1', grpc_timeout: soon}", "not a duration"),
    ],
)
def test_what_is_wrong_with_a_groups_file_is_said(text: str, why: str):
    with pytest.raises(BadGroups, match=why):
        read_groups(text)


def test_files_that_a_provider_is_reached_by_lie_beside_the_groups(tmp_path: Path):
    text = "provider: {address: 'x:1', cert: c, key: /k, cacert: ca, grpc_timeout: 1m}"
    found = read_groups(text, tmp_path).provider
    assert found is not None
    assert (found.cert, found.key, found.cacert) == (str(tmp_path / "c"), "/k", str(tmp_path / "ca"))
    assert found.timeout_s == 60.0


GROUPS = """
groups:
- {name: gpus, price: 10, max: 4, fleet: gpu}
- {name: plain, price: 1, fleet: plain}
"""


def test_plan_says_which_nodes_to_add_or_why_none_helps(tmp_path: Path, capsys):
    """Offline, from a dump: scale from zero for claims, and pods of a manifest."""
    dump, groups, more = tmp_path / "dump", tmp_path / "groups.yaml", tmp_path / "more.yaml"
    groups.write_text(GROUPS)
    save(Dump(gathered([*only_offers(), *asking(9)])), dump)
    words = ["plan", "--groups", str(groups), "--dump", str(dump)]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[0] == "add 2 of gpus"
    more.write_text(
        yaml.safe_dump_all([pod("big", template="nine"), pod("small", template="one-gpu"), pod("cpu")])
    )
    nine = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "nine"},
        "spec": {"spec": claim("x", count=9)["spec"]},
    }
    more.write_text(more.read_text() + "\n---\n" + yaml.safe_dump(nine))
    assert main([*words, str(more), "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert len(told["add"]["gpus"]) == 2 and told["price"] == 20.0
    assert list(told["helpless"]) == ["default/big"]
    assert "gpus: " in told["helpless"]["default/big"] and "plain: " in told["helpless"]["default/big"]
    assert main(["plan", "--groups", str(tmp_path / "none"), "--dump", str(dump)]) == 2


def test_a_node_on_its_way_out_teaches_what_the_next_one_will_be():
    """Scale from zero: the last node of a group is learned from while it is being emptied."""
    node, slices = objects()
    leaving = node.changed({"spec": {"taints": [{"key": LEAVING, "effect": "NoSchedule"}]}})
    before, lesson = learned(node, slices, None), learned(leaving, slices, None)
    assert before is not None and lesson is not None
    assert lesson.node["spec"]["taints"] == [] and promise(lesson) == promise(before)
    assert "conditions" not in lesson.node["status"]  # how it fares is nothing that was promised


def test_a_new_node_teaches_nothing_before_it_has_published_everything():
    """It is ready at once; what it has not published yet is not missing from the group."""
    node, slices = objects("gpu", "new")
    known = learned(*objects("gpu", "old"), None)
    assert known is not None
    snapshot, entry = cluster().reading.snapshot, GroupEntry(name="group")

    def devices(published: list[Object], unsettled: set[str]) -> int:
        (found,) = groups_of([entry], {"new": node}, published, snapshot, {"group": known}, unsettled)
        assert found.template is not None
        return sum(len(one["spec"]["devices"]) for one in found.template.slices)

    assert devices([], {"new"}) == 8
    assert devices(slices, {"new"}) == 8
    assert devices([], set()) == 0  # it had its time
