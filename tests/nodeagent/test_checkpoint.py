"""The checkpoint: what it says comes back, and junk is an error that says what to do."""

import json
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.node import ClaimRef
from allot.nodeagent.checkpoint import BadCheckpoint, decode, encode
from allot.nodeagent.told import Device, Entry, Part

TEXT = st.text(max_size=8)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
DEVICES = st.builds(Device, TEXT, TEXT, TEXTS, TEXTS, TEXT)
PARTS = st.builds(Part, st.frozensets(TEXT, max_size=2), st.lists(DEVICES, max_size=2).map(tuple))
ENTRIES = st.builds(
    Entry,
    st.builds(ClaimRef, TEXT, TEXT, TEXT),
    st.dictionaries(TEXT, PARTS, max_size=2),
    st.frozensets(TEXT, max_size=3),
)


def sealed(data: object) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    return json.dumps({"Data": text, "Checksum": crc32(text.encode())}).encode()


@given(st.lists(ENTRIES, max_size=4))
def test_what_is_written_is_read(entries):
    assert decode(encode(entries)) == tuple(entries)


def test_it_is_the_file_that_a_kubelet_writes():
    """Field by field: another agent on the same root goes on with it."""
    device = Device("pool", "gpu-0", ("req",), ("vendor.com/gpu=0",), "share")
    one = Entry(ClaimRef("u", "ns", "c"), {"gpu.example.com": Part(devices=(device,))}, frozenset({"p"}))
    written = json.loads(encode([one]))
    assert written["Checksum"] == crc32(written["Data"].encode())
    assert json.loads(written["Data"]) == {
        "kind": "DRACheckpoint",
        "apiVersion": "checkpoint.dra.kubelet.k8s.io/v1",
        "ClaimInfoStateList": [
            {
                "ClaimUID": "u",
                "ClaimName": "c",
                "Namespace": "ns",
                "PodUIDs": ["p"],
                "DriverState": {
                    "gpu.example.com": {
                        "Devices": [
                            {
                                "PoolName": "pool",
                                "DeviceName": "gpu-0",
                                "RequestNames": ["req"],
                                "CDIDeviceIDs": ["vendor.com/gpu=0"],
                                "ShareID": "share",
                            }
                        ]
                    }
                },
            }
        ],
    }


def test_nulls_are_empty():
    """Go writes them for lists that have nothing."""
    claim = {"ClaimUID": "u", "ClaimName": "c", "Namespace": "n", "PodUIDs": None, "DriverState": None}
    data = {"kind": "DRACheckpoint", "apiVersion": "checkpoint.dra.kubelet.k8s.io/v1"}
    assert decode(sealed({**data, "ClaimInfoStateList": [claim]})) == (Entry(ClaimRef("u", "n", "c"), {}),)
    assert decode(sealed({**data, "ClaimInfoStateList": None})) == ()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not the JSON of a checkpoint"),
        (b"\xff\xfe", "not the JSON of a checkpoint"),
        (b"[]", "not the JSON of a checkpoint"),
        (encode([])[:-9], "not the JSON of a checkpoint"),
        (encode([]).replace(b"DRACheckpoint", b"dracheckpoint"), "the checksum is"),
        (sealed("junk"), "its data is not a JSON object"),
        (sealed({}), "None of None"),
        (
            sealed({"kind": "DRACheckpoint", "apiVersion": "v9"}),
            "'DRACheckpoint' of 'v9', and this agent reads",
        ),
        (
            sealed(
                {
                    "kind": "DRACheckpoint",
                    "apiVersion": "checkpoint.dra.kubelet.k8s.io/v1",
                    "ClaimInfoStateList": [1],
                }
            ),
            "not a list of claims",
        ),
    ],
)
def test_junk_is_an_error_that_says_what_to_do(content, says):
    with pytest.raises(BadCheckpoint, match=says) as bad:
        decode(content)
    assert "drain the node, remove the file, and start again" in str(bad.value)


@given(st.binary(max_size=64))
def test_no_junk_is_anything_but_an_error(content):
    with pytest.raises(BadCheckpoint):
        decode(content)
