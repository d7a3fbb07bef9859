"""Pools are cut into slices that any reader can put together again."""

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import resource
from allot.fleet.pool import Pool


def device(number: int, draws: bool) -> dict:
    drawn = {"consumesCounters": [{"counterSet": "c-0", "counters": {}}]} if draws else {}
    return {"name": f"d-{number}", **drawn}


@settings(max_examples=60, deadline=None)
@given(
    devices=st.integers(0, 700),
    sets=st.integers(0, 30),
    draws=st.booleans(),
    generation=st.integers(1, 9),
)
def test_nothing_is_lost_and_no_limit_is_passed(devices, sets, draws, generation):
    """F1 to F3."""
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
    assert [d for one in slices for d in one["spec"].get("devices", ())] == made
    assert [c for one in slices for c in one["spec"].get("sharedCounters", ())] == counters


def test_a_pool_is_reached_from_its_node_or_by_labels():
    (one,) = Pool("d.example.com", "n", [device(0, False)], node="n").slices()
    assert one["spec"]["nodeName"] == "n"
    (one,) = Pool("d.example.com", "r", [device(0, False)], reached_by={"rack": "r"}).slices()
    (term,) = one["spec"]["nodeSelector"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "rack", "operator": "In", "values": ["r"]}]
