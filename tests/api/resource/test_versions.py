"""Conversions lose nothing: VERS1, VERS2 of `versions`."""

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import resource, schema
from allot.api.resource import versions
from api.resource.objects import alternative, claim, device, either, request, slice_, template
from api.resource.writes import create, shown

CLAIM, TEMPLATE, SLICE = resource.RESOURCE_CLAIM, resource.RESOURCE_CLAIM_TEMPLATE, resource.RESOURCE_SLICE

asked = st.fixed_dictionaries(
    {"deviceClassName": st.sampled_from(["gpu", "nic"])},
    optional={
        "count": st.integers(0, 3),
        "allocationMode": st.sampled_from(["All", "ExactCount"]),
        "adminAccess": st.booleans(),
        "selectors": st.lists(st.just({"cel": {"expression": "true"}}), max_size=2),
        "capacity": st.just({"requests": {"memory": "1Gi"}}),
        "tolerations": st.lists(st.just({"operator": "Exists"}), max_size=1),
    },
)


@st.composite
def hub_requests(draw):
    made = {"name": draw(st.sampled_from("abc"))}
    if draw(st.booleans()):
        made["exactly"] = draw(asked)
    else:
        made["firstAvailable"] = [{"name": "s", **draw(asked)}]
    return made


contents = st.fixed_dictionaries(
    {},
    optional={
        "attributes": st.just({"model": {"string": "x"}}),
        "capacity": st.just({"memory": {"value": "1Gi"}}),
        "allNodes": st.booleans(),
        "nodeName": st.sampled_from(["n1", "n2"]),
        "taints": st.just([{"key": "k", "effect": "NoSchedule"}]),
    },
)
hub_devices = st.builds(lambda name, inside: {"name": name, **inside}, st.sampled_from("abc"), contents)


def there_and_back(kind, hub):
    version = kind.version("v1beta1")
    return version.to_hub(version.from_hub(copy.deepcopy(hub)))


@settings(max_examples=150)
@given(st.lists(hub_requests(), max_size=3))
def test_a_claim_survives_v1beta1(requests):
    """VERS1."""
    for kind, hub in ((CLAIM, claim(*requests)), (TEMPLATE, template(*requests))):
        assert there_and_back(kind, hub) == hub


@settings(max_examples=150)
@given(st.lists(hub_devices, max_size=3))
def test_a_slice_survives_v1beta1(devices):
    """VERS1."""
    hub = slice_(*devices)
    assert there_and_back(SLICE, hub) == hub


@settings(max_examples=150)
@given(st.lists(st.builds(lambda basic: {"name": "d", "basic": basic}, contents), max_size=3))
def test_a_v1beta1_slice_survives_the_hub(devices):
    """VERS2."""
    version, body = SLICE.version("v1beta1"), slice_(*devices)
    assert version.from_hub(version.to_hub(copy.deepcopy(body))) == body


@settings(max_examples=150)
@given(st.lists(st.builds(lambda flat: {"name": "r", **flat}, asked), min_size=1, max_size=3))
def test_a_v1beta1_claim_survives_the_hub(requests):
    """VERS2."""
    version, body = CLAIM.version("v1beta1"), claim(*requests, config=[])
    assert version.from_hub(version.to_hub(copy.deepcopy(body))) == body


def test_v1beta1_has_flat_requests():
    hub = create(CLAIM, claim(request(count=2), either("e", alternative()))).hub
    flat, other = shown(CLAIM, hub, "v1beta1")["spec"]["devices"]["requests"]
    assert flat == {"name": "r", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
    assert other["deviceClassName"] == ""
    assert other["firstAvailable"][0]["deviceClassName"] == "gpu"


def test_conversion_keeps_the_order_of_members():
    """The store compares bytes: the same body must become the same bytes in every process."""
    flat = {
        "name": "r",
        "count": 2,
        "deviceClassName": "gpu",
        "adminAccess": False,
        "allocationMode": "ExactCount",
    }
    hub = CLAIM.version("v1beta1").to_hub(claim(dict(flat)))
    assert list(hub["spec"]["devices"]["requests"][0]["exactly"]) == list(flat)[1:]


def test_v1beta1_wraps_devices():
    """2.1: a device without content shows an empty wrapper."""
    hub = create(SLICE, slice_(device("a"), device("b", attributes={"x": {"int": 1}}))).hub
    assert shown(SLICE, hub, "v1beta1")["spec"]["devices"] == [
        {"name": "a", "basic": {}},
        {"name": "b", "basic": {"attributes": {"x": {"int": 1}}}},
    ]


def test_an_empty_node_name_and_false_mean_absent_in_v1beta1():
    body = slice_(nodeName="", allNodes=False, nodeSelector={"nodeSelectorTerms": [{}]})
    spec = SLICE.version("v1beta1").to_hub(body)["spec"]
    assert "nodeName" not in spec
    assert "allNodes" not in spec


def test_shapes_of_the_other_version_are_unknown_fields():
    """A v1beta1 body sent to v1 has neither flat fields nor a wrapper, and the other way round."""
    flat = create(CLAIM, claim({"name": "r", "deviceClassName": "gpu"}))
    assert flat.unknown == ("spec.devices.requests[0].deviceClassName",)
    assert flat.causes == ["spec.devices.requests[0] required"]
    wrapped = create(SLICE, slice_({"name": "d", "basic": {"attributes": {"a": {"int": 1}}, "future": 1}}))
    assert wrapped.unknown == ("spec.devices[0].basic",)
    assert wrapped.hub["spec"]["devices"] == [{"name": "d"}]
    nested = create(CLAIM, claim(request()), version="v1beta1")
    assert nested.unknown == ("spec.devices.requests[0].exactly",)
    assert nested.hub["spec"]["devices"]["requests"] == [{"name": "r"}]


def test_only_the_beta_versions_warn():
    for kind in (CLAIM, TEMPLATE, SLICE, resource.DEVICE_CLASS):
        texts = {version.name: version.deprecated for version in kind.versions}
        assert texts["v1"] == ""
        assert (
            texts["v1beta1"]
            == f"resource.k8s.io/v1beta1 {kind.kind} is deprecated in v1.35+, unavailable in v1.38+"
        )
        assert (
            texts["v1beta2"]
            == f"resource.k8s.io/v1beta2 {kind.kind} is deprecated in v1.36+, unavailable in v1.39+"
        )


def test_conversion_knows_every_field_of_both_shapes():
    """A field that a newer schema adds would otherwise stay on the wrong side of a wrapper."""
    v1, v1beta1 = "io.k8s.api.resource.v1", "io.k8s.api.resource.v1beta1"
    exact = set(schema.get(f"{v1}.ExactDeviceRequest").fields)
    assert exact == versions.EXACT_FIELDS
    assert set(schema.get(f"{v1beta1}.DeviceRequest").fields) == exact | {"name", "firstAvailable"}
    inside = set(schema.get(f"{v1beta1}.BasicDevice").fields)
    assert set(schema.get(f"{v1}.Device").fields) == inside | {"name"}
