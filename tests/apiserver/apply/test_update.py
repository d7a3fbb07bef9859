"""Who owns what after ordinary writes."""

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api.schema import from_structural, get
from allot.apiserver.apply import Author, track_update
from allot.apiserver.apply.compare import compare
from allot.apiserver.apply.extract import created
from allot.apiserver.apply.fieldset import difference, intersection, paths, union

from .worlds import deployments

DEPLOYMENT = get("io.k8s.api.apps.v1.Deployment")
CLAIM = get("io.k8s.api.resource.v1.ResourceClaim")
KUBECTL = Author("kubectl", "apps/v1")
CONTROLLER = Author("controller", "apps/v1", "status")


def deployment(**spec):
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "n", "uid": "u", "resourceVersion": "1", "labels": {"a": "b"}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"name": "t"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }
        | spec,
    }


def owned(managed):
    return {entry["manager"]: set(paths(entry["fieldsV1"])) for entry in managed}


def write(live, new, author, now="t1", schema=DEPLOYMENT):
    new = copy.deepcopy(new)
    managed = track_update(live, new, author, now, schema)
    if managed:
        new["metadata"]["managedFields"] = managed
    else:
        new["metadata"].pop("managedFields", None)
    return new


def test_a_creator_owns_all_it_said_and_nothing_the_server_writes():
    (entry,) = track_update(None, deployment(), KUBECTL, "t0", DEPLOYMENT)
    assert entry == {
        "manager": "kubectl",
        "operation": "Update",
        "apiVersion": "apps/v1",
        "time": "t0",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {
                "f:replicas": {},
                "f:selector": {},
                "f:template": {
                    "f:metadata": {"f:name": {}},
                    "f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}}}},
                },
            },
        },
    }


def test_an_object_that_says_nothing_has_no_owner():
    """managedFields are absent if the object sets no fields."""
    claim = {"kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": {}, "status": {}}
    assert track_update(None, claim, Author("x", "resource.k8s.io/v1"), "t", CLAIM) == []


def test_requests_of_a_claim_are_owned_as_a_whole():
    claim = {"metadata": {}, "spec": {"devices": {"requests": [{"name": "r", "exactly": {"count": 1}}]}}}
    (entry,) = track_update(None, claim, Author("x", "resource.k8s.io/v1"), "t", CLAIM)
    assert entry["fieldsV1"] == {"f:spec": {"f:devices": {"f:requests": {}}}}


def test_whoever_changes_a_field_takes_it():
    live = write(None, deployment(), KUBECTL, "t0")
    new = copy.deepcopy(live)
    new["spec"]["replicas"] = 3
    new = write(live, new, Author("scaler", "apps/v1"))
    after = owned(new["metadata"]["managedFields"])
    assert after["scaler"] == {".spec.replicas"}
    assert ".spec.replicas" not in after["kubectl"]


def test_main_and_status_writes_of_one_manager_are_two_entries():
    live = write(None, deployment(), Author("controller", "apps/v1"), "t0")
    new = copy.deepcopy(live) | {"status": {"replicas": 1}}
    managed = write(live, new, CONTROLLER)["metadata"]["managedFields"]
    assert [(e.get("subresource"), e["time"]) for e in managed] == [(None, "t0"), ("status", "t1")]
    assert managed[1]["fieldsV1"] == {"f:status": {"f:replicas": {}}}


def test_elements_of_a_list_by_key_are_owned_one_by_one():
    live = write(None, deployment(), KUBECTL, "t0")
    new = copy.deepcopy(live) | {"status": {"conditions": [{"type": "Available", "status": "True"}]}}
    after = owned(write(live, new, CONTROLLER)["metadata"]["managedFields"])
    assert after["controller"] >= {
        ".status.conditions",
        '.status.conditions[type="Available"]',
        '.status.conditions[type="Available"].status',
    }


def test_what_is_gone_has_no_owner():
    live = write(None, deployment(), KUBECTL, "t0")
    new = copy.deepcopy(live)
    del new["metadata"]["labels"]
    new = write(live, new, Author("cleaner", "apps/v1"))
    assert not any("labels" in path for path in owned(new["metadata"]["managedFields"])["kubectl"])
    assert "cleaner" not in owned(new["metadata"]["managedFields"])


def test_a_write_that_changes_nothing_leaves_the_record_alone():
    """UPDATE4."""
    live = write(None, deployment(), KUBECTL, "t0")
    assert write(live, live, KUBECTL, "t9") == live
    moved = copy.deepcopy(live)
    moved["metadata"]["resourceVersion"] = "7"
    assert (
        write(live, moved, Author("other", "apps/v1"), "t9")["metadata"]["managedFields"]
        == live["metadata"]["managedFields"]
    )


def test_a_client_that_sends_no_record_does_not_delete_it():
    live = write(None, deployment(), KUBECTL, "t0")
    for sent in (
        None,
        [],
        [{"manager": "x", "operation": "Guess", "fieldsV1": {}}],
        [{"operation": "Update", "fieldsV1": {"x": {}}}],
    ):
        new = copy.deepcopy(live)
        new["metadata"]["managedFields"] = sent
        assert write(live, new, KUBECTL)["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_a_client_may_rewrite_the_record_but_not_through_a_subresource():
    live = write(None, deployment(), KUBECTL, "t0")
    new = copy.deepcopy(live)
    new["metadata"]["managedFields"] = [live["metadata"]["managedFields"][0] | {"manager": "renamed"}]
    assert owned(write(live, new, KUBECTL)["metadata"]["managedFields"]).keys() == {"renamed"}
    assert owned(write(live, new, CONTROLLER)["metadata"]["managedFields"]).keys() == {"kubectl"}


def test_one_empty_entry_forgets_all_owners_until_the_next_apply():
    live = write(None, deployment(), KUBECTL, "t0")
    new = copy.deepcopy(live)
    new["metadata"]["managedFields"] = [{}]
    forgotten = write(live, new, KUBECTL)
    assert "managedFields" not in forgotten["metadata"]
    scaled = deployment(replicas=5)
    assert "managedFields" not in write(forgotten, scaled, KUBECTL)["metadata"]


def test_many_updaters_become_one():
    live = write(None, deployment(), Author("m00", "apps/v1"), "t00")
    for i in range(1, 15):
        new = copy.deepcopy(live)
        new["metadata"]["labels"][f"l{i}"] = "x"
        live = write(live, new, Author(f"m{i:02}", "apps/v1"), f"t{i:02}")
    after = owned(live["metadata"]["managedFields"])
    assert len(after) == 10
    assert after["ancient-changes"] >= {".metadata.labels.l1", ".metadata.labels.l5", ".spec.replicas"}
    assert after["m14"] == {".metadata.labels.l14"}


def test_entries_of_another_version_are_judged_in_that_version():
    schema = get("io.k8s.api.resource.v1.ResourceSlice")
    beta = get("io.k8s.api.resource.v1beta1.ResourceSlice")

    class Versions:
        def convert(self, fields, version):
            if version != "resource.k8s.io/v1beta1":
                return None
            out = copy.deepcopy(fields)
            out["spec"]["nodeName"] = out["spec"].get("nodeName", "")
            return out, beta

        def keep_parts(self, version):
            return False

    live = {"metadata": {}, "spec": {"driver": "d", "nodeName": "n"}}
    old = {
        "manager": "x",
        "operation": "Update",
        "apiVersion": "resource.k8s.io/v1beta1",
        "time": "t0",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:driver": {}, "f:nodeName": {}}},
    }
    unserved = old | {"manager": "y", "apiVersion": "resource.k8s.io/v1alpha1"}
    live["metadata"]["managedFields"] = [old, unserved]
    new = copy.deepcopy(live)
    new["spec"]["nodeName"] = "m"
    managed = track_update(live, new, Author("z", "resource.k8s.io/v1"), "t1", schema, Versions())
    assert owned(managed) == {"x": {".spec.driver"}, "z": {".spec.nodeName"}}


def test_custom_resources_that_keep_unknown_fields_are_taken_apart():
    open_spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = from_structural({"type": "object", "properties": {"spec": open_spec}})
    (entry,) = track_update(
        None, {"metadata": {}, "spec": {"a": {"b": [1]}}}, Author("x", "e/v1"), "t", schema
    )
    assert entry["fieldsV1"] == {"f:spec": {".": {}, "f:a": {".": {}, "f:b": {}}}}
    live = {"metadata": {"managedFields": [entry]}, "spec": {"a": {"b": [1]}}}
    managed = track_update(
        live, {"metadata": {}, "spec": {"a": {"b": [1], "c": 2}}}, Author("y", "e/v1"), "t", schema
    )
    assert owned(managed)["y"] == {".spec.a.c"}


def test_an_unknown_field_of_a_known_kind_has_an_owner_too():
    odd = deployment() | {"template": {"x": 1}}
    odd["spec"]["strategy2"] = {"deep": {"er": 1}}
    assert {".template", ".spec.strategy2"} <= owned(track_update(None, odd, KUBECTL, "t", DEPLOYMENT))[
        "kubectl"
    ]
    changed = copy.deepcopy(odd)
    changed["spec"]["strategy2"] = {"deep": {"er": 2}}
    assert set(paths(compare(odd, changed, DEPLOYMENT).changed)) == {".spec.strategy2"}


# --- for every small deployment ---------------------------------------------------------------


@given(deployments)
def test_making_is_comparing_with_nothing(new):
    changes = compare({}, new, DEPLOYMENT)
    made = created(new, DEPLOYMENT)
    assert not difference(made, changes.written)
    assert all(path.endswith((".replicas", ".name")) for path in paths(difference(changes.written, made)))


@settings(max_examples=200)
@given(deployments, deployments)
def test_a_change_names_each_field_once(old, new):
    changes = compare(old, new, DEPLOYMENT)
    parts = [changes.changed, changes.added, changes.removed]
    for i, one in enumerate(parts):
        for other in parts[i + 1 :]:
            assert not intersection(one, other)
    back = compare(new, old, DEPLOYMENT)
    assert (back.changed, back.added, back.removed) == (changes.changed, changes.removed, changes.added)
    assert not compare(old, copy.deepcopy(old), DEPLOYMENT)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(["ann", "bob", "cat"]), deployments), min_size=2, max_size=5))
def test_every_field_has_one_owner_after_any_history(history):
    """UPDATE1, UPDATE2, UPDATE3: updaters partition what is there."""
    live = None
    for i, (who, new) in enumerate(history):
        before = live
        live = write(live, new, Author(who, "apps/v1"), f"t{i}")
        if before is not None and "managedFields" not in before["metadata"]:
            return
        sets = [entry["fieldsV1"] for entry in live["metadata"].get("managedFields", [])]
        for a, one in enumerate(sets):
            for other in sets[a + 1 :]:
                assert not intersection(one, other)
        everything = {}
        for one in sets:
            everything = union(everything, one)
        there = compare({}, live, DEPLOYMENT).written
        assert not difference(created(live, DEPLOYMENT), everything)
        assert not difference(everything, union(there, compare(live, {}, DEPLOYMENT).removed))
