"""The last keys of a stream, against a plain list; and forks against copies."""

from hypothesis import given
from hypothesis import strategies as st

from allot.base import Recent

STEPS = st.lists(st.tuples(st.sampled_from(["add", "forget"]), st.sampled_from("abcdef")))


@given(STEPS)
def test_the_last_keys_are_kept_in_their_order(steps):
    recent, model = Recent[str](3), list[str]()
    for verb, key in steps:
        if verb == "add":
            recent.add(key)
            model = model if key in model else [*model, key][-3:]
        else:
            recent.forget(key)
            model = [one for one in model if one != key]
    assert list(recent) == model
    assert [key for key in "abcdef" if key in recent] == sorted(model)


@given(STEPS, STEPS, STEPS)
def test_a_fork_has_what_its_parent_had_and_keeps_its_own_changes_to_itself(first, second, third):
    """Where nothing is forgotten for want of room, it is a copy."""
    levels: list[tuple[Recent[str], list[str]]] = []
    recent, model = Recent[str](100), list[str]()
    for steps in (first, second, third):
        for verb, key in steps:
            if verb == "add":
                recent.add(key)
                model = model if key in model else [*model, key]
            else:
                recent.forget(key)
                model = [one for one in model if one != key]
        levels.append((recent, model))
        recent = recent.fork()
    for recent, model in levels:
        assert list(recent) == model


def test_of_its_own_a_fork_keeps_as_many_as_its_parent():
    recent = Recent[int](2)
    for number in range(3):
        recent.add(number)
    fork = recent.fork()
    for number in range(10, 13):
        fork.add(number)
    assert list(fork) == [1, 2, 11, 12]
