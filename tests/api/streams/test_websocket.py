"""WebSocket frames: the same messages, however the bytes are cut (WS1 to WS3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import streams

websocket = streams.websocket

MESSAGES = st.lists(
    st.one_of(
        st.tuples(st.just(websocket.BINARY), st.binary(max_size=400)),
        st.tuples(st.just(websocket.PING), st.binary(max_size=125)),
    ),
    max_size=6,
)
CUTS = st.lists(st.integers(1, 90), min_size=1, max_size=30)


def cut(data, sizes):
    """The bytes in pieces of these sizes, over and over."""
    at, number = 0, 0
    while at < len(data):
        size = sizes[number % len(sizes)]
        yield data[at : at + size]
        at, number = at + size, number + 1


def told(events):
    """Whole messages, of the pieces in which they came."""
    found, data = [], None
    for event in events:
        if isinstance(event, websocket.Control):
            found.append((event.opcode, event.payload))
            continue
        assert event.begins == (data is None)
        data = (data or b"") + event.data
        if event.ends:
            found.append((websocket.BINARY, data))
            data = None
    return found


@given(MESSAGES, CUTS, st.binary(min_size=4, max_size=4))
def test_what_is_sent_comes_out_however_it_is_cut(messages, sizes, mask):
    inbox = websocket.Inbox()
    sent = b"".join(websocket.frame(opcode, payload, mask) for opcode, payload in messages)
    assert told(event for piece in cut(sent, sizes) for event in inbox.feed(piece)) == messages


@given(st.binary(max_size=3000), CUTS, CUTS)
def test_a_message_in_several_frames_is_one_and_pings_may_come_between(payload, frames, sizes):
    """A ping in the middle of a message is told of in its place, and does not end the message."""
    pieces = list(cut(payload, frames)) or [b""]
    ping = websocket.frame(websocket.PING, b"?", b"abcd")
    sent = b""
    for number, piece in enumerate(pieces):
        frame = bytearray(websocket.frame(websocket.BINARY if number == 0 else 0, piece, b"wxyz"))
        if number < len(pieces) - 1:
            frame[0] &= 0x7F
        sent += bytes(frame) + ping
    inbox = websocket.Inbox()
    events = [event for piece in cut(sent, sizes) for event in inbox.feed(piece)]
    pings = [event for event in events if isinstance(event, websocket.Control)]
    data = [event for event in events if isinstance(event, websocket.Piece)]
    assert len(pings) == len(pieces)
    assert told(data) == [(websocket.BINARY, payload)]


def test_a_long_frame_is_handed_on_as_it_arrives():
    """WS2: nobody can make a server hold what it announces."""
    inbox = websocket.Inbox()
    head = bytes((0x82, 0x80 | 127)) + (1 << 40).to_bytes(8, "big") + b"\0\0\0\0"
    assert inbox.feed(head) == []
    for number in range(3):
        [piece] = inbox.feed(b"x" * 1000)
        assert piece == websocket.Piece(b"x" * 1000, begins=number == 0, ends=False)


@pytest.mark.parametrize(
    "sent, why",
    [
        (websocket.frame(websocket.BINARY, b"x"), "not masked"),
        (b"\xc2\x80abcd", "extension"),
        (b"\x83\x80abcd", "kind 3"),
        (b"\x80\x80abcd", "kind 0"),
        (b"\x09\x80abcd", "control"),
        (b"\x89\xfe\x00\x7eabcd", "control"),
        (b"\x02\x80abcd\x82\x80abcd", "kind 2"),
    ],
    ids=[
        "unmasked",
        "extension",
        "unknown",
        "continues nothing",
        "ping in parts",
        "long ping",
        "begins twice",
    ],
)
def test_what_breaks_the_protocol_is_refused(sent, why):
    with pytest.raises(websocket.Broken, match=why):
        websocket.Inbox().feed(sent)


@given(st.binary(max_size=200), CUTS)
def test_whatever_comes_is_read_or_refused(junk, sizes):
    inbox = websocket.Inbox()
    try:
        for piece in cut(junk, sizes):
            inbox.feed(piece)
    except websocket.Broken:
        pass


def test_the_handshake_is_that_of_the_standard():
    asked = {
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        "sec-websocket-version": "13",
        "sec-websocket-protocol": "other, v4.channel.k8s.io",
    }
    answer = dict(websocket.accept(asked, ["v5.channel.k8s.io", "v4.channel.k8s.io"]))
    assert answer["Sec-WebSocket-Accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert answer["Sec-WebSocket-Protocol"] == "v4.channel.k8s.io"
    with pytest.raises(websocket.Broken, match=r"the request asks for other, v4\.channel\.k8s\.io"):
        websocket.accept(asked, ["v5.channel.k8s.io"])
    with pytest.raises(websocket.Broken, match="Sec-WebSocket-Key"):
        websocket.accept({"sec-websocket-protocol": "v5.channel.k8s.io"}, ["v5.channel.k8s.io"])


def test_a_websocket_is_asked_for_by_two_headers():
    assert websocket.is_asked_for({"connection": "keep-alive, Upgrade", "upgrade": "WebSocket"})
    assert not websocket.is_asked_for({"connection": "Upgrade", "upgrade": "SPDY/3.1"})
    assert not websocket.is_asked_for({"upgrade": "websocket"})
