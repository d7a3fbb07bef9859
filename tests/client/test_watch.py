"""A watch, from bytes to events."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import Object, WatchChunk, errors
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

    (taken,) = asyncio.run(read(WatchChunk.of(line, lambda: [("DELETED", pod)])))
    assert taken is pod
    pieces = WatchChunk.of(line, lambda: [("DELETED", pod)])
    (parsed,) = asyncio.run(read(pieces[:20], pieces[20:]))  # somebody in between cut it
    assert parsed is not pod and (parsed.name, parsed.resource_version) == ("pod-0", "7")


def test_a_bookmark_is_an_event_with_a_version():
    event = decode(b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12"}}}')
    assert (event.type, event.object.resource_version) == (EventType.BOOKMARK, "12")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(["}", "{", '"', "\\"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=6,
)


@given(
    st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]),
    st.fixed_dictionaries({"metadata": st.fixed_dictionaries({"name": st.text(max_size=3)}), "spec": JSON}),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :")]),
    st.booleans(),
    st.sampled_from([b"", b" ", b"\r"]),
    st.dictionaries(st.sampled_from(["more", "and"]), JSON, max_size=1),
)
def test_an_event_is_the_same_however_it_is_written(type, fields, separators, object_first, end, more):
    """Spaces, the order of the members, members that nobody knows: servers may write them as they like."""
    members = {"type": type, "object": fields, **more}
    if object_first:
        members = dict(reversed(members.items()))
    event = decode(json.dumps(members, separators=separators).encode() + end)
    assert (event.type.value, event.object.name) == (type, fields["metadata"]["name"])
    assert event.object.fields == fields


@pytest.mark.parametrize(
    "object", [b"{}}", b"{},", b'{"metadata":{}', b'{"metadata":{"name":"a"}} x', b"", b'{"spec":[}']
)
def test_a_line_whose_object_is_broken_is_an_error_of_the_server(object):
    """As it would be in any other place of the line."""
    with pytest.raises(errors.Internal):
        decode(b'{"type":"ADDED","object":' + object + b"}")


def test_an_object_whose_metadata_is_odd_is_told_all_the_same():
    """It is whole JSON; what to make of it is the reader's business."""
    event = decode(b'{"type":"ADDED","object":{"metadata":{"name":7}}}')
    assert event.object.fields == {"metadata": {"name": 7}}


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
