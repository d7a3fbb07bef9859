"""Bodies that generated clients send.

The bytes are built here by hand, field by field, so that what is tested is the
wire format and not our own encoder.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import protobuf

TYPES = {
    ("v1", "Pod"): "io.k8s.api.core.v1.Pod",
    ("v1", "ConfigMap"): "io.k8s.api.core.v1.ConfigMap",
    ("apps/v1", "Deployment"): "io.k8s.api.apps.v1.Deployment",
}


def varint(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def piece(field, value):
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def sent(api_version, kind, message):
    return b"k8s\x00" + piece(1, piece(1, api_version) + piece(2, kind)) + piece(2, message)


def read(body):
    return decoded(body).fields


def decoded(body):
    return protobuf.decode_object(body, lambda version, kind: TYPES.get((version, kind)))


def test_a_config_map_as_kubectl_sends_it():
    """Fields that are no pointers are always sent; empty ones mean nothing."""
    metadata = piece(1, "a") + piece(2, "") + piece(3, "") + piece(8, b"") + number(7, 0)
    message = (
        piece(1, metadata)
        + piece(2, piece(1, "key") + piece(2, "value"))
        + piece(3, piece(1, "b") + piece(2, b"\xff"))
    )
    assert read(sent("v1", "ConfigMap", message)) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "data": {"key": "value"},
        "binaryData": {"b": "/w=="},
    }


def test_zero_behind_a_pointer_is_a_value():
    """kubectl create deployment --replicas=0 must not become one replica."""
    fields = read(sent("apps/v1", "Deployment", piece(2, number(1, 0) + number(5, 0))))
    assert fields["spec"] == {"replicas": 0}


def test_messages_that_stand_for_one_value():
    quantity, time = piece(1, "500m"), number(1, 1_700_000_000)
    port = number(1, 1) + number(2, 0) + piece(3, "http")
    probe = piece(1, piece(2, piece(1, "/ok") + piece(2, port)))  # the handler is laid into the probe
    resources = piece(1, piece(1, "cpu") + piece(2, quantity))
    container = piece(1, "main") + piece(8, resources) + piece(10, probe)
    pod = piece(1, piece(1, "p") + piece(8, time)) + piece(2, piece(2, container))
    fields = read(sent("v1", "Pod", pod))
    assert fields["metadata"]["creationTimestamp"] == "2023-11-14T22:13:20Z"
    found = fields["spec"]["containers"][0]
    assert found["resources"] == {"limits": {"cpu": "500m"}}
    assert found["livenessProbe"] == {"httpGet": {"path": "/ok", "port": "http"}}


def test_negative_numbers_come_as_ten_bytes():
    toleration = number(5, (1 << 64) - 7)
    fields = read(sent("v1", "Pod", piece(2, piece(22, toleration))))
    assert fields["spec"]["tolerations"] == [{"tolerationSeconds": -7}]


def test_a_field_that_is_not_known_is_left_out_and_named_by_its_number():
    """S3. It has no other name here; each is named once, however often it comes."""
    body = sent("v1", "ConfigMap", piece(4000, "x") + piece(4000, "y"))
    assert decoded(body) == ({"apiVersion": "v1", "kind": "ConfigMap"}, (), ("ConfigMap.#4000",))


def test_kinds_without_numbers_are_refused():
    with pytest.raises(protobuf.Unreadable, match="no protobuf form is known"):
        read(sent("example.com/v1", "Widget", b""))


@given(st.binary(max_size=200), st.sampled_from(sorted(TYPES)))
def test_no_bytes_break_the_reader(noise, kind):
    for body in (noise, b"k8s\x00" + noise, sent(*kind, noise)):
        try:
            assert isinstance(read(body), dict)
        except protobuf.Unreadable as refused:
            assert str(refused)
