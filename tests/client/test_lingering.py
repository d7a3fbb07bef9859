"""Transactions of several tasks: how many are under way, who waits for whom, and what is sent again."""

import asyncio
from collections.abc import Sequence

import pytest

from allot.api import Object, Request, Response, encode, errors, transaction
from allot.client import Client, Write
from allot.client.gathering import BYTES_MAX, LINGER_S, WRITES_MAX, Gathering

from .test_gathering import played

LONG_S = 20


def write(name: str, body: bytes = b"") -> Write:
    return Write("POST", f"/{name}", {}, body)


class Server:
    """Answers a request when it is let go, and each write with its path."""

    def __init__(self) -> None:
        self.sent: list[list[str]] = []
        self.refusals: list[errors.ApiError] = []  # of the next requests, in order
        self.most_at_once = 0
        self._answers: list[asyncio.Event] = []
        self._under_way = 0
        self._is_open = False

    async def send(self, writes: Sequence[Write]) -> list[Object]:
        names = [one.path for one in writes]
        self.sent.append(names)
        refusal = self.refusals.pop(0) if self.refusals else None
        self._under_way += 1
        self.most_at_once = max(self.most_at_once, self._under_way)
        try:
            if not self._is_open:
                self._answers.append(asyncio.Event())
                await self._answers[-1].wait()
        finally:
            self._under_way -= 1
        if refusal is not None:
            raise refusal
        return [Object(encode({"metadata": {"name": name}})) for name in names]

    def answer(self, number: int) -> None:
        self._answers[number].set()

    def open(self) -> None:
        """From now on, and for all who wait, at once."""
        self._is_open = True
        for one in self._answers:
            one.set()


class Clock:
    """Sleeps as long as the story wants."""

    def __init__(self) -> None:
        self.asked_s: list[float] = []
        self._sleepers: list[asyncio.Future[None]] = []

    async def sleep(self, seconds: float) -> None:
        self.asked_s.append(seconds)
        self._sleepers.append(asyncio.get_running_loop().create_future())
        await self._sleepers[-1]

    def wake(self) -> None:
        for one in self._sleepers:
            if not one.done():
                one.set_result(None)


class Here:
    def __init__(self) -> None:
        self.server, self.clock = Server(), Clock()
        self.gathering = Gathering(self.server.send, self.clock.sleep)

    async def ask(self, *names: str, has_time: bool = False, body: bytes = b"") -> "asyncio.Task[list[str]]":
        """Begun, and as far as it gets."""

        async def names_of() -> list[str]:
            writes = [write(name, body) for name in names]
            return [one.name for one in await self.gathering.together(writes, has_time=has_time)]

        task = asyncio.create_task(names_of())
        await turns()
        return task


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def outcomes(*tasks: "asyncio.Task[list[str]]") -> list[object]:
    return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), LONG_S)


# -- at most two under way ------------------------------------------------------------------------------


@played
async def test_two_are_under_way_and_no_third() -> None:
    here = Here()
    tasks = [await here.ask(name) for name in "abcd"]
    assert here.server.sent == [["/a"], ["/b"]]
    here.server.answer(0)
    await turns()
    assert here.server.sent[2:] == [["/c", "/d"]], "those who waited, together, as soon as one is answered"
    tasks += [await here.ask(name) for name in "ef"]
    here.server.open()
    assert await outcomes(*tasks) == [[f"/{name}"] for name in "abcdef"]
    assert here.server.most_at_once == 2 and here.server.sent[3:] == [["/e", "/f"]]


@played
async def test_when_all_is_answered_the_next_two_go_at_once_again() -> None:
    """Who has answered has left: no place is lost, and none is won."""
    here = Here()
    here.server.open()
    await outcomes(*[await here.ask(f"{number}") for number in range(9)])
    here.server._is_open = False
    here.server.sent.clear()
    tasks = [await here.ask(name) for name in "abc"]
    assert here.server.sent == [["/a"], ["/b"]]
    here.server.open()
    await outcomes(*tasks)


# -- those who have time --------------------------------------------------------------------------------


@played
async def test_who_has_time_is_kept_a_moment_and_those_who_have_time_join_it() -> None:
    here = Here()
    tasks = [await here.ask(name, has_time=True) for name in "abc"]
    assert here.server.sent == [] and here.clock.asked_s == [LINGER_S], "one lingers, for all of them"
    here.clock.wake()
    await turns()
    assert here.server.sent == [["/a", "/b", "/c"]]
    here.server.open()
    assert await outcomes(*tasks) == [["/a"], ["/b"], ["/c"]]
    await here.ask("d", has_time=True)
    assert here.clock.asked_s == [LINGER_S, LINGER_S], "and the next one lingers anew"


@played
async def test_who_has_no_time_does_not_wait_for_one_that_lingers() -> None:
    here = Here()
    patient = await here.ask("patient", has_time=True)
    hasty = await here.ask("hasty")
    assert here.server.sent == [["/hasty"]]
    here.server.answer(0)
    assert await outcomes(hasty) == [["/hasty"]] and not patient.done()
    here.clock.wake()
    here.server.open()
    assert await outcomes(patient) == [["/patient"]]


@played
async def test_one_that_lingers_has_a_place() -> None:
    """With another under way that makes two, so the third waits, and goes with the one that lingers."""
    here = Here()
    first = await here.ask("first")
    patient = await here.ask("patient", has_time=True)
    third = await here.ask("third")
    assert here.server.sent == [["/first"]]
    here.clock.wake()
    await turns()
    assert here.server.sent == [["/first"], ["/patient", "/third"]]
    here.server.open()
    assert await outcomes(first, patient, third) == [["/first"], ["/patient"], ["/third"]]


@played
async def test_who_has_time_and_had_to_wait_for_a_place_lingers_no_second_time_for_nobody() -> None:
    """It is sent with those who waited with it; one that lingers by then is left to others."""
    here = Here()
    busy = [await here.ask(name) for name in "ab"]
    later = [await here.ask(name, has_time=True) for name in "cd"]
    here.server.answer(0)
    await turns()
    here.clock.wake()
    await turns()
    here.server.open()
    assert await outcomes(*busy, *later) == [[f"/{name}"] for name in "abcd"]
    assert len(here.clock.asked_s) <= 1 and here.server.sent[2:] == [["/c", "/d"]]


@pytest.mark.parametrize("joins", [False, True])
@played
async def test_one_that_is_ended_while_it_lingers_leaves_its_place_to_those_who_joined(joins: bool) -> None:
    here = Here()
    patient = await here.ask("patient", has_time=True)
    others = [await here.ask("other", has_time=True)] if joins else []
    patient.cancel()
    await turns()
    here.clock.wake()
    await turns()
    assert here.server.sent == ([["/other"]] if joins else []), "nothing of the one that was ended"
    here.server.open()
    assert await outcomes(*others) == [["/other"]] * joins
    asked = len(here.clock.asked_s)
    again = await here.ask("again", has_time=True)
    assert len(here.clock.asked_s) == asked + 1, "nobody lingers any more, so this one does"
    here.clock.wake()
    assert await outcomes(again) == [["/again"]]


@played
@pytest.mark.parametrize("answer", ["refused", "carried out"])
@pytest.mark.parametrize("steps", range(8))
async def test_one_that_is_ended_as_its_answer_comes_is_ended(steps: int, answer: str) -> None:
    """In whichever turn: whoever ended it, a timeout say, waits for its end and not for what was answered."""
    here = Here()
    first, second = await here.ask("a"), await here.ask("b")
    other, ended = await here.ask("other"), await here.ask("ended")
    if answer == "refused":
        here.server.refusals = [errors.Unavailable("not now")]
    here.server.answer(0)
    await turns()
    assert here.server.sent[2:] == [["/other", "/ended"]]
    here.server.answer(2)
    for _ in range(steps):
        await asyncio.sleep(0)
    was_asked = ended.cancel()
    here.server.open()
    await outcomes(first, second, other, ended)
    assert ended.cancelled() == was_asked


@played
async def test_who_has_no_time_is_not_kept_by_the_one_that_sends_for_it() -> None:
    """A patient one was in front of it in the queue, and is told to send for both."""
    here = Here()
    busy = [await here.ask(name) for name in "xy"]
    waiting = [await here.ask("patient", has_time=True), await here.ask("hasty")]
    here.server.answer(0)
    await turns()
    assert here.server.sent[2:] == [["/patient", "/hasty"]] and here.clock.asked_s == []
    here.server.open()
    assert await outcomes(*busy, *waiting) == [["/x"], ["/y"], ["/patient"], ["/hasty"]]


@played
async def test_a_client_keeps_those_who_have_time_and_sends_the_others_at_once() -> None:
    """`Client.gathered` says which is which."""

    class Line:
        def __init__(self) -> None:
            self.bodies: list[bytes] = []

        async def send(self, request: Request) -> Response:
            self.bodies.append(request.body)
            members = request.body.count(b'"path"')
            status = {"resourceVersion": "7", "results": [{"code": 201, "body": {}}] * members}
            return Response(201, encode({"status": status}))

        async def close(self) -> None: ...

    line, clock = Line(), Clock()
    client = Client(line)
    client._gathering._sleep = clock.sleep
    patient = asyncio.ensure_future(client.gathered([write("a")], has_time=True))
    await turns()
    assert line.bodies == [] and clock.asked_s == [LINGER_S]
    await client.gathered([write("b")])
    assert len(line.bodies) == 1
    clock.wake()
    assert len(await asyncio.wait_for(patient, LONG_S)) == 1 and len(line.bodies) == 2


# -- how much at once -----------------------------------------------------------------------------------


@played
async def test_what_lingers_counts_with_those_who_join_it() -> None:
    """In writes: nobody's are divided, so the batch ends before the one that would be too many."""
    here = Here()
    few = WRITES_MAX // 2
    tasks = [await here.ask(*[f"{x}{n}" for n in range(few)], has_time=True) for x in "abc"]
    here.clock.wake()
    await turns()
    assert [len(one) for one in here.server.sent] == [2 * few]
    here.server.open()
    here.clock.wake()
    await turns()
    here.clock.wake()
    assert [len(one) for one in await outcomes(*tasks)] == [few] * 3  # type: ignore[arg-type]
    assert len(here.server.sent[1]) == few


@pytest.mark.parametrize(("size", "most"), [(BYTES_MAX // 3, 3), (BYTES_MAX // 3 + 1, 2), (2 * BYTES_MAX, 1)])
@pytest.mark.parametrize("has_time", [False, True])
@played
async def test_a_batch_is_bounded_in_bytes_and_one_that_is_larger_goes_alone(
    size: int, most: int, has_time: bool
) -> None:
    here = Here()
    if not has_time:
        tasks = [await here.ask(name) for name in "xy"]
        tasks += [await here.ask(name, body=b"." * size) for name in "abc"]
        here.server.answer(0)
    else:
        tasks = [await here.ask(name, has_time=True, body=b"." * size) for name in "abc"]
        here.clock.wake()
    await turns()
    assert len(here.server.sent[-1]) == most
    here.server.open()
    while not all(task.done() for task in tasks):
        here.clock.wake()
        await asyncio.sleep(0)
    assert sorted(name for names in here.server.sent for name in names if name in ("/a", "/b", "/c")) == [
        "/a",
        "/b",
        "/c",
    ], "each once"


# -- what is sent again ---------------------------------------------------------------------------------


def of_member(at: int, error: type[errors.ApiError] = errors.Conflict) -> errors.ApiError:
    return error(f"not {at}", causes=[errors.Cause(transaction.MEMBER, "", f"spec.requests[{at}]")])


async def gathered(here: Here, *refusals: errors.ApiError) -> "tuple[list[object], list[list[str]]]":
    """Three callers with two writes each, sent as one and refused so: what they hear, and what was sent."""
    busy = [await here.ask(name) for name in "xy"]
    tasks = [await here.ask(f"{x}1", f"{x}2") for x in "abc"]
    here.server.refusals[:] = refusals
    here.server.open()
    found = await outcomes(*busy, *tasks)
    return found[2:], here.server.sent[2:]


A, B, C = (["/a1", "/a2"], ["/b1", "/b2"], ["/c1", "/c2"])


@pytest.mark.parametrize(
    "lost",
    [errors.Timeout, errors.Unavailable, errors.TooManyRequests, errors.Internal, errors.Forbidden],
)
@played
async def test_what_may_have_been_carried_out_is_not_sent_again(lost: type[errors.ApiError]) -> None:
    """Everybody hears the same, and each decides for itself."""
    answers, sent = await gathered(Here(), lost("no answer"))
    assert [type(one) for one in answers] == [lost] * 3 and sent == [[*A, *B, *C]]


@pytest.mark.parametrize("whole", [errors.BadRequest, errors.TooLarge])
@played
async def test_what_was_refused_as_a_whole_is_sent_one_by_one(whole: type[errors.ApiError]) -> None:
    """It was not read, or was too much: nothing of it was carried out, and one alone may be fine."""
    answers, sent = await gathered(Here(), whole("of all of it"))
    assert answers == [A, B, C] and sent == [[*A, *B, *C], A, B, C]


@pytest.mark.parametrize(("at", "whose"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 2)])
@played
async def test_who_was_refused_is_asked_for_alone_after_the_others(at: int, whose: int) -> None:
    """Each of its writes names it, and none of its neighbours'."""
    answers, sent = await gathered(Here(), of_member(at))
    others = [one for one in (A, B, C) if one is not (A, B, C)[whose]]
    assert sent[1:] == [[*others[0], *others[1]], (A, B, C)[whose]]
    assert answers == [A, B, C], "by itself it was fine: what was in its way was in the same request"


@played
async def test_when_it_is_refused_alone_as_well_that_is_its_answer_and_nobody_elses() -> None:
    """With all others out of the way, what is left goes first."""
    answers, sent = await gathered(Here(), of_member(2), of_member(3), of_member(0, errors.NotFound))
    assert sent == [[*A, *B, *C], [*A, *C], A, B, C]
    assert isinstance(answers[0], errors.NotFound) and answers[1:] == [B, C]


@pytest.mark.parametrize("lost", [errors.Timeout, errors.Unavailable])
@played
async def test_when_the_others_get_no_answer_the_one_that_was_refused_is_still_asked_for(
    lost: type[errors.ApiError],
) -> None:
    answers, sent = await gathered(Here(), of_member(2), lost("no answer"))
    assert sent == [[*A, *B, *C], [*A, *C], B]
    assert answers[1] == B and [type(answers[at]) for at in (0, 2)] == [lost, lost]


@played
async def test_a_member_that_nobody_has_is_nobodys_fault() -> None:
    """A server that counts otherwise: all hear what it said, and nothing is sent again."""
    answers, sent = await gathered(Here(), of_member(6))
    assert [type(one) for one in answers] == [errors.Conflict] * 3 and len(sent) == 1


@pytest.mark.parametrize("steps", range(6))
@played
async def test_who_is_ended_is_not_sent_or_answered_and_the_order_of_the_others_stays(steps: int) -> None:
    """One of them while it waits, and one at about the moment at which it is told to send for all."""
    here = Here()
    busy = [await here.ask(name) for name in "xy"]
    tasks = [await here.ask(name) for name in "abcde"]
    tasks[2].cancel()
    await turns()
    here.server.answer(0)
    for _ in range(steps):
        await asyncio.sleep(0)
    was_sent = len(here.server.sent) > 2
    tasks[0].cancel()
    await turns()
    here.server.open()
    found = await outcomes(*busy, *tasks)
    assert [type(found[at]) for at in (2, 4)] == [asyncio.CancelledError] * 2
    assert "/c" not in [name for names in here.server.sent for name in names]
    if was_sent:
        assert here.server.sent[2:] == [["/a", "/b", "/d", "/e"]], "and nobody sends it again"
        assert all(isinstance(found[at], errors.Unavailable) for at in (3, 5, 6))
    else:
        assert here.server.sent[2:] == [["/b", "/d", "/e"]]
        assert [found[at] for at in (3, 5, 6)] == [["/b"], ["/d"], ["/e"]]
    assert await outcomes(await here.ask("after")) == [["/after"]]
