"""Transactions of several tasks are sent as one, and each is answered as if it had been alone."""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import Any, ParamSpec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import Object, encode, errors, transaction
from allot.client import Write
from allot.client.gathering import UNDER_WAY_MAX, WRITES_MAX, Gathering

P = ParamSpec("P")


def played(story: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that is a coroutine."""

    @wraps(story)
    def play(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(story(*args, **kwargs))

    return play


def write(name: str) -> Write:
    return Write("POST", f"/{name}", {})


class Server:
    """Answers each write with its path; refuses what contains a word it does not like."""

    def __init__(self, refuses: str = "no", most: int = 1000, at_once: int = 1 << 30) -> None:
        self.sent: list[list[str]] = []
        self.done: list[str] = []
        self.gate = asyncio.Event()  # for all but the first few
        self.is_held = asyncio.Event()
        self._at_once = at_once
        self._refuses = refuses
        self._most = most

    async def send(self, writes: Sequence[Write]) -> list[Object]:
        names = [one.path for one in writes]
        self.sent.append(names)
        if len(self.sent) > self._at_once:
            self.is_held.set()
            await self.gate.wait()
        await asyncio.sleep(0)
        if len(names) > self._most:
            raise errors.TooLarge("too much")
        for at, name in enumerate(names):
            if self._refuses in name:
                cause = errors.Cause(transaction.MEMBER, "", f"spec.requests[{at}]")
                raise errors.Conflict(f"not {name}", causes=[cause])
        self.done += names
        return [Object(encode({"metadata": {"name": name}})) for name in names]


async def ask(gathering: Gathering, *names: str) -> list[str] | str:
    try:
        return [one.name for one in await gathering.together([write(name) for name in names])]
    except errors.ApiError as refused:
        return str(refused)


@played
async def test_nobody_waits_while_nothing_is_under_way() -> None:
    server = Server()
    assert await ask(Gathering(server.send), "a", "b") == ["/a", "/b"]
    assert server.sent == [["/a", "/b"]]


@played
async def test_those_who_would_wait_are_sent_as_one_and_each_hears_of_its_own() -> None:
    server = Server()
    gathering = Gathering(server.send)
    answers = await asyncio.gather(*(ask(gathering, f"{n}a", f"{n}b") for n in range(UNDER_WAY_MAX + 3)))
    assert answers == [[f"/{n}a", f"/{n}b"] for n in range(UNDER_WAY_MAX + 3)]
    assert len(server.sent) == UNDER_WAY_MAX + 1
    assert server.sent[-1] == [f"/{n}{x}" for n in range(UNDER_WAY_MAX, UNDER_WAY_MAX + 3) for x in "ab"]


@played
async def test_who_is_refused_is_refused_alone_and_in_the_words_for_it_alone() -> None:
    server = Server()
    gathering = Gathering(server.send)
    before = [ask(gathering, f"first{n}") for n in range(UNDER_WAY_MAX)]
    answers = await asyncio.gather(
        *before, ask(gathering, "a"), ask(gathering, "fine", "no"), ask(gathering, "b")
    )
    assert answers[UNDER_WAY_MAX:] == [["/a"], "not /no", ["/b"]]
    assert server.sent[-1] == ["/fine", "/no"], "its own index is that of its own writes"
    assert "/fine" not in server.done


@played
async def test_what_is_too_much_together_is_sent_one_by_one() -> None:
    server = Server(most=1)
    gathering = Gathering(server.send)
    answers = await asyncio.gather(*(ask(gathering, f"{n}") for n in range(UNDER_WAY_MAX + 4)))
    assert answers == [[f"/{n}"] for n in range(UNDER_WAY_MAX + 4)]


@played
async def test_what_is_too_busy_together_is_sent_one_by_one() -> None:
    """The one object that always moves is somebody's; the others go through without it."""
    server = Server()

    async def send(writes: Sequence[Write]) -> list[Object]:
        if len(writes) > 1 or writes[0].path == "/moves":
            await asyncio.sleep(0)
            raise errors.TooManyRequests("busy", group=transaction.GROUP, kind="transactions")
        return await server.send(writes)

    gathering = Gathering(send)
    before = [ask(gathering, f"first{n}") for n in range(UNDER_WAY_MAX)]
    answers = await asyncio.gather(*before, *(ask(gathering, name) for name in ("moves", "a", "b")))
    assert answers[UNDER_WAY_MAX:] == ["busy", ["/a"], ["/b"]]


@played
async def test_a_server_that_has_too_much_to_do_is_not_asked_again_for_each() -> None:
    sent = []

    async def send(writes: Sequence[Write]) -> list[Object]:
        sent.append(len(writes))
        await asyncio.sleep(0)
        raise errors.TooManyRequests("later")

    gathering = Gathering(send)
    answers = await asyncio.gather(*(ask(gathering, f"{n}") for n in range(UNDER_WAY_MAX + 3)))
    assert set(map(str, answers)) == {"later"} and sent == [1] * UNDER_WAY_MAX + [3]


@played
async def test_a_batch_is_bounded() -> None:
    server = Server()
    gathering = Gathering(server.send)
    await asyncio.gather(*(ask(gathering, f"{n}") for n in range(3 * WRITES_MAX)))
    assert max(map(len, server.sent)) == WRITES_MAX
    assert len(server.done) == 3 * WRITES_MAX


@played
async def test_no_answer_is_no_answer_for_all_of_them() -> None:
    async def lost(writes: Sequence[Write]) -> list[Object]:
        await asyncio.sleep(0)
        raise errors.Timeout("no answer")

    gathering = Gathering(lost)
    answers = await asyncio.gather(*(ask(gathering, f"{n}") for n in range(UNDER_WAY_MAX + 3)))
    assert set(map(str, answers)) == {"no answer"}


@pytest.mark.parametrize("ended", range(UNDER_WAY_MAX + 3))
@played
async def test_whoever_is_ended_leaves_nobody_waiting(ended: int) -> None:
    server = Server(at_once=0)
    gathering = Gathering(server.send)
    tasks = [asyncio.create_task(ask(gathering, f"{n}")) for n in range(UNDER_WAY_MAX + 3)]
    await asyncio.sleep(0)
    tasks[ended].cancel()
    await asyncio.sleep(0)
    server.gate.set()
    answers = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
    assert isinstance(answers[ended], asyncio.CancelledError)
    for at, answer in enumerate(answers):
        assert at == ended or answer == [f"/{at}"]
    assert await asyncio.wait_for(ask(gathering, "after"), 10) == ["/after"]


@played
async def test_when_the_sender_is_ended_the_others_hear_that_nothing_is_known() -> None:
    server = Server(at_once=UNDER_WAY_MAX)
    gathering = Gathering(server.send)
    first = [asyncio.create_task(ask(gathering, f"first{n}")) for n in range(UNDER_WAY_MAX)]
    later = [asyncio.create_task(ask(gathering, f"{n}")) for n in range(3)]
    await asyncio.gather(*first)
    await server.is_held.wait()
    later[0].cancel()  # it sends for the three
    answers = await asyncio.wait_for(asyncio.gather(*later, return_exceptions=True), 10)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert all("was ended" in str(answer) for answer in answers[1:])
    server.gate.set()
    assert await asyncio.wait_for(ask(gathering, "after"), 10) == ["/after"]


parcels = st.lists(st.lists(st.sampled_from(["a", "b", "no", "c"]), min_size=1, max_size=4), max_size=12)


@settings(max_examples=60, deadline=None)
@given(parcels, st.integers(1, 12), st.sets(st.integers(0, 11), max_size=3))
def test_everybody_is_answered_as_alone(asked: list[list[str]], most: int, ended: set[int]) -> None:
    """GATHER1, GATHER2: whatever is asked, refused, too much, or given up on."""

    async def story() -> None:
        server = Server(most=max(most, *map(len, asked)) if asked else most)
        gathering = Gathering(server.send)
        tasks = [
            asyncio.create_task(ask(gathering, *(f"{n}-{x}" for x in names))) for n, names in enumerate(asked)
        ]
        for turns in sorted(ended):
            await asyncio.sleep(0)
            if turns < len(tasks):
                tasks[turns].cancel()
        answers = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
        for n, (names, answer) in enumerate(zip(asked, answers, strict=True)):
            if isinstance(answer, asyncio.CancelledError) or "was ended" in str(answer):
                assert ended
            elif "no" in names:
                assert answer == f"not /{n}-no"
            else:
                assert answer == [f"/{n}-{x}" for x in names]
        assert all(count == 1 for count in map(server.done.count, server.done)) or any(
            len(set(names)) < len(names) for names in asked
        )
        for names in server.sent:
            numbers = [int(name[1:].split("-")[0]) for name in names]
            assert numbers == sorted(numbers, key=numbers.index), "GATHER2"

    asyncio.run(story())


@played
async def test_who_is_ended_while_it_sends_for_others_leaves_no_answer_of_its_own_lying_about() -> None:
    """Nobody would read it, and the event loop would complain of that."""
    under_way, alone = asyncio.Event(), asyncio.Event()

    async def send(writes: Sequence[Write]) -> list[Object]:
        names = [one.path for one in writes]
        if "/hold" in names:
            await under_way.wait()
            return [Object(b"{}") for _ in names]
        if names == ["/second"]:
            alone.set()
            await asyncio.Event().wait()
        cause = errors.Cause(transaction.MEMBER, "", "spec.requests[0]")
        raise errors.Conflict(f"not {names[0]}", causes=[cause])

    gathering = Gathering(send)
    holding = [asyncio.create_task(gathering.together([write("hold")])) for _ in range(UNDER_WAY_MAX)]
    await asyncio.sleep(0)
    first, second, third = (
        asyncio.create_task(gathering.together([write(name)])) for name in ("first", "second", "third")
    )
    await asyncio.sleep(0)
    under_way.set()
    await asyncio.gather(*holding)
    await asyncio.wait_for(alone.wait(), 10)
    first.cancel()
    outcomes = await asyncio.gather(first, second, third, return_exceptions=True)
    assert [*map(type, outcomes)] == [asyncio.CancelledError, errors.Unavailable, errors.Conflict]
    unread = [one for one in gc.get_objects() if isinstance(one, asyncio.Future) and one._log_traceback]
    assert unread == []
