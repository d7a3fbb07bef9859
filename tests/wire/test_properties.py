"""Properties of devices, beside what device plugins always sent."""

from typing import Annotated

from allot.wire import Message, deviceplugin
from allot.wire.deviceplugin import Device, ListAndWatchResponse, NumaNode, TopologyInfo


class DeviceOfBefore(Message, frozen=True):
    """v1beta1, as a kubelet has it."""

    id: Annotated[str, 1] = ""
    health: Annotated[str, 2] = ""
    topology: Annotated[TopologyInfo | None, 3] = None


class ListOfBefore(Message, frozen=True):
    devices: Annotated[tuple[DeviceOfBefore, ...], 1] = ()


NEAR = TopologyInfo((NumaNode(1),))


def test_a_plugin_that_sends_none_sends_the_bytes_of_before():
    """14-PLUG-01"""
    now = ListAndWatchResponse((Device("a", deviceplugin.HEALTHY, NEAR), Device("b", deviceplugin.UNHEALTHY)))
    before = ListOfBefore(
        (DeviceOfBefore("a", deviceplugin.HEALTHY, NEAR), DeviceOfBefore("b", deviceplugin.UNHEALTHY))
    )
    assert now.encode() == before.encode()
    assert now.encode() == bytes.fromhex(
        "0a120a016112074865616c7468791a040a0208010a0e0a01621209556e6865616c746879"
    )


def test_a_kubelet_that_does_not_know_them_reads_the_rest():
    """14-PLUG-04: the number is skipped."""
    sent = ListAndWatchResponse((Device("a", deviceplugin.HEALTHY, NEAR, {"model": "k80"}),)).encode()
    assert ListOfBefore.decode(sent) == ListOfBefore((DeviceOfBefore("a", deviceplugin.HEALTHY, NEAR),))


def test_their_number_never_changes():
    """14-PLUG-01: fixed once, far above those in use (1014)."""
    assert Device(properties={"k": "v"}).encode() == bytes.fromhex("b23f060a016b120176")
