"""Manifests of every generation, as v1 has them."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.generations import BadMapping, Conversion, Mapping, convert, read_mapping

GPU = Mapping({"fast": {"deviceClassName": "gpu.example.com"}})
EXACT = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 2}}
FLAT = {"name": "gpu", "deviceClassName": "gpu.example.com", "count": 2}


def thing(version: str, kind: str, /, **members: Any) -> dict[str, Any]:
    return {"apiVersion": f"resource.k8s.io/{version}", "kind": kind, "metadata": {"name": "it"}, **members}


def claim(version: str, *requests: Any, **more: Any) -> dict[str, Any]:
    return thing(version, "ResourceClaim", spec={"devices": {"requests": list(requests)}, **more})


def template(version: str, *requests: Any) -> dict[str, Any]:
    inner = {"spec": {"devices": {"requests": list(requests)}}}
    return thing(version, "ResourceClaimTemplate", spec=inner)


def classic(version: str, **spec: Any) -> dict[str, Any]:
    return thing(version, "ResourceClaim", spec={"resourceClassName": "fast", **spec})


def became(document: dict[str, Any], mapping: Mapping = GPU) -> tuple[dict[str, Any], list[str]]:
    found = convert([document], mapping)
    assert not found.impossible
    (only,) = found.documents
    return only, found.notes


def refusal(document: dict[str, Any], mapping: Mapping = GPU) -> str:
    found = convert([document], mapping)
    assert not found.documents
    (why,) = found.impossible
    return why


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (claim("v1alpha3", FLAT), claim("v1", EXACT)),
        (claim("v1beta1", FLAT), claim("v1", EXACT)),
        (claim("v1beta2", EXACT), claim("v1", EXACT)),
        (claim("v1", EXACT), claim("v1", EXACT)),
        (template("v1alpha3", FLAT), template("v1", EXACT)),
        (template("v1beta1", FLAT), template("v1", EXACT)),
        (
            classic("v1alpha1"),
            claim("v1", {"name": "devices", "exactly": {"deviceClassName": "gpu.example.com"}}),
        ),
        (
            thing("v1alpha2", "ResourceClaimTemplate", spec={"spec": {"resourceClassName": "fast"}}),
            template("v1", {"name": "devices", "exactly": {"deviceClassName": "gpu.example.com"}}),
        ),
        (
            thing("v1alpha2", "ResourceClass", driverName="gpu.example.com"),
            thing(
                "v1",
                "DeviceClass",
                spec={"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
            ),
        ),
        (
            thing(
                "v1alpha3",
                "ResourceSlice",
                spec={
                    "driver": "gpu.example.com",
                    "nodeName": "n",
                    "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": "a", "basic": {"capacity": {"memory": "16Gi"}}}],
                },
            ),
            thing(
                "v1",
                "ResourceSlice",
                spec={
                    "driver": "gpu.example.com",
                    "nodeName": "n",
                    "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": "a", "capacity": {"memory": {"value": "16Gi"}}}],
                },
            ),
        ),
    ],
)
def test_it_becomes(before, after, allot_server):
    """And a server takes it, with every field known."""
    found, notes = became(before)
    assert (found, notes) == (after, [])
    is_namespaced = after["kind"].startswith("ResourceClaim")
    plural = "deviceclasses" if after["kind"] == "DeviceClass" else f"{after['kind'].lower()}s"
    resource = allot_server.client().resource("resource.k8s.io", "v1", plural, namespaced=is_namespaced)
    namespace = "default" if is_namespaced else ""
    allot_server.run(resource.create(found, namespace, field_validation="Strict"))


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (classic("v1alpha1", resourceClassName="slow"), "--class slow=NAME"),
        (
            classic("v1alpha2", parametersRef={"apiGroup": "x", "kind": "Gpus", "name": "two"}),
            "say what they ask for in the mapping, parameters.Gpus/two",
        ),
        (classic("v1alpha2", parametersRef="Gpus/two"), "spec.parametersRef is no reference"),
        (classic("v1alpha2", allocationMode="Whenever"), "spec.allocationMode is 'Whenever'"),
        (thing("v1alpha2", "ResourceClass", driverName='x" || "" == "'), "is no name of a driver"),
        (claim("v1alpha3", FLAT, controller="dra.example.com"), "spec.controller"),
        (
            thing("v1alpha2", "ResourceClass", driverName="d", parametersRef={"name": "p"}),
            "write a DeviceClass",
        ),
        (thing("v1alpha2", "ResourceClaimParameters"), "parameters.ResourceClaimParameters/NAME"),
        (thing("v1alpha2", "ResourceSlice", nodeName="n"), "publishes slices itself"),
        (
            thing(
                "v1alpha3",
                "DeviceTaintRule",
                spec={
                    "deviceSelector": {"deviceClassName": "gpu"},
                    "taint": {"key": "a", "effect": "NoExecute"},
                },
            ),
            "would taint more devices",
        ),
        (claim("v1beta1", {**FLAT, "colour": "red"}), "has no field spec.devices.requests[0].colour"),
        (claim("v2", FLAT), "never had a version v2"),
        (thing("v1", "Wish"), "has no kind Wish"),
    ],
)
def test_where_it_is_not_possible_the_reason_is_told(before, words):
    """MOVE1: what is lost in silence would widen what is asked for."""
    assert words in refusal(before)


def test_parameters_are_what_the_mapping_says():
    """Laid over what the class asks for."""
    reference = {"apiGroup": "gpu.example.com", "kind": "Gpus", "name": "two"}
    mapping = read_mapping(
        {
            "classes": {"fast": {"deviceClassName": "gpu.example.com", "count": 1}},
            "parameters": {"Gpus/two": {"count": 2, "selectors": [{"cel": {"expression": "true"}}]}},
        }
    )
    found, notes = became(classic("v1alpha2", parametersRef=reference, allocationMode="Immediate"), mapping)
    (request,) = found["spec"]["devices"]["requests"]
    assert request["exactly"] == {
        "deviceClassName": "gpu.example.com",
        "count": 2,
        "selectors": [{"cel": {"expression": "true"}}],
    }
    assert "no immediate allocation" in notes[0]


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (None, "no object"),
        ({"class": {}}, "'class'"),
        ({"classes": {"fast": "gpu"}}, "classes.fast is no request"),
        ({"classes": {"fast": {}}}, "names no deviceClassName"),
        ({"parameters": []}, None),
        ({"parameters": [1]}, "parameters is no object"),
    ],
)
def test_a_mapping_that_is_none_says_where(written, words):
    if words is None:
        assert read_mapping(written) == Mapping()
        return
    with pytest.raises(BadMapping, match=words):
        read_mapping(written)


def test_a_class_among_the_documents_maps_itself():
    """And one that the mapping gives another name gets that."""
    both = [thing("v1alpha1", "ResourceClass", driverName="gpu.example.com"), classic("v1alpha1")]
    both[0]["metadata"] = {"name": "fast"}
    assert _classes(convert(both, Mapping())) == ["fast", "fast"]
    assert _classes(convert(both, GPU)) == ["gpu.example.com", "gpu.example.com"]


def _classes(found: Conversion) -> list[str]:
    made, claimed = found.documents
    return [made["metadata"]["name"], claimed["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"]]


def test_a_flat_request_under_v1_is_moved_under_exactly():
    """MOVE2: what most people get wrong; the server's own words do not help them."""
    found, notes = became(claim("v1", FLAT))
    assert found == claim("v1", EXACT)
    assert notes == ["ResourceClaim it: request gpu: what it asks for stands under `exactly` since v1beta2"]


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "CronJob"])
def test_pods_name_their_claims_without_source(kind):
    spec = {
        "containers": [],
        "resourceClaims": [{"name": "gpu", "source": {"resourceClaimTemplateName": "gpu-template"}}],
    }
    wrapped = {
        "Pod": {"spec": spec},
        "Deployment": {"spec": {"template": {"spec": spec}}},
        "CronJob": {"spec": {"jobTemplate": {"spec": {"template": {"spec": spec}}}}},
    }
    found = convert([{"apiVersion": "v1", "kind": kind, "metadata": {"name": "it"}, **wrapped[kind]}], GPU)
    assert "source:" not in yaml.safe_dump(found.documents)
    assert "resourceClaimTemplateName: gpu-template" in yaml.safe_dump(found.documents)
    assert found.notes == [f"{kind} it: claim gpu is named without `source` since 1.31"]


def test_a_list_is_its_items_and_what_the_server_wrote_is_left_out():
    """As `kubectl get -o yaml` prints it; negotiations have no successor."""
    stored = claim("v1beta1", FLAT)
    stored["metadata"] |= {
        "uid": "u",
        "resourceVersion": "7",
        "finalizers": ["resource.kubernetes.io/delete"],
    }
    stored["status"] = {"allocation": {"devices": {}}}
    listed = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [stored, thing("v1alpha2", "PodSchedulingContext", spec={})],
    }
    found = convert([listed], GPU)
    assert found.documents == [claim("v1", EXACT)]
    assert ["its allocation is left out" in found.notes[0], "left out" in found.notes[1]] == [True, True]
    assert "uid" in stored["metadata"], "what was handed in stays as it is"


def test_what_is_not_ours_stays_as_it_is():
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it"}, "data": {"a": "b"}}
    assert convert([other], GPU).documents == [other]


def test_a_class_with_structured_parameters_is_one_over_the_devices_of_its_driver():
    """v1alpha2 of 1.30."""
    found, (note,) = became(
        thing("v1alpha2", "ResourceClass", driverName="d.example.com", structuredParameters=True)
    )
    assert (found["kind"], "structuredParameters" in found) == ("DeviceClass", False)
    assert "structuredParameters is left out" in note


@pytest.mark.parametrize(
    "one",
    [
        thing(
            "v1alpha2", "ResourceClass", driverName="d.example.com", suitableNodes={"nodeSelectorTerms": [{}]}
        ),
        thing("v1alpha3", "DeviceClass", spec={"suitableNodes": {"nodeSelectorTerms": [{}]}}),
    ],
)
def test_that_a_class_reaches_more_nodes_than_before_is_told(one):
    """MOVE1: v1 has no such member."""
    found, (note,) = became(one)
    assert "suitableNodes is left out" in note
    assert "suitableNodes" not in found.get("spec", found)


def test_what_kubectl_lists_can_be_created_again():
    """Pods and others too: with uid and version no server would take them."""
    metadata = {
        "name": "p",
        "uid": "u",
        "resourceVersion": "7",
        "creationTimestamp": "then",
        "labels": {"a": "b"},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": []},
        "status": {"phase": "x"},
    }
    used = {**claim("v1beta1", FLAT), "status": {"allocation": {"devices": {}}}}
    found = convert([{"apiVersion": "v1", "kind": "List", "items": [pod, used]}], GPU)
    kept = {"name": "p", "labels": {"a": "b"}}
    assert found.documents[0] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": kept,
        "spec": {"containers": []},
    }
    assert "its allocation is left out" in found.notes[0]
    alone = convert([pod], GPU).documents
    assert alone == [pod], "what is no list stays as it is"


VERSIONS = ["v1alpha1", "v1alpha2", "v1alpha3", "v1beta1", "v1beta2", "v1", "v2"]
KINDS = ["ResourceClaim", "ResourceClaimTemplate", "ResourceClass", "DeviceClass", "ResourceSlice"]
KINDS += ["DeviceTaintRule", "PodScheduling", "ResourceClaimParameters", "None"]
MEMBERS = st.sampled_from(
    [
        "metadata",
        "name",
        "spec",
        "devices",
        "requests",
        "basic",
        "capacity",
        "exactly",
        "deviceClassName",
        "driverName",
        "resourceClassName",
        "parametersRef",
        "status",
        "allocation",
        "config",
        "firstAvailable",
        "deviceSelector",
        "selectors",
        "suitableNodes",
        "taint",
        "nodeSelector",
        "pool",
        "attributes",
    ]
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(MEMBERS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(VERSIONS), st.sampled_from(KINDS), st.dictionaries(MEMBERS, JUNK, max_size=4))
def test_whatever_a_file_holds_it_is_converted_or_told_why(version, kind, members):
    """MOVE1: nobody is shown a traceback, and nothing goes in silence."""
    found = convert([{**members, "apiVersion": f"resource.k8s.io/{version}", "kind": kind}], GPU)
    assert len(found.documents) + len(found.impossible) == 1 or "left out" in found.notes[0]
    yaml.safe_dump_all(found.documents)
