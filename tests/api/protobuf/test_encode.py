"""What is written is what a generated client writes: by hand, field by field, and read back."""

import pytest

from allot.api import protobuf
from allot.fleet import CATALOGUE, fleet

NODE, SLICE = "io.k8s.api.core.v1.Node", "io.k8s.api.resource.v1.ResourceSlice"


def test_a_node_by_hand():
    """metadata: name, labels; spec: a taint; status: allocatable, a quantity being a message of its text."""
    node = {
        "metadata": {"name": "n", "labels": {"a": "b"}},
        "spec": {"taints": [{"key": "k", "effect": "E"}], "unschedulable": True},
        "status": {"allocatable": {"cpu": "4"}},
    }
    assert protobuf.encode_message(node, NODE) == bytes.fromhex(
        "0a 0b  0a01 6e  5a06 0a0161 12016212 0a  2001  2a06 0a016b 1a01451a 0c  120a 0a03 637075 1203 0a0134"
    )


def test_times_numbers_and_choices_by_hand():
    event = {"metadata": {"creationTimestamp": "1970-01-01T00:00:05Z"}, "eventTime": "1970-01-01T00:00:01.5Z"}
    encoded = protobuf.encode_message(event, "io.k8s.api.events.v1.Event")
    assert encoded == bytes.fromhex("0a 04 4202 0805  12 08 0801 10 80cab5ee01")
    port = {"containerPort": 80, "name": "x"}
    assert protobuf.encode_message(port, "io.k8s.api.core.v1.ContainerPort") == bytes.fromhex("0a0178 1850")
    action = "io.k8s.api.core.v1.HTTPGetAction"
    assert protobuf.encode_message({"port": "web"}, action) == bytes.fromhex("1207 0801 1a03 776562")
    assert protobuf.encode_message({"port": 8}, action) == bytes.fromhex("1204 0800 1008")


@pytest.mark.parametrize("name", CATALOGUE)
def test_what_a_fleet_is_made_of_comes_back_as_it_was(name: str):
    made = fleet(name, 2)
    for member in made.members():
        assert _back(member.node, NODE) == _said(member.node)
        for one in member.slices:
            assert _back(one, SLICE) == _said(one)


def _back(fields, name):
    return protobuf.decode_message(protobuf.encode_message(fields, name), name)


def _said(fields):
    """Without what protobuf does not say: the kind, what is empty anyhow, and what has no number (KEP-14)."""
    return {key: _kept(value) for key, value in fields.items() if key not in ("apiVersion", "kind")}


def _kept(value):
    if isinstance(value, dict):
        said = {key: one for key, one in value.items() if key != "computeResources"}
        return {key: _kept(one) for key, one in said.items() if one not in ({}, [], None)}
    return [_kept(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("junk", [b"\x0a", b"\xff\xff", b"\x0a\x02\x0a\x05", b"\x08\x01"])
def test_junk_is_unreadable_and_nothing_else(junk: bytes):
    with pytest.raises(protobuf.Unreadable):
        protobuf.decode_message(junk, NODE)
