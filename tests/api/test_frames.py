"""Frames come out as they went in, however the bytes between were cut."""

import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import WatchChunk, frames
from allot.api.frames import Answer, Ask, Broken, Frame, Inbox, Meet, Outbox, TooLong, Turns

texts = st.text(max_size=20)
pairs = st.dictionaries(texts, texts, max_size=3)
numbers = st.integers(0, 2**64 - 1)
bodies = st.binary(max_size=300)

asks = st.builds(Ask, st.integers(0, 2**32), texts, texts, pairs, pairs, bodies)
answers = st.builds(
    Answer, st.integers(100, 599), bodies, texts, st.lists(st.tuples(texts, texts), max_size=3).map(tuple),
    st.booleans(),
)  # fmt: skip
meets = st.builds(
    Meet, texts, st.lists(texts, max_size=3).map(tuple), texts,
    st.dictionaries(texts, st.lists(texts, max_size=2).map(tuple), max_size=2),
)  # fmt: skip
sent = st.one_of(
    st.tuples(st.just(frames.ASK), numbers, asks),
    st.tuples(st.just(frames.ANSWER), numbers, answers),
    st.tuples(st.just(frames.MEET), numbers, meets),
    st.tuples(st.just(frames.PIECE), numbers, bodies),
)
READ = {frames.ASK: frames.read_ask, frames.ANSWER: frames.read_answer, frames.MEET: frames.read_meet}


class Wire:
    """An outbox, and what it has written."""

    def __init__(self, limit: int = 1 << 20) -> None:
        self.writes: list[bytes] = []
        self.due: list = []
        self.outbox = Outbox(lambda ready: self.writes.append(bytes(ready)), self.due.append, limit)

    def put(self, kind, number, what) -> None:
        if isinstance(what, bytes):
            self.outbox.raw(kind, number, what)
        else:
            self.outbox.head(kind, number, what)

    def turn(self) -> None:
        """The event loop's turn is over."""
        due, self.due[:] = list(self.due), []
        for call in due:
            call()


def read(frame):
    return frame.kind, frame.number, READ.get(frame.kind, bytes)(frame.payload)


@given(st.lists(sent, max_size=6), st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_frames_survive_any_cutting_of_the_bytes(messages, cuts):
    """FRAME1. The pattern of cuts repeats until the bytes are used up."""
    wire = Wire()
    for message in messages:
        wire.put(*message)
    wire.turn()
    stream, inbox, seen, turn = b"".join(wire.writes), Inbox(1 << 20), [], 0
    while stream:
        size = cuts[turn % len(cuts)]
        seen += [read(frame) for frame in inbox.feed(stream[:size])]
        stream, turn = stream[size:], turn + 1
    assert seen == messages
    assert inbox.between


@given(st.binary(max_size=200))
def test_bytes_that_are_no_frames_are_refused_in_a_way_that_is_expected(noise):
    """Whoever reads them ends the connection; nothing else may come up."""
    try:
        for frame in Inbox(1000).feed(noise):
            for reading in READ.values():
                reading(frame.payload)
    except (Broken, msgspec.MsgspecError):
        pass


def test_what_becomes_ready_in_one_turn_leaves_in_one_write():
    wire = Wire()
    for number in range(5):
        wire.put(frames.PIECE, number, b"x")
    assert wire.writes == [] and len(wire.due) == 1
    wire.turn()
    assert len(wire.writes) == 1 and len(Inbox(10).feed(wire.writes[0])) == 5
    wire.put(frames.PIECE, 6, b"x")
    wire.turn()
    assert len(wire.writes) == 2


@pytest.mark.parametrize("arriving", [1, 4, 13])
def test_a_frame_over_the_limit_is_refused_by_its_length(arriving):
    """FRAME2. Before its first byte of payload is there, whether or not the prefix comes in one piece."""
    prefix = struct.pack(">IBQ", 1001, frames.ASK, 1)
    inbox = Inbox(1000)
    with pytest.raises(Broken, match="1001"):
        for at in range(0, len(prefix), arriving):
            inbox.feed(prefix[at : at + arriving])


def test_a_frame_that_would_not_be_taken_does_not_leave():
    wire = Wire(limit=100)
    wire.put(frames.PIECE, 1, b"before")
    with pytest.raises(TooLong):
        wire.put(frames.ASK, 2, Ask(1, "POST", "/", {}, {}, b"x" * 200))
    wire.put(frames.PIECE, 3, b"after")
    wire.turn()
    assert [frame.number for frame in Inbox(100).feed(wire.writes[0])] == [1, 3]


def test_bodies_of_other_types_travel_as_bytes():
    wire = Wire()
    wire.put(frames.ANSWER, 1, Answer(200, WatchChunk(b"told"), "", (), False))
    wire.turn()
    (frame,) = Inbox(100).feed(wire.writes[0])
    assert frames.read_answer(frame.payload).body == b"told"


def test_a_count_of_another_size_is_broken():
    wire = Wire()
    wire.put(frames.TAKEN, 1, b"123")
    wire.outbox.taken(2, 77)
    wire.turn()
    short, right = Inbox(100).feed(wire.writes[0])
    assert right.bytes_taken() == 77
    with pytest.raises(Broken):
        short.bytes_taken()


class Table:
    """Frames that are handed on, and the turns that are due."""

    def __init__(self, bad: int = -1) -> None:
        self.taken: list[int] = []
        self.due: list = []
        self.wrong: list[Exception] = []
        self._bad = bad
        self.turns = Turns(self._take, self.wrong.append, self.due.append)

    def _take(self, frame: Frame) -> None:
        if frame.number == self._bad:
            raise Broken("not this one")
        self.taken.append(frame.number)

    def arrive(self, *numbers: int) -> None:
        self.turns.add([Frame(frames.ASK, number, memoryview(b"")) for number in numbers])

    def turn(self) -> None:
        due, self.due[:] = list(self.due), []
        for call in due:
            call()


def test_of_frames_that_arrive_together_a_few_are_taken_in_each_turn():
    """FRAME5, and in order although more arrive in between."""
    few = frames.FRAMES_PER_TURN
    table = Table()
    table.arrive(*range(2 * few + 1))
    assert table.taken == [*range(few)]
    table.arrive(2 * few + 1)
    assert table.taken == [*range(few)] and len(table.due) == 1
    table.turn()
    assert table.taken == [*range(2 * few)]
    table.turn()
    assert table.taken == [*range(2 * few + 2)] and not table.due


@pytest.mark.parametrize("at_once", [True, False])
def test_in_a_rush_all_are_taken_and_none_waits_in_memory(at_once):
    many = range(frames.WAITING_MAX + 1)
    table = Table()
    if at_once:
        table.arrive(*many)
    else:
        for number in many:
            table.arrive(number, number + 1000)
    assert len(table.taken) > frames.WAITING_MAX - frames.FRAMES_PER_TURN
    table.turn()
    while table.due:
        table.turn()
    assert len(table.taken) == (1 if at_once else 2) * len(many)


def test_what_waits_can_be_taken_at_once_or_be_dropped():
    more = [*range(frames.FRAMES_PER_TURN + 1)]
    table = Table()
    table.arrive(*more)
    table.turns.finish()
    assert table.taken == more
    table.turn()
    table.arrive(*more)
    table.turns.stop()
    table.turn()
    assert table.taken == more + more[:-1] and not table.due


@pytest.mark.parametrize("bad", [1, frames.FRAMES_PER_TURN + 1])
def test_after_a_frame_that_makes_no_sense_none_is_taken(bad):
    table = Table(bad=bad)
    table.arrive(*range(3 * frames.FRAMES_PER_TURN))
    while table.due:
        table.turn()
    assert table.taken == list(range(bad)) and len(table.wrong) == 1
