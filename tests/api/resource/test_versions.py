"""Conversions lose nothing: V1, V2, V3 of `versions`."""

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import resource, schema
from allot.api.resource import versions
from api.resource.objects import alternative, claim, device, either, request, slice_, template
from api.resource.writes import create, shown

CLAIM, TEMPLATE, SLICE = resource.RESOURCE_CLAIM, resource.RESOURCE_CLAIM_TEMPLATE, resource.RESOURCE_SLICE

json_values = st.recursive(
    st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=2),
    max_leaves=4,
)
# Names that no version knows. Few, so that both sides of a wrapper often use the same one.
unknown = st.dictionaries(st.sampled_from(["futureA", "futureB"]), json_values, max_size=2)

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
    made = {"name": draw(st.sampled_from("abc")), **draw(unknown)}
    if draw(st.booleans()):
        made["exactly"] = {**draw(asked), **draw(unknown)}
    else:
        made["firstAvailable"] = [{"name": "s", **draw(asked), **draw(unknown)}]
    return made


@st.composite
def hub_devices(draw):
    made = {"name": draw(st.sampled_from("abc")), **draw(unknown)}
    if draw(st.booleans()):
        made["attributes"] = {"model": {"string": "x", **draw(unknown)}}
    if draw(st.booleans()):
        made["allNodes"] = draw(st.booleans())
    beside = draw(unknown)
    if beside:
        made["basic"] = beside
    return made


def there_and_back(kind, hub):
    version = kind.version("v1beta1")
    return version.to_hub(version.from_hub(copy.deepcopy(hub)))


@settings(max_examples=150)
@given(st.lists(hub_requests(), max_size=3), unknown)
def test_a_claim_survives_v1beta1(requests, extra):
    """V1, with fields that neither version knows, at every level."""
    for kind, hub in ((CLAIM, claim(*requests, **extra)), (TEMPLATE, template(*requests, **extra))):
        assert there_and_back(kind, hub) == hub


@settings(max_examples=150)
@given(st.lists(hub_devices(), max_size=3), unknown)
def test_a_slice_survives_v1beta1(devices, extra):
    """V1."""
    hub = slice_(*devices, **extra)
    assert there_and_back(SLICE, hub) == hub


@settings(max_examples=150)
@given(
    st.lists(
        st.builds(lambda basic, beside: {"name": "d", **beside, "basic": basic}, unknown, unknown), max_size=3
    )
)
def test_a_v1beta1_slice_survives_the_hub(devices):
    """V2: what lies beside `basic` and what lies in it do not mix."""
    version, body = SLICE.version("v1beta1"), slice_(*devices)
    assert version.from_hub(version.to_hub(copy.deepcopy(body))) == body


@settings(max_examples=150)
@given(
    st.lists(
        st.builds(lambda name, flat, extra: {"name": name, **extra, **flat}, st.just("r"), asked, unknown),
        min_size=1,
        max_size=3,
    )
)
def test_a_v1beta1_claim_survives_the_hub(requests):
    """V2."""
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
    """V3: a v1beta1 body sent to v1 has neither flat fields nor a wrapper."""
    flat = create(CLAIM, claim({"name": "r", "deviceClassName": "gpu"}))
    assert flat.unknown == ("spec.devices.requests[0].deviceClassName",)
    assert flat.causes == ["spec.devices.requests[0] required"]
    wrapped = create(SLICE, slice_({"name": "d", "basic": {"attributes": {"a": {"int": 1}}, "future": 1}}))
    assert wrapped.unknown == ("spec.devices[0].basic",)
    assert wrapped.hub["spec"]["devices"] == [{"name": "d", "basic": {"future": 1}}]


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
    """A field that a newer schema adds would otherwise pass for an unknown one."""
    v1, v1beta1 = "io.k8s.api.resource.v1", "io.k8s.api.resource.v1beta1"
    exact = set(schema.get(f"{v1}.ExactDeviceRequest").fields)
    assert exact == versions.EXACT_FIELDS
    assert set(schema.get(f"{v1beta1}.DeviceRequest").fields) == exact | {"name", "firstAvailable"}
    assert set(schema.get(f"{v1}.Device").fields) == versions.DEVICE_FIELDS
    assert set(schema.get(f"{v1beta1}.BasicDevice").fields) == versions.DEVICE_FIELDS - {"name"}
