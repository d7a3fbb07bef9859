"""Random histories: every engine against a model that keeps everything for ever.

One machine for all engines. It writes alone and in crowds, reads the present and any
past that is kept, watches from anywhere, compacts, and closes and opens again; after each
step the engine must agree with the model. See `Model`.
"""

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from allot.store import (
    Committed,
    Compacted,
    Compare,
    Delete,
    Event,
    Put,
    Refused,
    Store,
    Watch,
    Write,
    watch,
)
from components import Etcd

from .model import Model
from .places import EtcdPlace, MemoryPlace, Place, SealedPlace, SqlitePlace

NAMES = ["/a/", "/a/x", "/a/y", "/a/y/z", "/b", "/b/x", "/c\U0010ffff", "/d"]
PREFIXES = ["", "/", "/a", "/a/", "/a/y", "/b", "/c\U0010ffff", "/none"]

names = st.sampled_from(NAMES)
prefixes = st.sampled_from(PREFIXES)
values = st.binary(max_size=3)
writes = st.lists(
    st.one_of(st.builds(Put, names, values), st.builds(Delete, names)),
    max_size=4,
    unique_by=lambda write: write.key,
)
guesses = st.dictionaries(names, st.sampled_from(["right", "right", "right", "stale", "absent"]), max_size=3)
anywhere = st.floats(0, 1)


class Listener:
    """A watch, and where the model says it must be."""

    def __init__(self, watch: Watch, prefix: str, after: int) -> None:
        self.watch = watch
        self.prefix = prefix
        self.after = after
        self.heard: list[Event] = []
        self.compacted = False


class History(RuleBasedStateMachine):
    place: ClassVar[Place]
    loop: ClassVar[asyncio.AbstractEventLoop]

    def __init__(self) -> None:
        super().__init__()
        self.here = self.a_place()
        self.store: Store = self.here.open()
        self.model = Model(self.do(self.store.revision()))
        self.compacted = self.model.revision
        self.do(self.store.compact(self.compacted))
        self.listeners: list[Listener] = []

    def a_place(self) -> Place:
        raise NotImplementedError

    def do(self, what: Any) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(what, 5))

    def compares(self, guesses: dict[str, str]) -> list[Compare]:
        now = self.model.maps[self.model.revision]
        wanted = []
        for name, guess in guesses.items():
            right = now[name].revision if name in now else 0
            wanted.append(Compare(name, {"right": right, "stale": max(0, right - 1), "absent": 0}[guess]))
        return wanted

    def revision_at(self, share: float) -> int:
        return self.compacted + round(share * (self.model.revision - self.compacted))

    # -- writing ---------------------------------------------------------------------------------

    @rule(guesses=guesses, writes=writes)
    def one_transaction(self, guesses: dict[str, str], writes: list[Write]) -> None:
        compares = self.compares(guesses)
        answer = self.do(self.store.transact(compares, writes))
        if differing := self.model.differing(compares):
            assert answer == Refused(differing)
        else:
            self.model.commit(writes)
            assert answer == Committed(self.model.revision)

    @rule(crowd=st.lists(st.tuples(guesses, writes), min_size=2, max_size=6))
    def a_crowd(self, crowd: list[tuple[dict[str, str], list[Write]]]) -> None:
        """All at once. Whatever the order, there must be one that explains every answer."""
        asked = [(self.compares(guesses), writes) for guesses, writes in crowd]

        async def together() -> list[Committed | Refused]:
            return await asyncio.gather(*(self.store.transact(*one) for one in asked))

        before = self.model.revision
        answers = list(zip(asked, self.do(together()), strict=True))
        self.replay_committed(before, answers)
        for (compares, _), answer in answers:
            if isinstance(answer, Refused):
                states = range(before, self.model.revision + 1)
                assert any(self.model.differing(compares, at) == answer.current for at in states)

    def replay_committed(self, before: int, answers: Sequence[Any]) -> None:
        """Every new revision is one transaction's; the others that name it had nothing to do by then."""
        named: dict[int, list[Any]] = {}
        for asked, answer in answers:
            if isinstance(answer, Committed):
                named.setdefault(answer.revision, []).append(asked)
        for revision, asked in sorted(named.items()):
            if revision == before:
                assert all(self.was_idle(one, before) for one in asked)
                continue
            assert revision == self.model.revision + 1, "KEYS1: no revision is left out"
            found = [one for one in asked if self.explains(one, asked, revision)]
            assert found, "S1: no order explains these answers"
            self.model.commit(found[0][1])

    def explains(self, one: Any, asked: Sequence[Any], revision: int) -> bool:
        compares, writes = one
        then = self.model.fork()
        made = not then.differing(compares) and then.commit(writes)
        return bool(made) and all(other is one or self.was_idle(other, revision, then) for other in asked)

    def was_idle(self, asked: Any, revision: int, model: Model | None = None) -> bool:
        compares, writes = asked
        then = (model or self.model).fork()
        return not then.differing(compares, revision) and not then.commit(writes)

    # -- reading ---------------------------------------------------------------------------------

    @rule(name=names)
    def get(self, name: str) -> None:
        assert self.do(self.store.get(name)) == self.model.maps[self.model.revision].get(name)

    @rule(
        prefix=prefixes,
        after=st.one_of(st.just(""), names),
        limit=st.integers(0, 4),
        share=anywhere,
        now=st.booleans(),
    )
    def range(self, prefix: str, after: str, limit: int, share: float, now: bool) -> None:
        at = 0 if now else self.revision_at(share)
        page = self.do(self.store.range(prefix, after=after, limit=limit, at=at))

        at = at or self.model.revision
        expected = self.model.range(prefix, after, at)
        shown = expected[:limit] if limit else expected
        assert (list(page.entries), page.revision) == (shown, at)
        assert (page.more, page.remaining) == (len(shown) < len(expected), len(expected) - len(shown))

    @rule(back=st.integers(1, 3))
    def read_what_is_compacted(self, back: int) -> None:
        if self.compacted > back:
            with pytest.raises(Compacted):
                self.do(self.store.range("", at=self.compacted - back))

    # -- watching --------------------------------------------------------------------------------

    @precondition(lambda self: len(self.listeners) < 4)
    @rule(prefix=prefixes, share=anywhere)
    def listen(self, prefix: str, share: float) -> None:
        after = self.revision_at(share)
        self.listeners.append(Listener(self.store.watch(prefix, after), prefix, after))

    @precondition(lambda self: self.listeners)
    @rule(which=st.integers(0, 3))
    def hear(self, which: int) -> None:
        """Read all there is: exactly the model's events, each revision in one piece."""
        listener = self.listeners[which % len(self.listeners)]
        expected = list(self.model.since(listener.prefix, listener.after))
        try:
            while len(listener.heard) < len(expected):
                batch = self.do(listener.watch.__anext__())
                assert batch
                assert not listener.heard or batch[0].revision > listener.heard[-1].revision, "STORE1: split"
                listener.heard += batch
        except Compacted:
            assert (listener.heard[-1].revision if listener.heard else listener.after) < self.compacted
            self.listeners.remove(listener)
            return
        assert by_revision(listener.heard) == by_revision(expected), "S2"
        assert listener.after <= listener.watch.progress <= self.model.revision

    @precondition(lambda self: self.listeners)
    @rule(which=st.integers(0, 3))
    def stop_listening(self, which: int) -> None:
        self.listeners.pop(which % len(self.listeners)).watch.close()

    # -- keeping house -----------------------------------------------------------------------------

    @rule(share=anywhere)
    def compact(self, share: float) -> None:
        self.compacted = self.revision_at(share)
        self.do(self.store.compact(self.compacted))

    @precondition(lambda self: self.here.lasting)
    @rule()
    def open_again(self) -> None:
        self.do(self.store.close())
        for listener in self.listeners:
            listener.watch.close()
        self.listeners = []
        self.store = self.here.open()
        assert self.do(self.store.revision()) == self.model.revision, "S1: revisions never go back"

    @invariant()
    def holds_together(self) -> None:
        if hasattr(self.store, "check"):
            self.store.check()

    def teardown(self) -> None:
        for which in reversed(range(len(self.listeners))):
            self.hear(which)
        self.do(self.store.close())


def by_revision(events: Sequence[Event]) -> list[tuple[int, list[Event]]]:
    """Within one transaction there is no order."""
    found: dict[int, list[Event]] = {}
    for event in events:
        found.setdefault(event.revision, []).append(event)
    return [(revision, sorted(same, key=lambda event: event.key)) for revision, same in found.items()]


def rounds(examples: int) -> settings:
    return settings(
        max_examples=examples, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
    )


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices and baskets so small that every watch falls behind and catches up all the time."""
    monkeypatch.setattr(watch, "SLICE", 2)
    monkeypatch.setattr(watch, "BASKET_MAX", 3)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.mark.usefixtures("small_steps")
def test_memory(loop: asyncio.AbstractEventLoop):
    class InMemory(History):
        def a_place(self) -> Place:
            return MemoryPlace()

    InMemory.loop = loop
    run_state_machine_as_test(InMemory, settings=rounds(60))


@pytest.mark.usefixtures("small_steps")
def test_sqlite(loop: asyncio.AbstractEventLoop, tmp_path: Path):
    class OnDisk(History):
        def a_place(self) -> Place:
            return SqlitePlace(Path(tempfile.mkdtemp(dir=tmp_path)))

    OnDisk.loop = loop
    run_state_machine_as_test(OnDisk, settings=rounds(60))


@pytest.mark.usefixtures("small_steps")
def test_sealed(loop: asyncio.AbstractEventLoop, tmp_path: Path):
    class Sealed(History):
        def a_place(self) -> Place:
            return SealedPlace(Path(tempfile.mkdtemp(dir=tmp_path)))

    Sealed.loop = loop
    run_state_machine_as_test(Sealed, settings=rounds(30))


def test_etcd(loop: asyncio.AbstractEventLoop, one_etcd: Etcd):
    class OnEtcd(History):
        def a_place(self) -> Place:
            return EtcdPlace(one_etcd)

    OnEtcd.loop = loop
    run_state_machine_as_test(OnEtcd, settings=rounds(20))
