"""Typed views read what the API writes, and nothing is lost that they know."""

import msgspec

from allot.api import Object, meta, resource, schema
from api.resource.objects import allocation, claim, device, pod_reference, report, request, slice_


def written(view):
    return msgspec.json.decode(msgspec.json.encode(view))


def test_a_view_reads_and_writes_the_apis_own_names():
    body = slice_(device("a", attributes={"x": {"int": 1}, "y": {"strings": ["s"]}}, bindsToNode=True))
    seen = meta.view(resource.ResourceSlice, body)
    assert seen.spec.devices[0].attributes["x"].int_ == 1
    assert written(seen) == body


def test_null_and_absent_read_the_same():
    """The server shows `requests: null` for a claim that asks for nothing."""
    nothing = {
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": None}},
        "status": {"allocation": None},
    }
    assert meta.view(resource.ResourceClaim, nothing).spec.devices.requests == ()
    assert meta.read(resource.ResourceClaim, msgspec.json.encode(nothing)) == meta.view(
        resource.ResourceClaim, nothing
    )


def test_an_object_shows_a_view_of_a_claim_that_asks_for_nothing():
    found = Object(b'{"metadata":{"name":"c"},"spec":{"devices":{"requests":null}},"status":{}}')
    assert found.view(resource.ResourceClaim).spec == resource.ResourceClaimSpec()


def test_an_allocated_claim_reads_whole():
    status = {
        "allocation": allocation(node="n1"),
        "reservedFor": [pod_reference()],
        "devices": [report(shareID="s")],
    }
    seen = meta.view(resource.ResourceClaim, {**claim(request(count=2)), "status": status})
    assert seen.status.allocation.devices.results[0].device == "gpu-0"
    assert seen.status.allocation.node_selector.node_selector_terms[0].match_fields[0].values == ("n1",)
    assert seen.status.devices[0].share_id == "s"
    assert written(seen.status) == status


def test_the_controller_is_the_owner_that_says_so():
    owners = [{"uid": "a"}, {"uid": "b", "controller": True}]
    found = meta.view(meta.ObjectMeta, {"ownerReferences": owners}).controller
    assert found is not None
    assert found.uid == "b"
    assert meta.ObjectMeta().controller is None


def _names(view):
    return set(view.__struct_encode_fields__)


def test_every_field_of_v1_has_a_name_in_the_views():
    """The schema table is upstream's 1.37; a view that lacks one of its fields is out of date."""
    for name in resource.__all__:
        view = getattr(resource, name)
        if isinstance(view, type) and issubclass(view, meta.View):
            own = f"io.k8s.api.resource.v1.{name}"  # or a type of what classic claims have besides
            shape = schema.get(own if own in schema.names() else own.replace(".v1.", ".v1alpha1."))
            known = set(shape.fields) - ({"apiVersion", "kind"} if "apiVersion" in shape.fields else set())
            assert known == _names(view), name
