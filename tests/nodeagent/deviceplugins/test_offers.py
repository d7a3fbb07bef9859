"""What device plugins offer, what a node says of it, and when that ends."""

from allot.nodeagent.deviceplugins.offers import Counted, Device, Offers
from allot.wire import deviceplugin as wire

GPU = "example.com/gpu"


def listed(*ids: str, sick: str = "") -> list[wire.Device]:
    return [wire.Device(id, wire.UNHEALTHY if id == sick else wire.HEALTHY) for id in ids]


def test_what_is_listed_counts_and_what_is_healthy_can_be_had():
    offers = Offers()
    turn = offers.begin(GPU, 0)
    assert offers.counted() == {GPU: Counted(0, 0)}
    assert offers.hear(GPU, turn, listed("a", "b", sick="b"))
    assert offers.counted() == {GPU: Counted(2, 1)}
    assert offers.can_be_had(GPU) == {"a"}
    assert (offers.health(GPU, "a"), offers.health(GPU, "b")) == ("Healthy", "Unhealthy")
    assert not offers.hear(GPU, turn, listed("a", "b", sick="b"))


def test_a_device_that_is_listed_no_more_is_not_healthy():
    offers = Offers()
    turn = offers.begin(GPU, 0)
    offers.hear(GPU, turn, listed("a", "b"))
    offers.hear(GPU, turn, listed("a"))
    assert offers.counted() == {GPU: Counted(1, 1)}
    assert offers.health(GPU, "b") == "Unhealthy"


def test_the_numa_nodes_of_a_device_are_kept():
    offers = Offers()
    near = wire.TopologyInfo((wire.NumaNode(0), wire.NumaNode(1)))
    offers.hear(GPU, offers.begin(GPU, 0), [wire.Device("a", wire.HEALTHY, near)])
    assert offers.devices() == {GPU: (Device("a", (0, 1)),)}


def test_of_a_plugin_that_is_gone_nothing_can_be_had_and_after_the_grace_nothing_counts():
    """OFFER2, OFFER3."""
    offers = Offers(grace_s=300)
    turn = offers.begin(GPU, 0)
    offers.hear(GPU, turn, listed("a", "b"))
    assert offers.lose(GPU, turn, 10.0)
    assert not offers.lose(GPU, turn, 11.0)
    offers.give_up(309.9)
    assert offers.counted() == {GPU: Counted(2, 0)}
    assert offers.health(GPU, "a") == "Unknown"
    offers.give_up(310.0)
    assert offers.counted() == {GPU: Counted(0, 0)}
    assert offers.is_given_up(GPU, 310.0)


def test_a_plugin_that_comes_back_offers_again_at_once():
    offers = Offers()
    turn = offers.begin(GPU, 0)
    offers.hear(GPU, turn, listed("a"))
    offers.lose(GPU, turn, 10.0)
    assert offers.hear(GPU, turn, listed("a"))
    offers.give_up(1000.0)
    assert offers.counted() == {GPU: Counted(1, 1)}


def test_of_two_plugins_the_last_to_register_is_heard():
    """OFFER1."""
    offers = Offers()
    old = offers.begin(GPU, 0)
    offers.hear(GPU, old, listed("a"))
    new = offers.begin(GPU, 1)
    assert offers.counted() == {GPU: Counted(1, 1)}  # until the new one has said something
    assert not offers.hear(GPU, old, listed("b"))
    assert offers.hear(GPU, new, listed("c"))
    assert not offers.lose(GPU, old, 2.0)
    assert offers.can_be_had(GPU) == {"c"}


def test_what_an_earlier_process_knew_counts_as_nothing_until_its_plugin_is_heard():
    offers = Offers([GPU], now_s=5.0)
    assert offers.has(GPU)
    assert offers.counted() == {GPU: Counted(0, 0)}
    offers.hear(GPU, offers.begin(GPU, 6.0), listed("a"))
    assert offers.counted() == {GPU: Counted(1, 1)}


def test_devices_without_an_id_are_none():
    offers = Offers()
    offers.hear(GPU, offers.begin(GPU, 0), [wire.Device("", wire.HEALTHY)])
    assert offers.counted() == {GPU: Counted(0, 0)}
