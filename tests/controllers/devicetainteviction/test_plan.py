"""When a pod must leave: with values, and against a plain reading of the rules."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from allot.allocation import DeviceId
from allot.api import Object, encode, meta, resource
from allot.controllers.devicetainteviction.plan import Source, causes_of, due_at, eviction
from allot.controllers.devicetainteviction.views import (
    allocated_spellings,
    claim_names,
    selection,
    selects,
    spellings,
)

from .objects import DRIVER, claim_value, pod_value, result, rule_value, taint
from .objects import tolerates as toleration

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
SLICE = Source("slice", "s")


def read_taint(**fields):
    return meta.view(resource.DeviceTaint, taint(**fields))


def read_tolerations(*listed):
    return tuple(meta.view(resource.DeviceToleration, one) for one in listed)


def tainted(*taints, device="d0"):
    """What a device has: `taints`, if it is `device`."""
    return lambda one: [(SLICE, taint) for taint in taints] if one.name == device else []


def due(*tolerations, **of_taint):
    return due_at(read_taint(**of_taint), read_tolerations(*tolerations))


# -- taints and tolerations ---------------------------------------------------------------------


def test_a_taint_that_is_not_tolerated_drives_away_from_the_moment_it_was_added():
    """Eviction time = timeAdded of an untolerated NoExecute taint."""
    assert due() == SINCE
    assert due(toleration(key="other")) == SINCE
    assert due(toleration(operator="Equal", key="broken", value="x"), value="y") == SINCE


def test_a_toleration_with_seconds_delays_and_one_without_holds_for_ever():
    """+ tolerationSeconds, negative = 0; nil seconds = tolerate for ever."""
    assert due(toleration(tolerationSeconds=30)) == SINCE + timedelta(seconds=30)
    assert due(toleration(tolerationSeconds=-5)) == SINCE
    assert due(toleration()) is None
    assert due(toleration(tolerationSeconds=2**62)) is None, "no calendar has that day"


def test_of_several_fitting_tolerations_the_least_patient_counts():
    """Min tolerationSeconds of matching tolerations."""
    both = toleration(tolerationSeconds=60), toleration(key="broken", tolerationSeconds=20)
    assert due(*both) == SINCE + timedelta(seconds=20)
    assert due(toleration(), toleration(tolerationSeconds=20)) == SINCE + timedelta(seconds=20)


def test_only_tolerations_for_exactly_no_execute_let_a_pod_stay():
    """An empty effect lets pods be scheduled, not stay."""
    assert due(toleration(effect="")) == SINCE
    assert due(toleration(effect="NoSchedule")) == SINCE


def test_other_effects_drive_nobody_away():
    """None, NoSchedule and effects that nobody knows do not evict."""
    for effect in ("None", "NoSchedule", "Whatever"):
        assert due(effect=effect) is None


def test_a_taint_without_a_time_has_always_been_there():
    assert due(since="") < SINCE


# -- pods ---------------------------------------------------------------------------------------


def test_the_earliest_taint_of_all_devices_decides():
    """Earliest of all untolerated taints, over every device of every claim."""
    claims = (
        claim_value(result("d0", toleration(tolerationSeconds=50)), name="a"),
        claim_value(result("d1", toleration(tolerationSeconds=20)), name="b"),
    )
    found = eviction(pod_value("p", "a", "b"), claims, lambda _: [(SLICE, read_taint())])
    assert found is not None and found.due == SINCE + timedelta(seconds=20)
    assert [cause.claim for cause in found.causes] == ["b", "a"]
    assert str(found.causes[0]) == (f"device {DRIVER}/pool/d1 of claim b is tainted with broken:NoExecute")


def test_what_is_tolerated_is_read_from_the_allocation():
    """From the result, not from the spec: the spec may say anything."""
    held = claim_value(result("d0"))
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"tolerations": [toleration()]}}]}}
    both = meta.view(
        resource.ResourceClaim, {"metadata": {"name": "c", "namespace": "default"}, "spec": spec}
    )
    assert eviction(pod_value(), (held,), tainted(read_taint())) is not None
    assert both.status.allocation is None and eviction(pod_value(), (both,), tainted(read_taint())) is None


def test_only_pods_on_a_node_that_hold_the_device_and_go_on_are_driven_away():
    """Bound, claim reserved for it, not already deleting."""
    held, where = claim_value(result("d0")), tainted(read_taint())
    assert eviction(pod_value(), (held,), where) is not None
    assert eviction(pod_value(spec={"nodeName": ""}), (held,), where) is None
    assert eviction(pod_value(deletionTimestamp="2026-01-01T00:00:00Z"), (held,), where) is None
    assert eviction(pod_value(status={"phase": "Succeeded"}), (held,), where) is None
    assert eviction(pod_value(uid="of another"), (held,), where) is None
    assert eviction(pod_value("p", "other"), (held,), where) is None, "it does not name the claim"
    assert eviction(pod_value(), (claim_value(result("d0"), namespace="other"),), where) is None
    assert eviction(pod_value(), (claim_value(result("d1")),), where) is None


def test_a_pod_holds_what_it_names_what_was_generated_and_its_extended_resources():
    """Upstream looks at spec.resourceClaims alone; extended resources count here."""
    statuses = [{"name": "gen", "resourceClaimName": "made"}, {"name": "none"}]
    status = {
        "resourceClaimStatuses": statuses,
        "extendedResourceClaimStatus": {"resourceClaimName": "extended"},
    }
    entries = [
        {"name": "direct", "resourceClaimName": "mine"},
        {"name": "gen", "resourceClaimTemplateName": "t"},
        {"name": "none", "resourceClaimTemplateName": "t"},
    ]
    user = pod_value(spec={"resourceClaims": entries}, status=status)
    assert claim_names(user) == ("mine", "made", "extended")
    held = claim_value(result("d0"), name="extended")
    assert eviction(user, (held,), tainted(read_taint())) is not None


# -- selectors ----------------------------------------------------------------------------------


def test_an_empty_selector_selects_everything_and_none_selects_nothing():
    """Nil deviceSelector matches nothing for the eviction controller."""
    here = DeviceId(DRIVER, "pool", "d0")
    assert selects(rule_value(selector={}), here)
    without = meta.view(resource.DeviceTaintRule, {"spec": {"taint": taint()}})
    assert not selects(without, here) and selection(without) is None


names = st.sampled_from(("a", "b"))
selectors = st.fixed_dictionaries({}, optional={"driver": names, "pool": names, "device": names})


@given(selectors, st.builds(DeviceId, names, names, names))
def test_a_device_is_found_under_exactly_the_selectors_that_select_it(selector, device):
    rule = rule_value(selector=selector)
    own = {"driver": device.driver, "pool": device.pool, "device": device.name}
    plainly = all(own[part] == wanted for part, wanted in selector.items())
    assert selects(rule, device) == plainly == (selection(rule) in set(spellings(device)))


def test_a_claim_is_found_under_the_selectors_of_each_of_its_devices():
    held = claim_value(result("d0"), result("d1"))
    found = set(allocated_spellings(Object(encode(meta_fields(held)))))
    for one in ("d0", "d1"):
        assert selection(rule_value(selector={"device": one})) in found
    assert selection(rule_value(selector={"device": "d2"})) not in found


def meta_fields(claim):
    results = [result(one.device) for one in claim.status.allocation.devices.results]
    return {"status": {"allocation": {"devices": {"results": results}}}}


# -- against a plain reading --------------------------------------------------------------------

effects = st.sampled_from(("NoExecute", "NoExecute", "NoSchedule", "None", ""))
keys = st.sampled_from(("", "k1", "k2"))
values = st.sampled_from(("", "v"))
moments = st.integers(0, 100).map(lambda s: (SINCE + timedelta(seconds=s)).strftime("%Y-%m-%dT%H:%M:%SZ"))
taints = st.builds(
    resource.DeviceTaint, key=st.sampled_from(("k1", "k2")), value=values, effect=effects, time_added=moments
)
tolerations = st.builds(
    resource.DeviceToleration,
    key=keys,
    operator=st.sampled_from(("Exists", "Equal", "")),
    value=values,
    effect=effects,
    toleration_seconds=st.none() | st.integers(-10, 100),
)


def naive_moments(held, where):
    """Every moment at which some taint on some device is no longer tolerated, one by one."""
    for one in held.status.allocation.devices.results:
        for mark in where.get(one.device, ()):
            if mark.effect != "NoExecute":
                continue
            waits = []
            for other in one.tolerations:
                same_value = other.operator == "Exists" or other.value == mark.value
                same_key = not other.key or other.key == mark.key
                if other.effect == "NoExecute" and same_key and same_value:
                    seconds = other.toleration_seconds
                    waits.append(float("inf") if seconds is None else max(0, seconds))
            wait = min(waits, default=0)
            if wait != float("inf"):
                yield datetime.fromisoformat(mark.time_added) + timedelta(seconds=wait)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.lists(tolerations, max_size=3)), max_size=4),
    st.dictionaries(st.sampled_from("abc"), st.lists(taints, max_size=3)),
)
def test_the_moment_is_the_earliest_of_a_plain_reading(results, where):
    listed = tuple(
        resource.DeviceRequestAllocationResult(
            driver=DRIVER, pool="pool", device=device, tolerations=tuple(tolerated)
        )
        for device, tolerated in results
    )
    allocation = resource.AllocationResult(devices=resource.DeviceAllocationResult(results=listed))
    plain = claim_value()
    held = replace(plain, status=replace(plain.status, allocation=allocation))

    found = eviction(pod_value(), (held,), lambda one: [(SLICE, t) for t in where.get(one.name, ())])

    expected = sorted(naive_moments(held, where))
    assert [cause.due for cause in found.causes] == expected if found else not expected


def test_the_plain_reading_is_not_always_empty():
    """The property above would say nothing if nothing was ever due."""
    held = claim_value(result("a", toleration(tolerationSeconds=3)))
    assert [*naive_moments(held, {"a": [read_taint()]})] == [
        cause.due for cause in causes_of(held, tainted(read_taint(), device="a"))
    ]
    (read,) = read_tolerations(toleration())
    assert read.lets_stay_with(read_taint())
