"""How devices are, as their drivers say: HEALTH1 to HEALTH4."""

from allot.nodeagent.health import DEVICES_MAX, UNKNOWN, Healths, Shown, Which
from allot.wire import health

SICK, WELL = health.Health.UNHEALTHY, health.Health.HEALTHY


def report(name: str, how: health.Health, message: str = "", timeout_s: int = 0) -> health.DeviceHealth:
    return health.DeviceHealth(health.DeviceIdentifier("pool", name), how, 0, timeout_s, message)


def of(name: str) -> Which:
    return Which("gpu", "pool", name)


def test_a_device_is_what_its_driver_last_said():
    healths = Healths()
    assert healths.of(of("a"), 0) == UNKNOWN
    assert healths.heard("gpu", [report("a", SICK, "hot")], 0) == {of("a")}
    assert healths.of(of("a"), 1) == Shown("Unhealthy", "hot")
    assert healths.heard("gpu", [report("a", SICK, "hot")], 2) == frozenset(), "nothing new"
    assert healths.heard("gpu", [report("a", WELL)], 3) == {of("a")}


def test_a_word_holds_for_its_time_and_what_a_report_leaves_out_holds_until_then():
    healths = Healths()
    healths.heard("gpu", [report("a", WELL), report("b", WELL, timeout_s=5)], 0)
    healths.heard("gpu", [report("a", WELL)], 4)
    assert healths.expired(4.9) == frozenset()
    assert healths.expired(5) == {of("b")}
    assert healths.expired(6) == frozenset(), "named once"
    assert healths.of(of("b"), 6) == UNKNOWN
    assert healths.of(of("a"), 33) == Shown("Healthy")
    assert healths.of(of("a"), 34) == UNKNOWN, "also before anybody has looked"
    assert healths.expired(34) == {of("a")}


def test_of_a_driver_that_says_no_more_nothing_is_known():
    healths = Healths()
    healths.heard("gpu", [report("a", WELL), report("b", health.Health.UNKNOWN)], 0)
    assert healths.lost("gpu") == {of("a")}
    assert healths.of(of("a"), 1) == UNKNOWN


def test_a_long_message_is_cut():
    healths = Healths()
    healths.heard("gpu", [report("a", SICK, "x" * 2000)], 0)
    assert len(healths.of(of("a"), 0).message) == health.MESSAGE_LENGTH_MAX


def test_a_driver_fills_no_more_than_so_many_entries():
    healths = Healths()
    healths.heard("gpu", [report(str(number), WELL) for number in range(DEVICES_MAX)], 0)
    assert healths.heard("gpu", [report("one-more", WELL)], 0) == frozenset()
    assert healths.heard("gpu", [report("0", SICK)], 0) == {of("0")}, "those that are known go on"
    assert healths.heard("nic", [report("a", WELL)], 0) == {Which("nic", "pool", "a")}
