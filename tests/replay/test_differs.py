"""Where another policy or another version decides otherwise, and why."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from allot.api import Gates, resource
from allot.replay import CannotReplay, Choice, replayed, telling
from allot.replay.keeping import term_of
from allot.replay.lines import Decided, Flight, Reason, Verdict
from allot.replay.verdicts import is_same
from allot.scheduler import Scoring, Settings, Strategy
from allot.scheduler.framework import Rejection
from allot.scheduler.plugins import node_unschedulable, taint_toleration
from scheduler.cluster import Cluster

from .recorded import again, tell
from .stories import EXTENDED

EVEN = {"cpu": "1", "memory": "4Gi"}  # of what every node has the same part


async def spread(here: Cluster) -> None:
    """Two pods on two nodes, and one that finds none."""
    for name in "ab":
        await here.node(name)
    await here.pod("one", requests=EVEN)
    await here.bound("one")
    await here.pod("two", requests=EVEN)
    await here.bound("two")
    await here.pod("large", requests={"cpu": "9"})
    await here.condition("large")


def test_another_scoring_chooses_another_node_and_the_tier_is_named(tmp_path: Path):
    tell(tmp_path / "record", spread)
    found = again(tmp_path / "record", Choice(scoring=Scoring(Strategy.MOST_ALLOCATED)))
    (one,) = found.differences
    assert (one.pod, one.then.node, one.now.node) == ("default/two", "b", "a")
    assert one.why[0].startswith("a is better than b in how full nodes get")
    text = telling.text(found)
    assert "MostAllocated" in text and "LeastAllocated" in text
    assert "default/two: then on b, now on a" in text
    assert text.endswith("decisions, 1 decided otherwise")


def test_another_policy_chooses_other_devices(tmp_path: Path):
    """Least waste takes the partition that spoils least, first fit the one that is published first."""

    async def story(here: Cluster) -> None:
        await here.device_class()
        await here.claim("c")
        await here.node("a")
        counters = [{"name": "card", "counters": {"memory": {"value": "4"}}}]
        sizes = {"large": "4", "small": "1", "other": "1"}
        devices = [
            {
                "name": name,
                "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": size}}}],
            }
            for name, size in sizes.items()
        ]
        driver, pool = "gpu.example.com", {"name": "a", "generation": 1, "resourceSliceCount": 2}
        common = {"driver": driver, "pool": pool, "nodeName": "a"}
        await here.create(
            "resourceslices", {"metadata": {"name": "s1"}, "spec": {**common, "sharedCounters": counters}}
        )
        await here.create(
            "resourceslices", {"metadata": {"name": "s2"}, "spec": {**common, "devices": devices}}
        )
        await here.pod("p", claim="c")
        await here.bound("p")

    tell(tmp_path / "record", story)
    found = again(tmp_path / "record", Choice(policy="first-fit"))
    (one,) = found.differences
    assert one.then.node == one.now.node == "a"
    assert one.why == ("claim c: then gpu: gpu.example.com/a/small, now gpu: gpu.example.com/a/large",)


def test_a_version_that_turns_a_node_down_is_caught_and_its_plugin_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    tell(tmp_path / "record", spread)
    no = Rejection("NodeUnschedulable", "node(s) were looked at on a Monday")
    plugin = node_unschedulable.NodeUnschedulable
    check = plugin.pre_filter

    def on_a_monday(self, state, snapshot):
        made = check(self, state, snapshot)
        return type(made)(lambda node: no if node.name == "b" else made.check(node)) if made else made

    monkeypatch.setattr(plugin, "pre_filter", on_a_monday)
    found = again(tmp_path / "record")
    (two, large) = found.differences
    assert two.why == ("b: node(s) were looked at on a Monday [NodeUnschedulable]",)
    assert large.then.node == large.now.node == ""
    assert large.why[0].endswith(", 1 node(s) were looked at on a Monday [NodeUnschedulable]")


def test_a_version_that_overlooks_a_taint_places_who_waited_and_one_that_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def story(here: Cluster) -> None:
        await here.node("a", taints=[{"key": "k", "effect": "NoSchedule"}])
        await here.pod("p")
        await here.condition("p")

    tell(tmp_path / "record", story)
    assert not again(tmp_path / "record").differences
    plugin = taint_toleration.TaintToleration
    with monkeypatch.context() as patched:
        patched.setattr(plugin, "pre_filter", lambda self, state, snapshot: None)
        (one,) = again(tmp_path / "record").differences
    assert (one.then.node, one.now.node) == ("", "a")
    assert one.why[0].startswith("then no node took it: 1 node(s) had") and "[TaintToleration]" in one.why[0]

    def broken(self, state, snapshot):
        raise ValueError("what is this?")

    monkeypatch.setattr(plugin, "pre_filter", broken)
    (one,) = again(tmp_path / "record").differences
    assert one.why == ("then decided, now ValueError('what is this?')",)


def test_a_difference_is_told_once_and_not_in_all_that_follows(tmp_path: Path):
    """REPLAY2: what was decided then is what the next decision finds."""

    async def story(here: Cluster) -> None:
        for name in "ab":
            await here.node(name)
        for number in range(6):
            await here.pod(f"p{number}", requests=EVEN)
            await here.bound(f"p{number}")

    tell(tmp_path / "record", story)
    found = again(tmp_path / "record", Choice(scoring=Scoring(Strategy.MOST_ALLOCATED)))
    assert [one.pod for one in found.differences] == ["default/p1", "default/p3", "default/p5"]


def test_another_gate_decides_otherwise(tmp_path: Path):
    async def story(here: Cluster) -> None:
        await here.device_class(extendedResourceName=EXTENDED)
        await here.node("a")
        await here.devices("a", 1)
        await here.pod("p", requests={EXTENDED: "1"})
        await here.bound("p")

    tell(tmp_path / "record", story)
    found = again(tmp_path / "record", Choice(gates=Gates({"DRAExtendedResource": False})))
    (one,) = found.differences
    assert one.then.node == "a" and not one.now.node
    assert one.why == (f"a: Insufficient {EXTENDED} [NodeResourcesFit]",)


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_what_the_record_does_not_show_is_counted_and_not_guessed():
    """A decision about a pod that nobody heard of."""
    lines = [term_of(Settings(), Gates(), NOW), Decided("nobody", "default/nobody", NOW, Verdict("a"))]
    found = replayed(lines)
    assert (found.decisions, found.unknown) == (0, 1)
    assert "1 more are about pods that the record does not show" in telling.text(found)


def test_settings_of_then_that_are_not_known_here_are_told():
    term = term_of(Settings(), Gates(), NOW)
    for wrong, words in (
        (replace(term, gates={"DRAOfTomorrow": True}), "a gate that is not known here: .*DRAOfTomorrow"),
        (replace(term, policy="clairvoyant"), "policy 'clairvoyant', which is not known here"),
        (replace(term, scoring={"strategy": "Guess"}), "a scoring that is not known here"),
    ):
        with pytest.raises(CannotReplay, match=words):
            replayed([wrong])


def test_the_settings_of_then_count_where_nothing_else_is_said(tmp_path: Path):
    packed = Settings(scoring=Scoring(Strategy.MOST_ALLOCATED))
    tell(tmp_path / "record", spread, settings=packed)
    found = again(tmp_path / "record")
    assert not found.differences and found.then == found.now
    assert again(tmp_path / "record", Choice(scoring=Scoring())).differences


def test_another_remedy_and_another_share_of_a_device_are_told():
    """Ids of shares are drawn, and are no difference."""
    share = resource.DeviceRequestAllocationResult(
        request="r", driver="d", pool="l", device="nic", share_id="one"
    )
    other = replace(share, share_id="two")
    less = replace(share, consumed_capacity={"bandwidth": "1G"})
    one, same, wrong = (Verdict("a", (Flight("c", "c", (which,)),)) for which in (share, other, less))
    assert is_same(one, same) and not is_same(one, wrong)
    waits = Verdict(reasons=(Reason("Plugin", "no", 2),), remedy="take back claim c")
    assert not is_same(waits, replace(waits, remedy=""))
    assert not is_same(waits, replace(waits, reasons=(Reason("Plugin", "no", 1),)))
