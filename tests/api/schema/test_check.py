"""Objects against the shape of their kind."""

import base64
import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import Quantity
from allot.api.schema import FINE, apply_defaults, check, get
from allot.api.schema.compile import PLAIN_QUANTITY

POD = get("io.k8s.api.core.v1.Pod")
SECRET = get("io.k8s.api.core.v1.Secret")
DEPLOYMENT = get("io.k8s.api.apps.v1.Deployment")
CRD = get("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition")


def pod(**spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]} | spec,
    }


def test_a_proper_pod_is_fine():
    assert check(pod(terminationGracePeriodSeconds=30), POD) is FINE


def test_unknown_fields_are_named_and_taken_out():
    """S3: nothing that has no type goes further than the check."""
    odd = pod(containers=[{"name": "c", "colour": "red"}], foo={"bar": 1})

    problems = check(odd, POD)

    assert problems.unknown == ("spec.containers[0].colour", "spec.foo")
    assert not problems.malformed
    assert odd == pod(containers=[{"name": "c"}])


def test_free_form_maps_have_no_unknown_fields():
    assert check(pod(nodeSelector={"anything": "goes"}), POD) is FINE


@pytest.mark.parametrize(
    "spec, text",
    [
        ({"priority": "high"}, "cannot unmarshal string into Go struct field PodSpec.spec.priority"),
        ({"priority": 2**31}, "cannot unmarshal number 2147483648 into"),
        ({"priority": 1.5}, "cannot unmarshal number 1.5 into"),
        ({"priority": True}, "cannot unmarshal bool into"),
        ({"terminationGracePeriodSeconds": 2**63}, "of type int64"),
        ({"hostNetwork": "yes"}, "of type bool"),
        ({"nodeName": 7}, "number into Go struct field PodSpec.spec.nodeName of type string"),
        ({"containers": {}}, "cannot unmarshal object into Go struct field PodSpec.spec.containers"),
        ({"containers": ["c"]}, "of type v1.Container"),
        ({"nodeSelector": {"a": 1}}, "PodSpec.spec.nodeSelector.a of type string"),
        ({"overhead": {"cpu": "lots"}}, "not a quantity"),
        ({"overhead": {"cpu": "1e3000000"}}, "quantities are"),
        ({"overhead": {"cpu": True}}, "of type resource.Quantity"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_type_is_malformed(spec, text):
    assert text in check(pod(**spec), POD).malformed


def test_what_is_malformed_in_a_list_is_named_without_its_index():
    problems = check(pod(containers=[{"name": "c"}, {"name": 1}]), POD)
    assert "Container.spec.containers.name of type string" in problems.malformed


def test_null_means_not_given():
    odd = pod(nodeName=None, containers=[{"name": "c", "args": [None, "x"], "resources": None}])

    assert check(odd, POD) is FINE
    assert odd == pod(containers=[{"name": "c", "args": ["", "x"]}])


def test_the_null_stamps_of_typed_clients_are_dropped():
    stamped = {
        "metadata": {"creationTimestamp": None},
        "spec": {"template": {"metadata": {"creationTimestamp": None}, "spec": {"containers": []}}},
    }
    assert check(stamped, DEPLOYMENT) is FINE
    assert stamped == {"metadata": {}, "spec": {"template": {"metadata": {}, "spec": {"containers": []}}}}
    for odd in ([], {"metadata": []}, {"spec": 1}, {"spec": {"template": []}}):
        assert check(odd, DEPLOYMENT).malformed


def test_nulls_stay_for_a_validator_that_wants_to_see_them():
    odd = pod(nodeName=None)
    assert check(odd, POD, drop_nulls=False) is FINE
    assert odd["spec"]["nodeName"] is None


def test_quantities_are_kept_in_their_canonical_form():
    given = {
        "a": 2,
        "b": "128Mi",
        "c": 0.5,
        "d": "1000m",
        "e": "2048Ki",
        "f": " 1e3 ",
        "g": "1000",
        "h": "1500m",
    }
    odd = pod(overhead=given)
    assert check(odd, POD) is FINE
    assert odd["spec"]["overhead"] == {
        "a": "2", "b": "128Mi", "c": "500m", "d": "1", "e": "2Mi", "f": "1e3", "g": "1k", "h": "1500m",
    }  # fmt: skip


@given(st.from_regex(PLAIN_QUANTITY))
def test_a_quantity_that_is_waved_through_is_canonical(text):
    assert str(Quantity.parse(text)) == text


@pytest.mark.parametrize(
    "given, kept",
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"),
        ("2026-01-02T03:04:05.999Z", "2026-01-02T03:04:05Z"),
    ],
)
def test_times_are_kept_as_whole_seconds_of_utc(given, kept):
    odd = pod()
    odd["metadata"]["creationTimestamp"] = given
    assert check(odd, POD) is FINE
    assert odd["metadata"]["creationTimestamp"] == kept


@pytest.mark.parametrize(
    "given", ["yesterday", "2026-01-02", "2026-01-02T03:04:05", "0001-01-01T00:00:00+23:00"]
)
def test_other_times_are_malformed(given):
    odd = pod()
    odd["metadata"]["creationTimestamp"] = given
    assert "parsing time" in check(odd, POD).malformed


def test_leases_keep_microseconds():
    lease = {"spec": {"renewTime": "2026-01-02T03:04:05Z"}}
    assert check(lease, get("io.k8s.api.coordination.v1.Lease")) is FINE
    assert lease["spec"]["renewTime"] == "2026-01-02T03:04:05.000000Z"


@given(st.binary(max_size=40))
def test_secrets_hold_base64(data):
    assert check({"data": {"k": base64.b64encode(data).decode()}}, SECRET) is FINE
    assert "base64" in check({"data": {"k": "%"}}, SECRET).malformed


def test_a_type_may_contain_itself():
    """JSONSchemaProps inside JSONSchemaProps."""
    inner = {"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-int-or-string": True}}}
    crd = {
        "spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"properties": {"spec": inner}}}}]}
    }
    assert check(crd, CRD) is FINE
    inner["properties"]["a"]["typo"] = 1
    where = "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.a.typo"
    assert check(crd, CRD).unknown == (where,)


def test_schema_defaults_are_filled_in_on_request_only():
    plain = pod(containers=[{"name": "c", "ports": [{"containerPort": 80}]}])
    assert check(plain, POD) is FINE
    assert "protocol" not in plain["spec"]["containers"][0]["ports"][0]
    check(plain, POD)
    apply_defaults(plain, POD)
    assert plain["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


def test_the_list_of_unknown_fields_is_bounded():
    odd = pod(**{f"x{i}": 1 for i in range(5000)})
    assert len(check(odd, POD).unknown) == 100
    assert odd == pod(), "all of them are taken out"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["spec", "metadata", "template", "name", "containers", "labels", "replicas", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150)
@given(st.dictionaries(st.sampled_from(["spec", "metadata", "status", "kind", "x"]), json_values, max_size=4))
def test_checking_twice_changes_nothing_more(fields):
    """Whatever comes in: an answer, no exception; and the usual form is a fixed point."""
    first = check(fields, DEPLOYMENT)
    if first.malformed:
        return
    apply_defaults(fields, DEPLOYMENT)
    usual = copy.deepcopy(fields)
    again = check(fields, DEPLOYMENT)
    assert (again.unknown, again.mistyped) == ((), first.mistyped)
    assert fields == usual
