"""Long answers leave in pieces.

A piece is bounded in objects and in bytes. Pieces are made in turns (`turns`), so that
everybody else is served between two of them, and of what the client has not read
yet no more than a piece is waiting.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from allot.api import Object, Response

from .turns import Turns

OBJECTS = 500
BYTES = 1024 * 1024


def pieces(objects: Sequence[Object], most: int = OBJECTS, most_bytes: int = BYTES) -> Iterator[slice]:
    """Where to cut: each piece has at least one object, however large."""
    start, size = 0, 0
    for at, object in enumerate(objects):
        if at > start and (at - start == most or size + len(object.stored) > most_bytes):
            yield slice(start, at)
            start, size = at, 0
        size += len(object.stored)
    if start < len(objects):
        yield slice(start, len(objects))


Render = Callable[[Sequence[Object]], bytes]
"""Objects as the items of a list, with commas between them."""


async def list_response(
    head: bytes, objects: Sequence[Object], render: Render, tail: bytes, turns: Turns
) -> Response:
    first = next(pieces(objects), None)
    if first is None or first.stop == len(objects):
        await turns.take_for(objects)
        return Response(200, head + render(objects) + tail)
    return Response(200, stream=_in_pieces(head, objects, render, tail, turns))


async def _in_pieces(
    head: bytes, objects: Sequence[Object], render: Render, tail: bytes, turns: Turns
) -> AsyncIterator[bytes]:
    yield head
    for cut in pieces(objects):
        await turns.take()
        # No name for it here: while it waits to be read, it would be kept twice.
        yield b"," + render(objects[cut]) if cut.start else render(objects[cut])
    yield tail
