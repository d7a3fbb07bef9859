"""Pools are cut into slices that any reader can put together again, whenever the writer stops."""

import copy
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from allot.api import Object, encode, resource
from allot.api.resource.pools import Pool, changes

Fields = dict[str, Any]

# -- cutting -------------------------------------------------------------------------------------


def device(number: int, draws: bool = False, **more: Any) -> Fields:
    drawn = {"consumesCounters": [{"counterSet": "c-0", "counters": {}}]} if draws else {}
    return {"name": f"d-{number}", **drawn, **more}


@settings(max_examples=60, deadline=None)
@given(
    devices=st.integers(0, 700),
    sets=st.integers(0, 30),
    draws=st.booleans(),
    generation=st.integers(1, 9),
)
def test_nothing_is_lost_and_no_limit_is_passed(devices, sets, draws, generation):
    """SPLIT1 to SPLIT3: cut and put together again, it is the same pool."""
    made = [device(number, draws) for number in range(devices)]
    counters = [{"name": f"c-{number}", "counters": {}} for number in range(sets)]
    slices = Pool("d.example.com", "n", made, counters, node="n").slices(generation)
    limits = resource.limits
    most = limits.SLICE_ADVANCED_DEVICES_MAX if draws else limits.SLICE_DEVICES_MAX
    for one in slices:
        spec = one["spec"]
        assert spec["pool"] == {"name": "n", "generation": generation, "resourceSliceCount": len(slices)}
        assert ("devices" in spec) != ("sharedCounters" in spec)
        assert 0 < len(spec.get("devices", [0])) <= most
        assert 0 < len(spec.get("sharedCounters", [0])) <= limits.COUNTER_SETS_MAX
    names = [one["metadata"]["name"] for one in slices]
    assert names == sorted(set(names))
    by_name = sorted(slices, key=lambda one: one["metadata"]["name"])
    assert [d for one in by_name for d in one["spec"].get("devices", ())] == made
    assert [c for one in by_name for c in one["spec"].get("sharedCounters", ())] == counters


def test_devices_with_taints_need_more_slices():
    """SPLIT2: the server takes no more than 64 of them in one."""
    taint = {"key": "k", "effect": "NoSchedule"}
    many = [device(number) for number in range(100)]
    assert len(Pool("d", "n", many, node="n").slices()) == 1
    many[7] = device(7, taints=[taint])
    assert [len(one["spec"]["devices"]) for one in Pool("d", "n", many, node="n").slices()] == [64, 36]


def test_a_pool_is_reached_from_its_node_or_by_labels():
    (one,) = Pool("d.example.com", "n", [device(0)], node="n").slices()
    assert one["spec"]["nodeName"] == "n"
    (one,) = Pool("d.example.com", "r", [device(0)], reached_by={"rack": "r"}).slices()
    (term,) = one["spec"]["nodeSelector"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "rack", "operator": "In", "values": ["r"]}]


# -- what to write -------------------------------------------------------------------------------


def slices_of(*contents: str, generation: int = 1) -> list[Fields]:
    """A slice for each; what is in it is a name."""
    pool = {"name": "n", "generation": generation, "resourceSliceCount": len(contents)}
    return [
        {
            "metadata": {"name": f"s-{at}"},
            "spec": {"driver": "d", "nodeName": "n", "pool": pool, "devices": [{"name": one}]},
        }
        for at, one in enumerate(contents)
    ]


def stored(slices: list[Fields]) -> list[Object]:
    found = []
    for at, one in enumerate(slices):
        metadata = {"uid": f"u-{at}", "resourceVersion": str(at + 1), **one["metadata"]}
        found.append(Object(encode({**one, "metadata": metadata})))
    return found


def generations(slices) -> list[int]:
    return [one["spec"]["pool"]["generation"] for one in slices]


def test_a_pool_that_is_not_there_is_created():
    found = changes(slices_of("a", "b"), [])
    assert generations(found.create) == [1, 1]
    assert not found.replace and not found.delete


def test_a_pool_that_is_right_is_left_alone_whatever_its_generation():
    """PUBL1."""
    assert not changes(slices_of("a", "b"), stored(slices_of("a", "b")))
    assert not changes(slices_of("a", "b"), stored(slices_of("a", "b", generation=7)))


def test_a_single_slice_is_replaced_in_its_generation():
    """PUBL2: between the old pool and the new one there is nothing to be seen."""
    found = changes(slices_of("a", "other", "c"), stored(slices_of("a", "b", "c", generation=4)))
    assert [one["metadata"]["name"] for one in found.replace] == ["s-1"]
    assert generations(found.replace) == [4]
    assert not found.create and not found.delete


def test_two_slices_move_the_whole_pool_to_the_next_generation():
    """PUBL2: a reader must never put together old and new."""
    found = changes(slices_of("x", "y", "c"), stored(slices_of("a", "b", "c")))
    assert generations(found.replace) == [2, 2, 2]
    assert not found.create and not found.delete


def test_a_pool_that_grows_gets_the_next_generation():
    found = changes(slices_of("a", "b"), stored(slices_of("a")))
    assert generations(found.create) == [2] and generations(found.replace) == [2]


def test_a_slice_that_somebody_deleted_comes_back_in_the_next_generation():
    found = changes(slices_of("a", "b"), stored(slices_of("a", "b")[:1]))
    assert generations(found.create) == [2] and generations(found.replace) == [2]


def test_a_driver_may_ask_for_a_later_generation_and_never_for_an_earlier_one():
    later = changes(slices_of("a", generation=9), stored(slices_of("a", generation=4)))
    assert generations(later.replace) == [9]
    assert not changes(slices_of("a", generation=2), stored(slices_of("a", generation=4)))


def test_only_what_was_found_is_replaced_or_deleted():
    """Somebody else may write between the look and the write: then it is looked at again."""
    known = stored(slices_of("a", "b"))
    found = changes(slices_of("x"), known)
    assert [(one.uid, one.resource_version) for one in found.delete] == [("u-1", "2")]
    (one,) = found.replace
    assert (one["metadata"]["uid"], one["metadata"]["resourceVersion"]) == ("u-0", "1")


def test_what_another_generation_left_is_deleted_oldest_first():
    known = stored(slices_of("a", generation=3))
    for at, generation in ((1, 2), (2, 1)):
        left = copy.deepcopy(slices_of("a", "b", "c", generation=generation)[at])
        known += stored([left])
    found = changes(slices_of("a"), known)
    assert [one.name for one in found.delete] == ["s-2", "s-1"]
    assert not found.create and not found.replace


def test_a_taint_keeps_the_time_at_which_it_was_added():
    """The server notes it on the first write; without it every start would write again."""
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    (wanted,) = slices_of("a")
    wanted["spec"]["devices"] = [{"name": "a", "taints": [taint]}]
    known = copy.deepcopy(wanted)
    known["spec"]["devices"][0]["taints"][0]["timeAdded"] = "2026-05-01T10:00:00Z"
    assert not changes([wanted], stored([known]))
    wanted["spec"]["devices"][0]["taints"] = [{**taint, "value": "other"}]
    (written,) = changes([wanted], stored([known])).replace
    assert "timeAdded" not in written["spec"]["devices"][0]["taints"][0]


# -- cut short -----------------------------------------------------------------------------------

CONTENTS = st.lists(st.sampled_from("abc"), max_size=4)
MESS = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from("abc"), st.integers(0, 3), st.integers(1, 3)),
    max_size=5,
    unique_by=lambda one: one[0],
)
"""What anybody may have left: name, content, generation, how many are announced."""


def mess(found: list[tuple[int, str, int, int]]) -> list[Fields]:
    slices = []
    for at, content, generation, announced in found:
        one = copy.deepcopy(slices_of(*(content for _ in range(at + 1)))[at])
        one["spec"]["pool"] = {"name": "n", "generation": generation, "resourceSliceCount": announced}
        slices.append(one)
    return slices


def shown(slices: list[Fields]) -> list[Fields] | None:
    """The pool, as the most trusting of readers sees it; None while it is not complete."""
    newest = max((one["spec"]["pool"]["generation"] for one in slices), default=0)
    kept = [one for one in slices if one["spec"]["pool"]["generation"] == newest]
    if any(one["spec"]["pool"]["resourceSliceCount"] == len(kept) for one in kept):
        return sorted((content(one) for one in kept), key=lambda one: one["metadata"]["name"])
    return None


def content(slice: Fields) -> Fields:
    spec = slice["spec"]
    return {"metadata": {"name": slice["metadata"]["name"]}, "spec": {**spec, "pool": {}}}


def states(slices: list[Fields], wanted: list[Fields]):
    """Every state on the way, the first one included."""
    present = {one["metadata"]["name"]: one for one in slices}
    yield list(present.values())
    found = changes(wanted, stored(list(present.values())))
    for one in found.delete:
        del present[one.name]
        yield list(present.values())
    for new in (*found.replace, *found.create):
        name = new["metadata"]["name"]
        assert (name in present) == (new in found.replace), "created what is there, or replaced what is not"
        present[name] = {**new, "metadata": {"name": name}}
        yield list(present.values())


@settings(max_examples=400, deadline=None)
@given(MESS, st.lists(st.tuples(CONTENTS, st.integers(0, 12)), min_size=1, max_size=4))
@example([(0, "a", 1, 2), (1, "a", 1, 2)], [(["b", "b"], 1), (["a", "b"], 1), (["a", "b"], 12)])
def test_whenever_the_writer_is_cut_short_nobody_sees_old_and_new_in_one_pool(found, plans):
    """PUBL3, over several writers: each begins where the one before it was cut short."""
    present = mess(found)
    before = {encode(one) for one in present}
    whole: list[list[Fields]] = []
    for contents, steps in plans:
        wanted = slices_of(*contents)
        whole.append([content(one) for one in wanted])
        for step, state in enumerate(states(present, wanted)):
            view = shown(state)
            untouched = all(encode(one) in before for one in state)
            assert view is None or view in whole or untouched, (view, state)
            if step == steps:
                break
        present = state


@settings(max_examples=300, deadline=None)
@given(MESS, CONTENTS)
def test_no_older_generation_comes_back(found, contents):
    """PUBL3: what a reader has seen the end of stays ended."""
    newest = 0
    for state in states(mess(found), slices_of(*contents)):
        if state:
            highest = max(generations(state))
            assert highest >= newest
            newest = highest


@settings(max_examples=300, deadline=None)
@given(MESS, CONTENTS)
def test_at_the_end_the_pool_is_shown_and_there_is_nothing_more_to_write(found, contents):
    """PUBL1."""
    wanted = slices_of(*contents)
    *_, last = states(mess(found), wanted)
    assert (shown(last) or []) == [content(one) for one in wanted]
    assert not changes(wanted, stored(last))
