"""Several writes that look like a store to their makers, and are one transaction of it: PEND1 to PEND3."""

import asyncio
from functools import wraps

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import errors
from allot.apiserver.storing.pending import FIRST_REVISION, MemberRefused, Moved, Pending
from allot.store import Compare, Delete, MemoryStore, Put, Refused, Revise

RECORD = "/records/r"
KEYS = st.sampled_from(["/k/a", "/k/b", "/k/c"])
VALUES = st.sampled_from([b"1", b"22", b"333"])
STEPS = st.one_of(
    st.tuples(st.just("put"), KEYS, VALUES),
    st.tuples(st.just("delete"), KEYS),
    st.tuples(st.just("create"), KEYS, VALUES),
    st.tuples(st.just("revise"), VALUES),
    st.tuples(st.just("look"), KEYS),
    st.tuples(st.just("list"), st.sampled_from(["", "/k/a", "/k/b"]), st.integers(0, 3)),
)


def told(story):
    """A test that is a coroutine."""
    return wraps(story)(lambda *args, **kwargs: asyncio.run(story(*args, **kwargs)))


async def do(store, step):
    """One member's step, and what it saw: nothing of it says at which revision."""
    match step:
        case ("put", key, value):
            found = await store.get(key)
            return await wrote(store, [Compare(key, found.revision if found else 0)], Put(key, value))
        case ("delete", key):
            found = await store.get(key)
            return found and await wrote(store, [Compare(key, found.revision)], Delete(key))
        case ("create", key, value):
            return await wrote(store, [Compare(key, 0)], Put(key, value))
        case ("revise", value):
            return await wrote(store, [], Revise(RECORD, lambda old: (old or b"") + value))
        case ("look", key):
            found, known, record = await store.get(key), store.peek(key), await store.get(RECORD)
            return [one and one.value for one in (found, known, record)]
        case ("list", after, limit):
            page = await store.range("/k/", after=after, limit=limit)
            return [(one.key, one.value) for one in page.entries], page.more, page.remaining


async def wrote(store, compares, change):
    outcome = await store.transact(compares, [change])
    return sorted(outcome.current) if isinstance(outcome, Refused) else "written"


async def filled(before):
    store = MemoryStore()
    for step in before:
        await do(store, step)
    return store


async def content(store):
    entries = (await store.range("/")).entries
    return [(one.key, one.value) for one in entries]


@settings(max_examples=200)
@given(before=st.lists(STEPS, max_size=4), steps=st.lists(STEPS, max_size=8))
def test_whoever_writes_to_it_sees_what_a_store_would_show_and_the_store_becomes_the_same(before, steps):
    async def story():
        one_by_one, store = await filled(before), await filled(before)
        start = await store.revision()
        pending = Pending(store, careful=True)
        for step in steps:
            try:
                seen = await do(pending, step)
            except errors.BadRequest as refused:
                assert "created anew" in str(refused)
                assert await store.get(step[1]), "of a name that is there until then"
                return
            assert seen == await do(one_by_one, step)
        assert await content(store) == await content(await filled(before)), "nobody else sees any of it"
        assert not isinstance(await pending.commit(), Refused)
        assert await content(store) == await content(one_by_one)
        assert await store.revision() - start <= 1, "at one revision"

    asyncio.run(story())


@pytest.mark.parametrize("careful", [False, True])
@told
async def test_what_was_compared_is_compared_at_the_commit(careful):
    store = await filled([("put", "/k/a", b"1")])
    pending = Pending(store, careful=careful)
    found = await pending.get("/k/a")
    await pending.transact([Compare("/k/a", found.revision)], [Put("/k/b", b"1")])
    await do(store, ("put", "/k/a", b"22"))
    outcome = await pending.commit()
    assert isinstance(outcome, Refused) and [*outcome.current] == ["/k/a"]
    assert await store.get("/k/b") is None


@told
async def test_a_key_is_read_from_the_store_once():
    """PEND3."""
    store = await filled([("put", "/k/a", b"1")])
    pending = Pending(store, careful=False)
    assert (await pending.get("/k/a")).value == b"1"
    await do(store, ("put", "/k/a", b"22"))
    assert (await pending.get("/k/a")).value == b"1"


@told
async def test_a_record_that_was_revised_and_looked_at_is_compared_at_the_commit():
    """Whoever looked decided by it, so it is not revised again on what a rival has left there."""
    store = MemoryStore()
    pending = Pending(store, careful=False)
    await do(pending, ("revise", b"1"))
    assert (await pending.get(RECORD)).value == b"1"
    await do(store, ("revise", b"22"))
    outcome = await pending.commit()
    assert isinstance(outcome, Refused) and [*outcome.current] == [RECORD]
    assert (await store.get(RECORD)).value == b"22"


@pytest.mark.parametrize("careful", [False, True])
@told
async def test_two_members_that_rely_on_one_key_at_two_revisions_do_not_both_get_through(careful):
    """On trust nobody knows which of them is right, so it begins anew; who looks tells the wrong one."""
    store = await filled([("put", "/k/a", b"1"), ("put", "/k/a", b"22")])
    now = (await store.get("/k/a")).revision
    pending = Pending(store, careful=careful)
    await pending.transact([Compare("/k/a", now)], [Put("/k/b", b"1")])
    second = pending.transact([Compare("/k/a", now - 1)], [Put("/k/c", b"1")])
    if careful:
        assert [*(await second).current] == ["/k/a"]
    else:
        with pytest.raises(Moved):
            await second
    await pending.transact([Compare("/k/a", now)], [Put("/k/d", b"1")])


@told
async def test_what_says_no_at_the_commit_names_its_member():
    """Of several who revise one record; in a rehearsal as well."""
    store = MemoryStore()
    pending = Pending(store, careful=False)

    def full(value):
        if value is not None:
            raise errors.Conflict("there is no more")
        return b"1"

    for member in (3, 7):
        pending.member = member
        await pending.transact([], [Revise(RECORD, full)])
    for carry_out in (pending.commit, pending.rehearse, lambda: pending.get(RECORD)):
        with pytest.raises(MemberRefused) as refused:
            await carry_out()
        assert refused.value.member == 7 and isinstance(refused.value.error, errors.Conflict)
    assert await store.get(RECORD) is None


@told
async def test_an_object_is_found_decoded_as_its_writer_left_it_and_no_longer_when_it_has_changed():
    pending = Pending(MemoryStore(), careful=False)

    async def write(value, key="/k/a"):
        revision = (await pending.transact([], [Put(key, value)])).revision
        return pending.written(key, value, revision, {"metadata": {}})

    first = await write(b"1")
    assert first.revision > FIRST_REVISION and pending.at("/k/a", first.revision) is first
    assert pending.is_last(first)
    second = await write(b"22")
    assert pending.at("/k/a", first.revision) is None and pending.at("/k/a", second.revision) is second
    assert pending.is_last(second) and not pending.is_last(first)
    other = await write(b"1", "/k/b")
    assert [*pending.last()] == [("/k/a", second), ("/k/b", other)]
    await pending.transact([], [Put("/k/b", b"22")])  # by somebody who keeps no object
    assert [*pending.last()] == [("/k/a", second)] and not pending.is_last(other)
    await pending.transact([], [Delete("/k/a")])
    assert pending.at("/k/a", second.revision) is None and [*pending.last()] == []
