"""Transactions whose answer never came: sent again only where that is safe, and never told wrong.

A connection stands between the store and a real etcd and loses answers: before the request arrives,
or after it took effect.
"""

from collections.abc import Callable
from typing import Any

import pytest

from allot.store import Committed, Compare, Delete, OutcomeUnknown, Put, Refused, Unavailable
from allot.store.etcd import Address, EtcdStore, connection
from allot.store.etcd.connection import TXN, Lost, NotDone
from components import Etcd

from ..places import run


class Lossy(EtcdStore):
    """Loses the answers to the first transactions, as told."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self.losses: list[str] = []
        self.meanwhile: Callable[[], Any] | None = None
        self.sent = 0
        attempt = self._connection.attempt

        async def losing(method: Any, request: Any, within_s: float = 2) -> Any:
            if method is not TXN:
                return await attempt(method, request)
            self.sent += 1
            loss = self.losses.pop(0) if self.losses else ""
            if loss == "before":
                raise Lost("the wire was cut")
            if loss == "refused connection":
                raise NotDone("nobody listens")
            answer = await attempt(method, request)
            if loss == "after":
                if self.meanwhile is not None:
                    await self.meanwhile()
                raise Lost("the wire was cut")
            return answer

        self._connection.attempt = losing  # type: ignore[method-assign]


@pytest.fixture
def address(one_etcd: Etcd) -> Address:
    return Address.parse(one_etcd.url())


@pytest.mark.parametrize("loss", ["before", "after", "refused connection"])
def test_a_guarded_write_takes_effect_once_and_is_confirmed(address: Address, loss: str):
    async def story() -> None:
        store = Lossy(address)
        start = await store.revision()
        store.losses = [loss, loss]
        assert await store.transact([Compare("/a", 0)], [Put("/a", b"1")]) == Committed(start + 1)
        assert await store.revision() == start + 1
        await store.close()

    run(story())


def test_an_unguarded_write_is_not_sent_twice(address: Address):
    """Twice would be two revisions. That it arrived can be seen; that it did not cannot."""

    async def story() -> None:
        store = Lossy(address)
        start = await store.revision()
        store.losses = ["after"]
        assert await store.transact([], [Put("/a", b"1"), Put("/b", b"2")]) == Committed(start + 1)
        store.losses = ["before"]
        with pytest.raises(OutcomeUnknown):
            await store.transact([], [Put("/a", b"3")])
        store.losses = ["after"]
        with pytest.raises(OutcomeUnknown):
            await store.transact([], [Delete("/a")])
        assert store.sent == 3
        await store.close()

    run(story())


def test_a_write_that_somebody_overwrote_before_we_could_ask_stays_unknown(address: Address):
    async def story() -> None:
        store, other = Lossy(address), EtcdStore(address)
        store.losses = ["after"]
        store.meanwhile = lambda: other.transact([], [Put("/a", b"theirs")])
        with pytest.raises(OutcomeUnknown):
            await store.transact([Compare("/a", 0)], [Put("/a", b"ours")])
        await store.close()
        await other.close()

    run(story())


def test_what_others_wrote_alike_does_not_make_their_write_ours(address: Address):
    """Two servers change one slice, and mark its pool with the same value: one did, the other did not."""

    async def story() -> None:
        store, rival = Lossy(address), EtcdStore(address)
        made = await rival.transact([], [Put("/slice", b"old"), Put("/mark", b"{}")])
        assert isinstance(made, Committed)
        compares = [Compare("/slice", made.revision), Compare("/mark", made.revision)]
        done = await rival.transact(compares, [Put("/slice", b"theirs"), Put("/mark", b"{}")])
        store.losses = ["before"]
        with pytest.raises(OutcomeUnknown):
            await store.transact(compares, [Put("/slice", b"ours"), Put("/mark", b"{}")])
        assert isinstance(done, Committed) and await store.revision() == done.revision
        await store.close()
        await rival.close()

    run(story())


def test_a_write_that_lost_its_answer_and_its_race_is_refused_when_that_is_certain(address: Address):
    """The guard stands as it was, so the lost sending cannot have taken effect: a plain refusal."""

    async def story() -> None:
        store = Lossy(address)
        await store.transact([], [Put("/namespace", b"gone")])
        store.losses = ["before"]
        answer = await store.transact([Compare("/a", 0), Compare("/namespace", 1)], [Put("/a", b"")])
        assert isinstance(answer, Refused) and list(answer.current) == ["/namespace"]
        await store.close()

    run(story())


def test_patience_ends(address: Address, monkeypatch: pytest.MonkeyPatch):
    """Undone and unknown are different answers, and the caller gets the right one."""
    monkeypatch.setattr(connection, "PATIENCE_S", 0.2)

    async def story() -> None:
        store = Lossy(address)
        store.losses = ["refused connection"] * 50
        with pytest.raises(Unavailable):
            await store.transact([Compare("/a", 0)], [Put("/a", b"")])
        store.losses = ["refused connection", "before", *["refused connection"] * 50]
        with pytest.raises(OutcomeUnknown):
            await store.transact([Compare("/a", 0)], [Put("/a", b"")])
        await store.close()

    run(story())


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection, "PATIENCE_S", 0.3)

    async def story() -> None:
        store = EtcdStore(Address(("127.0.0.1:1",)))
        with pytest.raises(Unavailable, match="does not answer"):
            await store.get("/a")
        with pytest.raises(Unavailable, match="does not answer"):
            await store.transact([], [Put("/a", b"")])
        await store.close()

    run(story())
