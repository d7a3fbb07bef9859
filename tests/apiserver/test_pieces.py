"""Long answers leave in pieces."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from allot.api import Object
from allot.apiserver.pieces import list_response, pieces


def objects(sizes):
    return [Object(b"x" * size) for size in sizes]


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 7), st.integers(1, 100))
def test_pieces_are_all_of_it_in_order_and_within_bounds(sizes, most, most_bytes):
    whole = objects(sizes)
    cut = [whole[piece] for piece in pieces(whole, most, most_bytes)]
    assert [one for piece in cut for one in piece] == whole
    for piece in cut:
        assert 1 <= len(piece) <= most
        assert len(piece) == 1 or sum(len(one.stored) for one in piece) <= most_bytes


def test_few_large_objects_are_streamed_like_many_small_ones():
    render = lambda some: b",".join(one.raw for one in some)  # noqa: E731

    async def read(response):
        return b"".join([piece async for piece in response.stream])

    small = list_response(b"[", objects([3, 3]), render, b"]")
    large = list_response(b"[", objects([700_000, 700_000]), render, b"]")
    many = list_response(b"[", objects([3] * 501), render, b"]")
    assert small.body == b"[xxx,xxx]"
    assert large.stream is not None and len(asyncio.run(read(large))) == 1_400_003
    assert asyncio.run(read(many)) == b"[" + b",".join([b"xxx"] * 501) + b"]"
    assert list_response(b"[", [], render, b"]").body == b"[]"
