"""Devices with properties as compute resources: the rules alone, and in every order of events."""

from collections import Counter
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from allot.nodeagent.deviceplugins import checkpoint
from allot.nodeagent.deviceplugins.compute import ComputeResource, Exports, name, resource_of
from allot.nodeagent.deviceplugins.loans import Asked, Lent, Loans, Part, TooFew
from allot.nodeagent.deviceplugins.offers import Offers
from allot.wire import deviceplugin as wire

GPU = "nvidia.com/gpu"
K80, V100 = {"model": "k80"}, {"model": "v100"}


def listed(devices: Mapping[str, Mapping[str, str]], sick: Iterable[str] = ()) -> list[wire.Device]:
    return [
        wire.Device(id, wire.UNHEALTHY if id in sick else wire.HEALTHY, None, dict(properties))
        for id, properties in devices.items()
    ]


def named(properties: Mapping[str, str], resource: str = GPU) -> str:
    return name(resource, tuple(sorted(properties.items())))


class Desk:
    """What a node knows."""

    def __init__(self, is_wanted: bool = True) -> None:
        self.offers, self.loans = Offers(), Loans()
        self.turn = self.offers.begin(GPU, 0)
        self.exports = Exports(self.offers, self.loans, is_wanted)

    def hear(self, devices: Mapping[str, Mapping[str, str]], sick: Iterable[str] = ()) -> None:
        self.offers.hear(GPU, self.turn, listed(devices, sick))

    def lend(self, pod: str, properties: Mapping[str, str] | None, number: int = 1) -> tuple[str, ...]:
        """As lending does: by the name of a compute resource, or counted. Raises TooFew."""
        part = Part(named(properties) if properties is not None else GPU, number)
        every = self.offers.can_be_had(GPU)
        there = every if properties is None else self.exports.can_be_had(GPU, part.name)
        taken = self.loans.choice(pod, GPU, part, there).taken()
        asked = Asked("main", GPU, number)
        return self.loans.lend(pod, asked, [Lent(id, (), self.exports.lent_as(GPU, id)) for id in taken]).ids

    @property
    def shown(self) -> dict[str, tuple[str, ...]]:
        return {one.name: one.devices for one in self.exports.all()}


def test_devices_with_the_same_properties_are_one_compute_resource():
    """14-NODE-01, 14-PLUG-02: another value or an additional key makes another one."""
    desk = Desk()
    desk.hear({"a": K80, "b": V100, "c": K80, "d": {**K80, "ecc": "true"}})
    assert desk.shown == {
        named(K80): ("a", "c"),
        named({**K80, "ecc": "true"}): ("d",),
        named(V100): ("b",),
    }


def test_the_name_follows_from_the_properties_alone():
    """14-NODE-02, 14-NODE-03: whatever the order of keys, the devices, their health and the node."""
    first, second = Desk(), Desk()
    first.hear({"a": {"x": "1", "y": "2"}})
    second.hear({"b": {"y": "2", "x": "1"}, "c": {"x": "1", "y": "2"}}, sick=["b"])
    assert first.shown.keys() == second.shown.keys()
    assert named({"a": "bc"}) != named({"ab": "c"})
    assert named({}).startswith("nvidia.com/gpu-44136fa355b3678a"), "the first digits of SHA-256 over {}"
    assert resource_of(named(K80)) == GPU


def test_a_plugin_without_properties_is_one_compute_resource_without_properties():
    """14-NODE-10, 14-PLUG-03"""
    desk = Desk()
    desk.hear({"a": {}, "b": {}})
    (only,) = desk.exports.all()
    assert only == ComputeResource(GPU, (), ("a", "b"), ("a", "b"))
    assert "properties" not in only.as_fields()


def test_the_sick_are_listed_and_cannot_be_had():
    """14-NODE-05, 14-NODE-06: being in use takes a device off neither list."""
    desk = Desk()
    desk.hear({"a": K80, "b": K80}, sick=["b"])
    desk.lend("p", K80)
    assert desk.exports.all() == (ComputeResource(GPU, (("model", "k80"),), ("a", "b"), ("a",)),)
    with pytest.raises(TooFew, match=f"{named(K80)}. Requested: 1, Available: 0"):
        desk.lend("q", K80)
    desk.hear({"a": K80, "b": K80})
    assert desk.lend("q", K80) == ("b",)


def test_what_is_in_use_keeps_its_name_until_it_is_given_back():
    """14-PROP-01, 14-PROP-02, 14-PROP-06, COMP2: a plugin is upgraded and says more of every device."""
    desk = Desk()
    desk.hear({"a": K80, "b": K80})
    assert desk.lend("p", K80) == ("a",)
    more = {**K80, "ecc": "true"}
    desk.hear({"a": more, "b": more})
    assert desk.shown == {named(K80): ("a",), named(more): ("b",)}
    with pytest.raises(TooFew):
        desk.lend("q", K80)
    assert desk.lend("q", more) == ("b",)
    desk.loans.give_back("p")
    assert desk.shown == {named(more): ("a", "b")}


def test_what_an_init_container_had_keeps_its_name_for_those_that_come_after_it():
    """COMP2, 14-ASK-06: also where it had no properties before."""
    desk = Desk()
    desk.hear({"a": {}})
    desk.loans.lend("p", Asked("init", GPU, 1, ends=True), [Lent("a", (), desk.exports.lent_as(GPU, "a"))])
    desk.hear({"a": K80})
    assert desk.lend("p", {}) == ("a",)
    assert desk.shown == {named({}): ("a",)}


def test_a_restart_in_the_middle_of_a_change_keeps_the_old_names():
    """14-PROP-05, 14-AGENT-07: the checkpoint says as what each device was lent."""
    desk = Desk()
    desk.hear({"a": K80, "b": V100})
    desk.lend("p", K80)
    desk.hear({"a": V100, "b": V100})
    content = checkpoint.encode(desk.loans.all, desk.offers.resources)
    known = checkpoint.decode(content)
    offers, loans = Offers(known.resources), Loans(known.loans)
    offers.hear(GPU, offers.begin(GPU, 0), listed({"a": V100, "b": V100}))
    after = Exports(offers, loans, is_wanted=True)
    assert {one.name: one.devices for one in after.all()} == {named(K80): ("a",), named(V100): ("b",)}


def test_a_checkpoint_of_before_has_no_compute_resources():
    """What was lent by an older agent was counted, and is so until it is given back."""
    desk = Desk(is_wanted=False)
    desk.hear({"a": K80})
    desk.lend("p", None)
    content = checkpoint.encode(desk.loans.all, desk.offers.resources)
    (loan,) = checkpoint.decode(content).loans
    assert loan.devices == (Lent("a", (), None),)


def test_a_device_that_vanishes_while_in_use_is_not_offered():
    """14-PROP-07: its compute resource has fewer devices than are given out."""
    desk = Desk()
    desk.hear({"a": K80, "b": K80})
    desk.lend("p", K80, 2)
    desk.hear({"b": K80})
    assert desk.shown == {named(K80): ("b",)}
    with pytest.raises(TooFew):
        desk.lend("q", K80)
    desk.loans.give_back("p")
    assert desk.lend("q", K80) == ("b",)


def test_a_node_is_switched_when_none_of_the_devices_is_in_use():
    """14-RAW-06, 14-NODE-08, COMP3: pods that have counted devices have no record; none is lost."""
    desk = Desk(is_wanted=False)
    desk.hear({"a": K80, "b": K80})
    assert (desk.exports.counted, desk.exports.all()) == ((GPU,), ())
    desk.lend("p", None)
    desk.exports.is_wanted = True
    assert (desk.exports.counted, desk.exports.late) == ((GPU,), (GPU,))
    desk.loans.give_back("p")
    assert (desk.exports.counted, desk.exports.late) == ((), ())
    desk.lend("q", K80)
    desk.exports.is_wanted = False
    assert (desk.exports.exported, desk.exports.late) == ((GPU,), (GPU,))
    desk.loans.give_back("q")
    assert desk.exports.counted == (GPU,)


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"bad key!": "x"}, "the name of its property"),
        ({"big": "x" * 257}, "more than 256 bytes"),
        ({f"p{n}": "x" for n in range(65)}, "more than 64 properties"),
    ],
)
def test_a_device_with_a_wrong_property_is_not_exported_and_its_siblings_are(properties, why):
    """14-PLUG-07"""
    desk = Desk()
    desk.hear({"a": K80, "b": properties, "c": K80})
    assert desk.shown == {named(K80): ("a", "c")}
    ((device, said),) = desk.exports.refused().items()
    assert device == "b of nvidia.com/gpu"
    assert why in said


def test_a_plugin_that_is_gone_leaves_a_resource_without_devices():
    """COMP4: so that nobody takes the resource for one that only drivers serve here."""
    desk = Desk()
    desk.hear({"a": K80})
    desk.offers.lose(GPU, desk.turn, 0.0)
    assert desk.exports.all() == (ComputeResource(GPU, (("model", "k80"),), ("a",), ()),)
    desk.offers.give_up(1000.0)
    assert desk.exports.all() == (ComputeResource(GPU, (), (), ()),)


KINDS = [{}, K80, V100, {**K80, "ecc": "true"}]


class Life(RuleBasedStateMachine):
    """Plugins say what they like, pods come and go, agents begin anew: what is in use keeps its name."""

    @initialize()
    def begin(self) -> None:
        self.desk = Desk()
        self.held: dict[str, dict[str, str]] = {}  # pod -> device -> the name it was lent under
        self.said: dict[str, Mapping[str, str]] = {}

    @rule(
        devices=st.dictionaries(st.sampled_from("abcd"), st.sampled_from(KINDS)),
        sick=st.sets(st.sampled_from("abcd")),
    )
    def hear(self, devices, sick) -> None:
        self.said = devices
        self.desk.hear(devices, sick)

    @rule(pod=st.sampled_from("pqr"), properties=st.sampled_from(KINDS), number=st.integers(1, 2))
    def lend(self, pod, properties, number) -> None:
        if pod in self.held or not self.desk.exports.is_exported(GPU):
            return
        try:
            ids = self.desk.lend(pod, properties, number)
        except TooFew:
            return
        self.held[pod] = dict.fromkeys(ids, named(properties))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def give_back(self, data) -> None:
        pod = data.draw(st.sampled_from(sorted(self.held)))
        del self.held[pod]
        self.desk.loans.give_back(pod)

    @rule(is_wanted=st.booleans())
    def begin_anew(self, is_wanted) -> None:
        known = checkpoint.decode(checkpoint.encode(self.desk.loans.all, self.desk.offers.resources))
        self.desk.offers, self.desk.loans = Offers(known.resources), Loans(known.loans)
        self.desk.turn = self.desk.offers.begin(GPU, 0)
        self.desk.exports = Exports(self.desk.offers, self.desk.loans, is_wanted)
        self.desk.hear(self.said)

    @invariant()
    def each_device_is_in_one_place_and_has_one_holder(self) -> None:
        """14-AGENT-10, COMP1, COMP2."""
        shown = self.desk.exports.all()
        places = Counter(id for one in shown for id in one.devices)
        assert all(count == 1 for count in places.values())
        holders = Counter(id for devices in self.held.values() for id in devices)
        assert all(count == 1 for count in holders.values())
        where = {id: one.name for one in shown for id in one.devices}
        for devices in self.held.values():
            for id, lent_as in devices.items():
                assert where.get(id, lent_as) == lent_as
        if shown:
            idle = self.said.keys() - holders.keys()
            assert {id: where.get(id) for id in idle} == {id: named(self.said[id]) for id in idle}


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
