"""Long answers leave in pieces."""

import asyncio
import contextvars

from hypothesis import given
from hypothesis import strategies as st

from allot.api import Object
from allot.apiserver.requests.pieces import list_response, pieces
from allot.apiserver.requests.turns import Turns
from allot.sim.loop import OWNER, run


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

    async def story():
        turns = Turns()

        async def read(sizes):
            response = await list_response(b"[", objects(sizes), render, b"]", turns)
            return response.body or b"".join([piece async for piece in response.stream])

        assert await read([3, 3]) == b"[xxx,xxx]"
        assert len(await read([700_000, 700_000])) == 1_400_003
        assert (await list_response(b"[", objects([700_000] * 2), render, b"]", turns)).stream is not None
        assert await read([3] * 501) == b"[" + b",".join([b"xxx"] * 501) + b"]"
        assert await read([]) == b"[]"

    asyncio.run(story())


def test_one_piece_is_made_in_a_pass_of_the_loop():
    """However many ask at once: who wants something short waits for one piece, and not for all."""

    async def story():
        turns, made, most = Turns(), 0, 0

        def render(some):
            nonlocal made
            made += 1
            return b",".join(one.raw for one in some)

        async def ask(sizes):
            response = await list_response(b"[", objects(sizes), render, b"]", turns)
            if response.stream is not None:
                async for _ in response.stream:
                    pass

        asking = [asyncio.create_task(ask([400_000, 700_000])) for _ in range(20)]
        asking += [asyncio.create_task(ask([200_000])) for _ in range(20)]
        while not all(task.done() for task in asking):
            before = made
            await asyncio.sleep(0)
            most = max(most, made - before)
        assert made == 60 and most == 1
        before = made
        await asyncio.gather(*(ask([10]) for _ in range(5)))
        assert made == before + 5, "what is short waits for nobody"

    asyncio.run(story())


def test_whoever_leaves_or_stands_still_holds_up_nobody():
    """A client of a made-up world was frozen when its turn came: for six minutes no scheduler got the list
    with which its term begins (seed 17)."""

    async def story():
        loop, turns, served = asyncio.get_running_loop(), Turns(), []

        async def ask(name):
            await turns.take()
            served.append(name)

        def asking(name):
            context = contextvars.copy_context()
            context.run(OWNER.set, name)
            return loop.create_task(ask(name), context=context)

        tasks = [asking(name) for name in ("a", "frozen", "gone", "frozen too", "c", "d")]
        await asyncio.sleep(0)
        loop.freeze("frozen")
        loop.freeze("frozen too")
        tasks[2].cancel()
        await asyncio.sleep(1)
        before = [*served]
        loop.thaw("frozen")
        loop.thaw("frozen too")
        await asyncio.wait(tasks)
        assert before == ["a", "c", "d"] and served == [*before, "frozen", "frozen too"]
        await ask("e")

    run(story())
