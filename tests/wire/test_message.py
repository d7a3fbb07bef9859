"""Our messages against Google's protobuf library, in both directions, and by hand."""

import inspect
from contextlib import suppress
from enum import IntEnum
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.wire import (
    Malformed,
    Message,
    capacity,
    classic,
    cloudprovider,
    cri,
    deviceplugin,
    dra,
    health,
    podresources,
    registration,
)
from wire.independent import foreign, messages

MODULES = {
    "kubelet": (registration, dra, health, podresources),
    "deviceplugin": (deviceplugin,),
    "classic": (classic,),
    "cri": (cri,),
    "cloudprovider": (cloudprovider,),
    "capacity": (capacity,),
}
CONTRACTS = [
    (package, message)
    for package, modules in MODULES.items()
    for module in modules
    for _, message in inspect.getmembers(module, inspect.isclass)
    if issubclass(message, Message) and message is not Message
]
NAMES = [message.__name__ for _, message in CONTRACTS]

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def values(hint: Any, most: int = 2**31 - 1) -> st.SearchStrategy[Any]:
    """Whatever a field may hold. Maps have one entry, since their order is free."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return values(inner[0], 2**64 - 1 if "unsigned" in inner else most)
    if origin is tuple:
        return st.lists(values(inner[0], 2**63 - 1), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(TEXT, values(inner[1]), max_size=1)
    if NoneType in inner:
        return st.none() | values(inner[0])
    if issubclass(hint, Message):
        return made(hint)
    if issubclass(hint, IntEnum):
        return st.sampled_from(hint)
    if hint is int:
        return st.integers(-most - 1 if most < 2**64 - 1 else 0, most)
    if hint is bytes:
        return st.binary(max_size=8)
    if hint is float:
        return st.floats(allow_nan=False)
    return st.booleans() if hint is bool else TEXT


def made(message: type[Message]) -> st.SearchStrategy[Any]:
    hints = get_type_hints(message, include_extras=True)
    fields = {name: values(hints[name]) for name in message.__struct_fields__}
    return st.fixed_dictionaries(fields).map(lambda given: message(**given))


@pytest.mark.parametrize("package", MODULES)
def test_every_message_of_the_contracts_is_written_and_no_other(package):
    ours = {name for (of, _), name in zip(CONTRACTS, NAMES, strict=True) if of == package}
    assert ours == set(messages(package))


@pytest.mark.parametrize(("package", "message"), CONTRACTS, ids=NAMES)
def test_the_bytes_are_those_that_another_library_makes(package, message):
    """MSG1."""

    @settings(max_examples=25)
    @given(made(message))
    def story(value):
        assert value.encode() == foreign(package, value).SerializeToString(deterministic=True)

    story()


@pytest.mark.parametrize(("package", "message"), CONTRACTS, ids=NAMES)
def test_what_another_library_wrote_is_read(package, message):
    @settings(max_examples=25)
    @given(made(message))
    def story(value):
        assert message.decode(foreign(package, value).SerializeToString()) == value

    story()


def test_a_prepare_request_by_hand():
    """Field 1, a message of 2+2 + 2+1 + 2+3 bytes: its namespace, uid and name."""
    request = dra.NodePrepareResourcesRequest((dra.Claim("ns", "u", "abc"),))
    assert request.encode() == bytes.fromhex("0a 0c 0a 02 6e73 12 01 75 1a 03 616263")


def test_an_answer_by_hand():
    """A map entry has its key as field 1 and its value as field 2, also where that is empty."""
    answer = dra.NodePrepareResourcesResponse({"u": dra.NodePrepareResourceResponse()})
    assert answer.encode() == bytes.fromhex("0a 05 0a 01 75 12 00")
    share = dra.Device(pool_name="p", device_name="d", cdi_device_ids=("v/c=d",), share_id="")
    assert share.encode() == bytes.fromhex("12 01 70 1a 01 64 22 05 762f633d64 2a 00")


def test_a_negative_number_has_ten_bytes():
    assert health.DeviceHealth(last_updated_time=-1).encode() == bytes.fromhex("18 ffffffffffffffffff01")


def test_a_price_by_hand():
    """A double has its eight bytes, lowest first; nothing is sent of none, and minus nothing is something."""
    price = cloudprovider.PricingNodePriceResponse
    assert price(1.5).encode() == bytes.fromhex("09 000000000000f83f")
    assert (price(0.0).encode(), price(-0.0).encode()) == (b"", bytes.fromhex("09 0000000000000080"))
    with pytest.raises(Malformed, match="PricingNodePriceResponse: price has 4 bytes"):
        price.decode(bytes.fromhex("0d 00000000"))


def test_a_template_by_hand():
    """Written under the number of before and under today's; slices came later."""
    answer = cloudprovider.NodeGroupTemplateNodeInfoResponse(b"n", b"n", (b"s", b"t"))
    assert answer.encode() == bytes.fromhex("0a 01 6e 12 01 6e 1a 01 73 1a 01 74")


def test_fields_of_newer_peers_are_skipped():
    """MSG2: a number, eight bytes, text and four bytes that nobody knows."""
    more = bytes.fromhex("f801 05  f901 0102030405060708  fa01 02 6869  fd01 01020304")
    claim = dra.Claim("ns", "u", "c")
    assert dra.Claim.decode(more + claim.encode() + more) == claim


def test_a_health_that_nobody_knows_yet_is_unknown():
    assert health.DeviceHealth.decode(bytes.fromhex("10 07")).health is health.Health.UNKNOWN


def test_numbers_are_read_packed_or_one_by_one():
    packed, single = bytes.fromhex("1a 03 01 02 03"), bytes.fromhex("18 01 18 02 18 03")
    for data in (packed, single):
        assert podresources.ContainerResources.decode(data).cpu_ids == (1, 2, 3)


def test_a_message_in_two_pieces_is_one():
    pieces = bytes.fromhex("0a 03 0a 01 70 0a 03 12 01 64")
    found = health.DeviceHealth.decode(pieces).device
    assert found == health.DeviceIdentifier("p", "d") == foreign_device(pieces)


def foreign_device(data: bytes) -> health.DeviceIdentifier:
    read: Any = messages("kubelet")["DeviceHealth"].FromString(data)
    return health.DeviceIdentifier(read.device.pool_name, read.device.device_name)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("0a 05 6e73", "Claim: a field is longer than what is left"),
        ("0a 02 ff fe", "Claim: namespace is not UTF-8"),
        ("08 05", "Claim: namespace has a number where text or a message belongs"),
        ("0a", "Claim: a number ends in the middle"),
        ("0b", "Claim: wire type 3"),
        ("ff" * 11, "Claim: a number is longer than 64 bits"),
    ],
)
def test_what_is_no_message_is_refused_with_its_place(data, words):
    with pytest.raises(Malformed, match=words):
        dra.Claim.decode(bytes.fromhex(data))


@pytest.mark.parametrize(("package", "message"), CONTRACTS, ids=NAMES)
def test_no_bytes_give_another_error(package, message):
    """MSG3."""

    @settings(max_examples=25)
    @given(st.binary(max_size=40))
    def story(data):
        with suppress(Malformed):
            message.decode(data)

    story()
