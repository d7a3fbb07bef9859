"""SPDY as port-forward needs it: streams and data, however the bytes are cut (SPDY1 to SPDY3)."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import streams

from .test_websocket import CUTS, cut

spdy = streams.spdy


class Client:
    """The other end, as kubectl's library writes it."""

    def __init__(self):
        self._deflate = zlib.compressobj(9, zdict=spdy.DICTIONARY)

    def opens(self, stream, headers, fin=False):
        plain = struct.pack(">I", len(headers))
        for name, value in headers.items():
            for text in (name.encode(), value.encode()):
                plain += struct.pack(">I", len(text)) + text
        block = self._deflate.compress(plain) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return control(1, struct.pack(">IIH", stream, 0, 0) + block, flags=int(fin))


def control(kind, content, flags=0, version=3):
    return struct.pack(">II", 1 << 31 | version << 16 | kind, flags << 24 | len(content)) + content


def together(events):
    """With the data of a stream that came in pieces put together."""
    found = []
    for event in events:
        last = found[-1] if found else None
        same = isinstance(event, spdy.Data) and isinstance(last, spdy.Data) and last.stream == event.stream
        if same and not last.ends:
            found[-1] = spdy.Data(event.stream, last.data + event.data, event.ends)
        else:
            found.append(event)
    return found


def test_both_ends_begin_with_the_same_dictionary():
    """Its checksum is in the first bytes of every peer's headers; another one would not be understood."""
    assert (len(spdy.DICTIONARY), zlib.adler32(spdy.DICTIONARY)) == (1423, 0xE3C6A7C2)


TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
SAID = st.lists(
    st.one_of(
        st.tuples(
            st.just("opens"), st.integers(1, 99), st.dictionaries(TEXT.map(str.lower), TEXT, max_size=4)
        ),
        st.tuples(st.just("data"), st.integers(1, 99), st.binary(max_size=300), st.booleans()),
        st.tuples(st.just("ping"), st.integers(0, 2**31)),
        st.tuples(st.just("reset"), st.integers(1, 99)),
    ),
    max_size=8,
)


@given(SAID, CUTS)
def test_what_is_sent_comes_out_however_it_is_cut(said, sizes):
    client, sent, expected = Client(), b"", []
    for what in said:
        match what:
            case ("opens", stream, headers):
                lower = {name.lower(): value for name, value in headers.items()}
                sent += client.opens(stream, lower)
                expected.append(spdy.Opened(stream, lower, False))
            case ("data", stream, content, ends):
                sent += spdy.data(stream, content, ends=ends)
                expected.append(spdy.Data(stream, content, ends))
            case ("ping", number):
                sent += spdy.ping(number)
                expected.append(spdy.Pinged(number))
            case ("reset", stream):
                sent += spdy.reset(stream, spdy.REFUSED)
                expected.append(spdy.Reset(stream))
    inbox = spdy.Inbox()
    heard = [event for piece in cut(sent, sizes) for event in inbox.feed(piece)]
    assert together(heard) == together(expected)


def test_what_nobody_asked_for_is_read_past():
    """Replies and further headers share the compression of all others, so they are read all the same."""
    client = Client()
    opened = client.opens(1, {"streamtype": "data", "port": "80"})
    later = client.opens(3, {"streamtype": "error", "port": "80"})
    further = control(8, later[8:12] + later[18:])
    inbox = spdy.Inbox()
    events = inbox.feed(
        opened + further + control(9, bytes(8)) + control(4, bytes(4)) + client.opens(5, {"a": "b"})
    )
    assert [event.stream for event in events] == [1, 5]
    assert events[1].headers == {"a": "b"}


def test_a_client_that_goes_away_says_so():
    assert spdy.Inbox().feed(control(7, bytes(8))) == [spdy.GoneAway()]


def test_replies_are_read_by_a_peer():
    outbox, inflate = spdy.Outbox(), zlib.decompressobj(zdict=spdy.DICTIONARY)
    for stream in (1, 3, 5):
        frame = outbox.reply(stream)
        assert struct.unpack(">II", frame[:8]) == (1 << 31 | 3 << 16 | 2, len(frame) - 8)
        assert struct.unpack(">I", frame[8:12]) == (stream,)
        assert inflate.decompress(frame[12:]) == bytes(4)  # no headers


@pytest.mark.parametrize(
    "sent, why",
    [
        (control(6, bytes(4), version=2), "version 2"),
        (control(1, bytes(spdy.BLOCK_BYTES_MAX + 1)), "control frame of"),
        (control(3, b"ab"), "cut off"),
        (control(1, bytes(10) + b"junk"), "cannot be read"),
    ],
    ids=["version", "too long", "short", "junk"],
)
def test_what_breaks_the_protocol_is_refused(sent, why):
    with pytest.raises(spdy.Broken, match=why):
        spdy.Inbox().feed(sent)


def test_headers_that_would_fill_the_memory_are_refused():
    """A megabyte of the same letter is a kilobyte on the wire."""
    sent = Client().opens(1, {"a": "x" * 1_000_000})
    assert len(sent) < spdy.BLOCK_BYTES_MAX
    with pytest.raises(spdy.Broken, match="bytes of headers"):
        spdy.Inbox().feed(sent)


@given(st.binary(max_size=300), CUTS)
def test_whatever_comes_is_read_or_refused(junk, sizes):
    inbox = spdy.Inbox()
    try:
        for piece in cut(junk, sizes):
            inbox.feed(piece)
    except spdy.Broken:
        pass


def test_a_stream_that_one_end_opens_and_the_other_takes():
    client, server = spdy.Outbox(), spdy.Outbox()
    asked = spdy.Inbox().feed(client.open(1, {"streamType": "stdin"}) + client.open(3, {"port": "80"}))
    assert asked == [
        spdy.Opened(1, {"streamtype": "stdin"}, False),
        spdy.Opened(3, {"port": "80"}, False),
    ]
    assert spdy.Inbox().feed(server.reply(1) + server.reply(3)) == [
        spdy.Replied(1, False),
        spdy.Replied(3, False),
    ]
