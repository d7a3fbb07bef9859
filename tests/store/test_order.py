"""Keys in order, against a plain sorted list."""

import random

from hypothesis import given
from hypothesis import strategies as st

from allot.store import order
from allot.store.order import SortedKeys, just_after, prefix_end

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
bounds = st.one_of(st.none(), texts)


@given(
    present=st.sets(texts, max_size=60),
    steps=st.lists(texts, max_size=60),
    start=texts,
    end=bounds,
    run=st.integers(2, 8),
)
def test_adding_and_removing_keeps_the_order(present, steps, start, end, run):
    """Short runs, so that they are cut and emptied all the time."""
    order.RUN_MAX, before = run, order.RUN_MAX
    try:
        keys, plain = SortedKeys(present), set(present)
        for text in steps:
            if text in plain:
                keys.remove(text)
            else:
                keys.add(text)
            plain ^= {text}
        wanted = [key for key in sorted(plain) if key >= start and (end is None or key < end)]
        assert list(keys.between(start, end)) == wanted
        assert keys.count(start, end) == len(wanted)
    finally:
        order.RUN_MAX = before


@given(prefix=texts, key=texts)
def test_a_prefix_ends_before_the_first_key_that_does_not_have_it(prefix, key):
    end = prefix_end(prefix)
    inside = key >= prefix and (end is None or key < end)
    assert inside == key.startswith(prefix)


@given(key=texts, other=texts)
def test_nothing_lies_between_a_key_and_the_one_just_after_it(key, other):
    assert not key < other < just_after(key)


def test_runs_stay_short():
    keys = SortedKeys()
    names = [f"/{n:06}" for n in range(20_000)]
    random.Random(1).shuffle(names)
    for name in names:
        keys.add(name)
    assert max(map(len, keys._runs)) <= order.RUN_MAX
    assert len(keys._runs) < 20_000 / (order.RUN_MAX / 4)
