"""A forked map against plain copies."""

from hypothesis import given
from hypothesis import strategies as st

from allot.base import Overlay

changes = st.lists(st.tuples(st.sampled_from(["set", "drop", "fork"]), st.sampled_from("abc"), st.integers()))


@given(changes)
def test_behaves_like_a_copied_dictionary(history):
    worlds = [(Overlay[str, int](), {})]
    for verb, key, value in history:
        overlay, model = worlds[-1]
        if verb == "fork":
            worlds.append((overlay.fork(), dict(model)))
        elif verb == "set":
            overlay.set(key, value)
            model[key] = value
        else:
            overlay.drop(key)
            model.pop(key, None)

    for overlay, model in worlds:
        assert dict(overlay.items()) == model
        assert {key: overlay.get(key) for key in "abc"} == {key: model.get(key) for key in "abc"}
        assert sorted(overlay) == sorted(model)


def test_knows_what_is_its_own():
    below = Overlay[str, int]()
    below.set("a", 1)
    fork = below.fork()
    fork.set("b", 2)

    assert below.is_own("a")
    assert fork.is_own("b")
    assert not fork.is_own("a")
