"""What a container gets, out of what plugins answer."""

import logging

from allot.nodeagent.deviceplugins.answers import Given, together
from allot.nodeagent.deviceplugins.loans import Answer, Lent, Loan
from allot.nodeagent.runtimes import Mount
from allot.wire import cdi
from allot.wire import deviceplugin as wire


def loan(resource: str, answer: Answer | None) -> Loan:
    return Loan("p", "main", resource, (Lent("a"),), answer=answer)


def test_answers_of_several_plugins_are_put_together():
    gpu = Answer(
        {"GPU": "a"},
        (wire.Mount("/in", "/out", True),),
        (wire.DeviceSpec("/dev/gpu", "/dev/gpu7", "rw"),),
        {"note": "1"},
        (wire.CdiDevice("example.com/gpu=a"),),
    )
    nic = Answer({"NIC": "b"}, (wire.Mount("/to", "/from"),))
    given = together([loan("example.com/gpu", gpu), loan("example.com/nic", nic)])
    assert given.annotations == {"note": "1"}
    assert given.cdi_ids == ("example.com/gpu=a",)
    assert given.env == {"GPU": "a", "NIC": "b"}
    assert given.devices == (cdi.DeviceNode("/dev/gpu", "/dev/gpu7", permissions="rw"),)
    assert given.mounts == (Mount("/out", "/in", read_only=True), Mount("/from", "/to"))


def test_of_two_that_say_different_things_the_first_counts_and_that_is_logged(caplog):
    one, other = Answer({"A": "1", "B": "1"}), Answer({"A": "2", "B": "1"})
    with caplog.at_level(logging.WARNING):
        given = together([loan("example.com/x", one), loan("example.com/y", other)])
    assert given.env == {"A": "1", "B": "1"}
    assert [record.getMessage() for record in caplog.records] == [
        "container main: the device plugin of example.com/y says something else of A than another one"
    ]


def test_who_has_no_devices_gets_nothing():
    assert together([]) == together([loan("example.com/x", None)]) == Given()
