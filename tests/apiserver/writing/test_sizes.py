"""How large an object may become, on every way that writes one."""

import copy
import json
import tracemalloc

import pytest

from allot.api import OBJECT_BYTES_MAX
from allot.api.field import ERRORS_SHOWN_MAX
from allot.store import Put

from ..test_custom import CRDS, DEFINITION, WIDGETS

PIECE = 250_000
MERGE = "application/merge-patch+json"


@pytest.fixture
def widgets(api):
    """A kind that takes anything in spec.free and in status: nothing but the size bounds it."""
    api("POST", CRDS, DEFINITION)
    api("POST", WIDGETS, {"metadata": {"name": "w"}, "spec": {"size": 1}})
    return api


def stored_size(api, key="/objects/example.com/widgets/default/w"):
    return len(api.run(api.store.get(key)).value)


def refused(answer):
    assert (answer.status, answer.body["reason"]) == (413, "RequestEntityTooLarge"), answer.body
    assert "is too large to be stored" in answer.body["message"]
    assert len(json.dumps(answer.body)) < 1000
    return True


def test_an_object_that_is_patched_again_and_again_stops_growing(widgets):
    """It grew to 148 MB, and the process with it."""
    answers = [
        widgets("PATCH", f"{WIDGETS}/w", {"spec": {"free": {f"k{n}": "x" * PIECE}}}, media=MERGE, dryRun=dry)
        for n in range(8)
        for dry in ("All", "")
    ]
    assert [one.status for one in answers] == [200] * 12 + [413] * 4
    assert all(refused(one) for one in answers[12:])
    assert stored_size(widgets) <= OBJECT_BYTES_MAX


def test_on_every_way(widgets):
    api, large = widgets, {"a": "x" * OBJECT_BYTES_MAX}
    new = {"metadata": {"name": "new"}, "spec": {"size": 1, "free": large}}
    assert refused(api("POST", WIDGETS, new))
    assert refused(api("POST", WIDGETS, new, dryRun="All"))
    live = api("GET", f"{WIDGETS}/w").body
    assert refused(api("PUT", f"{WIDGETS}/w", {**live, "spec": {"size": 1, "free": large}}))
    assert refused(api("PUT", f"{WIDGETS}/w/status", {**live, "status": large}))
    assert refused(api("PATCH", f"{WIDGETS}/w/status", {"status": large}, media=MERGE))
    add = [{"op": "add", "path": "/spec/free", "value": large}]
    assert refused(api("PATCH", f"{WIDGETS}/w", add, media="application/json-patch+json"))
    how = {"media": "application/apply-patch+yaml", "fieldManager": "me"}
    config = {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 1, "free": large}}
    assert refused(api("PATCH", f"{WIDGETS}/w", config, **how, force="true"))
    assert refused(api("PATCH", f"{WIDGETS}/other", config, **how))
    assert api("GET", f"{WIDGETS}/w").body == live
    assert api("GET", f"{WIDGETS}/other").status == api("GET", f"{WIDGETS}/new").status == 404


def test_copies_of_a_json_patch_count(widgets):
    first = {"op": "add", "path": "/spec/free", "value": {"k0": "x" * PIECE}}
    copies = [{"op": "copy", "from": "/spec/free/k0", "path": f"/spec/free/k{n}"} for n in range(1, 8)]
    assert refused(widgets("PATCH", f"{WIDGETS}/w", [first, *copies], media="application/json-patch+json"))


def test_what_an_earlier_version_stored_larger_may_shrink_and_go_and_not_grow(widgets):
    api, key = widgets, "/objects/example.com/widgets/default/w"
    value = json.loads(api.run(api.store.get(key)).value)
    value["metadata"]["finalizers"] = ["example.com/held"]
    value["spec"]["free"] = {f"k{n}": "x" * PIECE for n in range(8)}
    api.run(api.store.transact([], [Put(key, json.dumps(value, separators=(",", ":")).encode())]))
    assert stored_size(api) > OBJECT_BYTES_MAX
    assert refused(api("PATCH", f"{WIDGETS}/w", {"spec": {"free": {"k8": "y"}}}, media=MERGE))
    assert api("PATCH", f"{WIDGETS}/w", {"spec": {"free": {"k7": None}}}, media=MERGE).status == 200
    assert api("DELETE", f"{WIDGETS}/w").body["metadata"]["deletionTimestamp"]
    assert api("PATCH", f"{WIDGETS}/w", {"metadata": {"finalizers": None}}, media=MERGE).status == 200
    assert api("GET", f"{WIDGETS}/w").status == 404


def bulky(default, schema):
    definition = copy.deepcopy(DEFINITION)
    element = {"type": "object", "properties": {"bulk": {**schema, "default": default}}}
    (version,) = definition["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["items"] = {"type": "array", "items": element}
    spec["properties"]["more"] = {"type": "object", "additionalProperties": element}
    return definition


@pytest.mark.parametrize(
    "default, schema",
    [
        ("x" * 600_000, {"type": "string"}),
        (["x" * 10] * 50_000, {"type": "array", "items": {"type": "string"}}),
    ],
    ids=["a long text", "a long list"],
)
def test_defaults_are_counted_before_they_are_filled_in(api, default, schema):
    """A long one in each of a thousand items took two gigabytes."""
    assert api("POST", CRDS, bulky(default, schema)).status == 201
    made = api("POST", WIDGETS, {"metadata": {"name": "one"}, "spec": {"size": 1, "items": [{}]}})
    assert made.body["spec"]["items"] == [{"bulk": default}]
    tracemalloc.start()
    try:
        for many in ({"items": [{}] * 1_000}, {"more": {f"k{n}": {} for n in range(1_000)}}):
            body = {"metadata": {"name": "many"}, "spec": {"size": 1, **many}}
            answer = api("POST", WIDGETS, body)
            assert (answer.status, answer.body["reason"]) == (413, "RequestEntityTooLarge")
            assert "the defaults of the schema" in answer.body["message"]
        assert tracemalloc.get_traced_memory()[1] < 100 * 1024 * 1024
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {f"!{n}": "!" for n in range(20_000)}},
        {"labels": {"k" * 15_000 + str(n): "v" * 15_000 for n in range(40)}},
        {"finalizers": ["!"] * 20_000},
        {"ownerReferences": [{"controller": True}] * 20_000},
    ],
    ids=["many labels", "long labels", "finalizers", "owners"],
)
def test_a_refusal_is_no_longer_than_a_person_reads(api, metadata):
    """A request of a megabyte had an answer of a hundred."""
    answer = api("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a", **metadata}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert len(json.dumps(answer.body)) < 500_000
    assert len(answer.body["details"]["causes"]) <= ERRORS_SHOWN_MAX
    if len(answer.body["details"]["causes"]) == ERRORS_SHOWN_MAX:
        assert " more]" in answer.body["message"]
