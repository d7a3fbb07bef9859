"""TPOOL1 and TPOOL2: the taints of the newest slices, told one slice at a time."""

from hypothesis import given
from hypothesis import strategies as st

from allot.allocation import DeviceId
from allot.controllers.devicetainteviction.pools import Pools

from .objects import DRIVER, device, slice_value, taint


def keys(pools, name, pool="pool"):
    return [(slice, one.key) for slice, one in pools.taints(DeviceId(DRIVER, pool, name))]


def test_only_the_newest_generation_counts():
    """Own pool view, max generation only, complete or not."""
    pools = Pools()
    pools.put(slice_value("old", device("d0", taint("old"))))
    assert keys(pools, "d0") == [("old", "old")]
    touched = pools.put(slice_value("new", device("d1", taint("new")), generation=2, count=7))
    assert keys(pools, "d0") == [] and keys(pools, "d1") == [("new", "new")]
    assert {one.name for one in touched} == {"d0", "d1"}
    assert {one.name for one in pools.remove("new")} == {"d0", "d1"}
    assert keys(pools, "d0") == [("old", "old")]


def test_only_no_execute_counts():
    pools = Pools()
    assert not [*pools.put(slice_value("s", device("d0", taint(effect="NoSchedule"), taint(effect="None"))))]
    assert keys(pools, "d0") == []


def test_a_slice_that_changes_no_taint_concerns_nobody():
    """TPOOL2."""
    pools = Pools()
    pools.put(slice_value("s", device("d0", taint())))
    assert not [*pools.put(slice_value("s", device("d0", taint()), device("d1")))]
    assert not [*pools.put(slice_value("other", device("d2")))]


slices = st.builds(
    lambda name, pool, generation, devices: slice_value(
        name,
        *(device(one, *map(taint, keys)) for one, keys in devices.items()),
        pool=pool,
        generation=generation,
    ),
    st.sampled_from(("s1", "s2", "s3", "s4")),
    st.sampled_from(("a", "b")),
    st.integers(0, 3),
    st.dictionaries(st.sampled_from(("d0", "d1")), st.lists(st.sampled_from(("x", "y")), max_size=2)),
)


def naive(known, wanted):
    """All slices read anew."""
    pool = [one for one in known.values() if one.spec.pool.name == wanted.pool]
    newest = max((one.spec.pool.generation for one in pool), default=None)
    return {
        (one.metadata.name, taint)
        for one in pool
        if one.spec.pool.generation == newest
        for published in one.spec.devices
        if published.name == wanted.name
        for taint in published.taints
    }


@given(st.lists(slices | st.sampled_from(("s1", "s2", "s3", "s4")), max_size=12))
def test_it_is_as_if_all_slices_were_read_anew(steps):
    """TPOOL1 and TPOOL2."""
    pools, known = Pools(), {}
    everywhere = [DeviceId(DRIVER, pool, name) for pool in ("a", "b") for name in ("d0", "d1")]
    for step in steps:
        before = {one: naive(known, one) for one in everywhere}
        if isinstance(step, str):
            known.pop(step, None)
            touched = {*pools.remove(step)}
        else:
            known[step.metadata.name] = step
            touched = {*pools.put(step)}
        for one in everywhere:
            now = naive(known, one)
            assert {*pools.taints(one)} == now
            assert one in touched or now == before[one]
        for one in known.values():
            pool = [o.spec.pool.generation for o in known.values() if o.spec.pool.name == one.spec.pool.name]
            assert pools.is_newest(one) == (one.spec.pool.generation == max(pool))
