"""exec and attach as numbered channels."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import streams

from .test_websocket import CUTS, cut

channels, websocket = streams.channels, streams.websocket


def said(*messages, sizes=(1000,)):
    """What a server reads of these messages of a client."""
    inbox, reading = websocket.Inbox(), channels.Reading()
    sent = b"".join(websocket.frame(websocket.BINARY, message, b"mask") for message in messages)
    return [
        one for piece in cut(sent, list(sizes)) for event in inbox.feed(piece) for one in reading.take(event)
    ]


@given(st.lists(st.binary(max_size=300), max_size=5), CUTS)
def test_input_arrives_whole_and_then_its_end(inputs, sizes):
    heard = said(*(b"\0" + data for data in inputs), b"\xff\0", sizes=sizes)
    assert heard[-1] == channels.InputEnded()
    assert b"".join(one.data for one in heard[:-1]) == b"".join(inputs)


@given(CUTS)
def test_sizes_of_the_terminal_are_read_however_they_are_cut(sizes):
    heard = said(b'\4{"Width":132,"Height":43}', b"\0x", b'\4{"Width":80,"Height":24}', sizes=sizes)
    assert heard == [channels.Resized(132, 43), channels.Input(b"x"), channels.Resized(80, 24)]


def test_a_size_that_no_terminal_has_is_let_pass():
    assert said(b'\4{"Width":0,"Height":24}', b'\4{"Width":99999,"Height":24}', b"\4{}") == []


@pytest.mark.parametrize(
    "message", [b"\1out", b"\3", b"\7", b"\4no size", b'\4{"Width":"a"}', b"\4" + b" " * 2000]
)
def test_what_a_client_cannot_say_is_refused(message):
    with pytest.raises(websocket.Broken):
        said(message)


@pytest.mark.parametrize("message", [b"", b"\0", b"\xff\1", b"\xff"])
def test_nothing_is_made_of_nothing(message):
    assert said(message) == []


def of_the_server(frame):
    [piece] = websocket.Inbox(masked=False).feed(frame)
    return piece.data[0], piece.data[1:]


def test_how_a_command_ended_is_a_status_that_kubectl_reads():
    channel, status = of_the_server(channels.ended(0))
    assert (channel, json.loads(status)["status"]) == (channels.ERROR, "Success")
    _, status = of_the_server(channels.ended(42))
    failure = json.loads(status)
    assert (failure["status"], failure["reason"]) == ("Failure", "NonZeroExitCode")
    assert failure["details"]["causes"] == [{"reason": "ExitCode", "message": "42"}]
    _, status = of_the_server(channels.failed("no such container"))
    assert json.loads(status)["message"] == "no such container"
    assert of_the_server(channels.message(channels.STDERR, b"oops")) == (2, b"oops")
