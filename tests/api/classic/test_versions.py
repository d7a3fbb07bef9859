"""Round trips of both shapes through every version lose nothing: CLASSIC1, CLASSIC2 of `versions`."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import classic, schema
from allot.api.classic import versions
from api.classic.objects import ON_N1
from api.resource.test_versions import hub_requests

CLAIM, TEMPLATE = classic.RESOURCE_CLAIM, classic.RESOURCE_CLAIM_TEMPLATE
VERSIONS = [one.name for one in CLAIM.versions]

references = st.fixed_dictionaries(
    {"kind": st.just("GpuParameters"), "name": st.sampled_from(["small", "large"])},
    optional={"apiGroup": st.just("gpu.example.com")},
)
modes = st.sampled_from(["Immediate", "WaitForFirstConsumer"])


@st.composite
def classic_specs(draw):
    """As they are stored."""
    name = draw(st.sampled_from(["gpu", "nic.example.com"]))
    spec = {"resourceClassName": name, "allocationMode": draw(modes), "devices": versions.devices_of(name)}
    return {**spec, "parametersRef": draw(references)} if draw(st.booleans()) else spec


def as_v1_has_them(requests):
    """An alternative asks for no administrator's access."""
    for one in (one for request in requests for one in request.get("firstAvailable", ())):
        one.pop("adminAccess", None)
    return {"devices": {"requests": requests}}


structured_specs = st.lists(hub_requests(), max_size=3).map(as_v1_has_them)
specs = st.one_of(classic_specs(), structured_specs)
users = st.lists(st.builds(lambda uid: {"resource": "pods", "name": "p", "uid": uid}, st.sampled_from("ab")))
results = st.just([{"request": "a", "driver": "d", "pool": "p", "device": "x"}])
allocations = st.fixed_dictionaries(
    {},
    optional={
        "nodeSelector": st.just(ON_N1),
        "resourceHandle": st.text(max_size=5),
        "shareable": st.booleans(),
        "devices": results.map(lambda found: {"results": found}),
        "allocationTimestamp": st.just("2026-11-15T08:00:00Z"),
    },
)
statuses = st.fixed_dictionaries(
    {},
    optional={
        "allocation": allocations,
        "reservedFor": users,
        "driverName": st.just("gpu.example.com"),
        "deallocationRequested": st.booleans(),
    },
)
names = st.permutations(VERSIONS)


def shown(kind, hub, version):
    """A stored object as a version shows it, which the shape of that version must take whole."""
    found = kind.version(version)
    fields = found.from_hub(copy.deepcopy(hub))
    kept = copy.deepcopy(fields)
    assert not schema.check(kept, found.shape()).unknown
    return fields


@settings(max_examples=200)
@given(specs, statuses, names)
def test_a_claim_survives_every_version_in_any_order(spec, status, order):
    """CLASSIC1, of both shapes."""
    hub = {"metadata": {"name": "c"}, "spec": spec, "status": status}
    now = copy.deepcopy(hub)
    for version in order:
        now = CLAIM.version(version).to_hub(shown(CLAIM, now, version))
        assert now == hub


@settings(max_examples=100)
@given(specs, names)
def test_a_template_survives_every_version_in_any_order(spec, order):
    """CLASSIC1, of both shapes."""
    hub = {"metadata": {"name": "t"}, "spec": {"metadata": {"labels": {"a": "b"}}, "spec": spec}}
    now = copy.deepcopy(hub)
    for version in order:
        now = TEMPLATE.version(version).to_hub(shown(TEMPLATE, now, version))
        assert now == hub


@settings(max_examples=100)
@given(classic_specs(), statuses)
def test_a_v1alpha1_claim_survives_the_hub(spec, status):
    """CLASSIC2."""
    body = {"spec": {name: one for name, one in spec.items() if name != "devices"}, "status": status}
    if "nodeSelector" in (allocation := body["status"].get("allocation", {})):
        allocation["availableOnNodes"] = allocation.pop("nodeSelector")
    version = CLAIM.version("v1alpha1")
    assert version.from_hub(version.to_hub(copy.deepcopy(body))) == body


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_has_the_members_of_both_shapes(version):
    """No client is warned of a field that another version has shown it."""
    shape = CLAIM.version(version).shape()
    assert {"resourceClassName", "parametersRef", "allocationMode", "devices"} <= shape.fields[
        "spec"
    ].fields.keys()
    status = shape.fields["status"].fields
    assert {"driverName", "deallocationRequested", "devices", "reservedFor"} <= status.keys()
    assert {"resourceHandle", "shareable", "devices"} <= status["allocation"].fields.keys()


def test_v1alpha1_hides_the_request_that_was_made_and_no_other():
    hub = {"spec": {"resourceClassName": "gpu", "devices": versions.devices_of("gpu")}}
    assert shown(CLAIM, hub, "v1alpha1")["spec"] == {"resourceClassName": "gpu"}
    other = {"spec": {"resourceClassName": "gpu", "devices": versions.devices_of("nic")}}
    assert shown(CLAIM, other, "v1alpha1") == other


@settings(max_examples=150)
@given(specs, statuses, specs, statuses, st.sampled_from(VERSIONS))
def test_what_becomes_of_a_part_follows_from_that_part_alone(spec, status, other_spec, other_status, name):
    """What `converts_by_part` says: who owns a spec is not asked when a status changes."""
    version = CLAIM.version(name)
    assert version.converts_by_part

    def shown(spec, status):
        return version.from_hub(copy.deepcopy({"metadata": {"name": "c"}, "spec": spec, "status": status}))

    this = shown(spec, status)
    assert shown(spec, other_status)["spec"] == this["spec"]
    assert shown(other_spec, status)["status"] == this["status"]
    assert this["metadata"] == {"name": "c"}
