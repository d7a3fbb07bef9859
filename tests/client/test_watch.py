"""A watch, from bytes to events."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import Object, Told, errors
from allot.client import EventType
from allot.client.watch import Lines, decode, events

NAMES = [f"pod-{n}" for n in range(5)]
LINES = b"".join(
    b'{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"%b"}}}\n' % name.encode() for name in NAMES
)


async def in_chunks(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@given(st.lists(st.integers(0, len(LINES)), max_size=8))
def test_events_do_not_depend_on_where_the_bytes_are_cut(cuts):
    edges = [0, *sorted(cuts), len(LINES)]
    chunks = [LINES[a:b] for a, b in itertools.pairwise(edges)]

    async def read() -> list[str]:
        return [event.object.name async for event in events(in_chunks(chunks))]

    assert asyncio.run(read()) == NAMES


def test_objects_of_a_server_in_the_same_process_are_taken_as_they_are():
    pod = Object(b'{"metadata":{"name":"pod-0"}}', 7)
    line = b'{"type":"DELETED","object":{"metadata":{"resourceVersion":"7","name":"pod-0"}}}\n'

    async def read(*chunks: bytes) -> list[Object]:
        return [event.object async for event in events(in_chunks(chunks))]

    (taken,) = asyncio.run(read(Told.of(line, lambda: [("DELETED", pod)])))
    assert taken is pod
    pieces = Told.of(line, lambda: [("DELETED", pod)])
    (parsed,) = asyncio.run(read(pieces[:20], pieces[20:]))  # somebody in between cut it
    assert parsed is not pod and (parsed.name, parsed.resource_version) == ("pod-0", "7")


def test_a_bookmark_is_an_event_with_a_version():
    event = decode(b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12"}}}')
    assert (event.type, event.object.resource_version) == (EventType.BOOKMARK, "12")


def test_an_error_event_is_raised_as_what_it_says():
    gone = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}'
    with pytest.raises(errors.Expired, match="too old"):
        decode(gone)


@pytest.mark.parametrize("line", [b"nonsense", b"{}", b'{"type":"EXPLODED","object":{}}', b"[1]"])
def test_what_cannot_be_read_is_an_error_of_the_server(line):
    with pytest.raises(errors.Internal):
        decode(line)


def test_a_line_without_end_is_cut_off(monkeypatch):
    monkeypatch.setattr("allot.client.watch.LINE_BYTES_MAX", 100)
    lines = Lines()
    with pytest.raises(errors.TooLarge):
        for _ in range(20):
            lines.feed(b"x" * 10)


def test_leaving_the_loop_closes_the_stream():
    closed = []

    class Stream:
        def __aiter__(self):
            return self

        async def __anext__(self):
            return LINES

        async def aclose(self):
            closed.append(True)

    async def read_one() -> None:
        watching = events(Stream())
        await anext(watching)
        await watching.aclose()

    asyncio.run(read_one())
    assert closed == [True]
