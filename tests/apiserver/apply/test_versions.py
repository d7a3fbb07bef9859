"""Owners who wrote in another version: what is decided at a glance is what a conversion would show."""

import copy
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import Gates, classic
from allot.apiserver.apply import Author, created, track_update
from allot.apiserver.registry import Registry
from allot.apiserver.writing.ownership import Ownership, shown_in
from api.classic.test_versions import specs, statuses

GROUP = "resource.k8s.io"
REGISTRY = Registry(classic.served(Gates({"DynamicResourceAllocation": True})))
CLAIM = REGISTRY.kind(GROUP, "resourceclaims")
VERSIONS = [one.name for one in CLAIM.versions]

metadata = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2),
        "finalizers": st.lists(st.sampled_from(["a.example.com/x", "b.example.com/y"]), unique=True),
        "resourceVersion": st.sampled_from("12"),
    },
)
claims = st.fixed_dictionaries({"metadata": metadata, "spec": specs, "status": statuses})


class AlwaysConverted:
    """The same versions, none of which says that it keeps parts."""

    def __init__(self, real):
        self.convert = real.convert

    def keep_parts(self, version):
        return False


def served(version):
    return REGISTRY.served(GROUP, version, "resourceclaims")


def owned_by(claim, version, parts):
    here = served(version)
    fields = created(shown_in(claim, here), here.version.shape())
    return {
        "manager": f"who wrote {version} {sorted(parts)}",
        "operation": "Update",
        "apiVersion": here.api_version,
        "time": "t0",
        "fieldsType": "FieldsV1",
        "fieldsV1": {edge: below for edge, below in fields.items() if edge.removeprefix("f:") in parts},
    }


@st.composite
def changed(draw):
    """A claim, in which one part or several are another one's, and who has written what of it."""
    old, other = draw(claims), draw(claims)
    parts = draw(st.sets(st.sampled_from(["metadata", "spec", "status"]), min_size=1))
    authors = draw(
        st.lists(
            st.tuples(
                st.sampled_from(VERSIONS), st.frozensets(st.sampled_from(["metadata", "spec", "status"]))
            ),
            max_size=3,
            unique=True,
        )
    )
    managed = [owned_by(old, *one) for one in authors]
    old["metadata"] |= {"name": "c", "managedFields": [one for one in managed if one["fieldsV1"]]}
    new = copy.deepcopy({**old, **{part: other[part] for part in parts if part != "metadata"}})
    if "metadata" in parts:
        new["metadata"] = {**other["metadata"], "name": "c", "managedFields": managed}
    return old, new


@settings(max_examples=300)
@given(changed(), st.sampled_from(VERSIONS))
def test_owners_in_other_versions_lose_what_they_would_lose_by_a_conversion(change, version):
    here = served(version)
    old, new = (shown_in(one, here) for one in change)
    versions = Ownership(REGISTRY).versions(here)
    author = Author("writer", here.api_version)
    shape = here.version.shape()
    assert track_update(old, new, author, "t1", shape, versions) == track_update(
        old, new, author, "t1", shape, AlwaysConverted(versions)
    )


class NeverConverted:
    def convert(self, fields, version):
        raise AssertionError("nothing needs to be converted")

    def keep_parts(self, version):
        return True


def test_a_status_that_is_written_costs_no_conversion_of_who_owns_the_spec():
    spec, here = {"resourceClassName": "gpu"}, served("v1")
    entry = owned_by({"metadata": {"labels": {"a": "x"}}, "spec": spec}, "v1alpha1", {"metadata", "spec"})
    old = {"metadata": {"name": "c", "managedFields": [entry]}, "spec": spec}
    metadata = {**old["metadata"], "finalizers": ["x/y"]}
    new = {"metadata": metadata, "spec": spec, "status": {"driverName": "d"}}
    author = Author("s", here.api_version)
    managed = track_update(old, new, author, "t1", here.version.shape(), NeverConverted())
    assert managed[0] == entry
    assert managed[1]["fieldsV1"].keys() == {"f:metadata", "f:status"}


# One event in the words of both groups: what is stored of it is the same.
ABOUT = {"kind": "Pod", "name": "p", "namespace": "default"}
AT = {"eventTime": "2026-01-01T00:00:00.000000Z", "action": "Binding", "reason": "R", "type": "Normal"}
EVENTS = {
    "v1": {"involvedObject": ABOUT, "reportingComponent": "example.com/x", "message": "so it is"},
    "events.k8s.io/v1": {"regarding": ABOUT, "reportingController": "example.com/x", "note": "so it is"},
}


@pytest.mark.parametrize("versions", permutations(EVENTS), ids=" and then ".join)
def test_what_a_maker_owns_is_said_in_its_own_words_whoever_made_the_same_before(api, versions):
    """What is known of the fields of objects that are alike is kept for the next one, by version."""
    for number, version in enumerate(versions):
        body = {**AT, **EVENTS[version], "reportingInstance": "x-1"}
        path = f"/{'apis' if '/' in version else 'api'}/{version}/namespaces/default/events"
        made = api("POST", path, {"metadata": {"name": f"e-{number}"}, **body})
        assert made.status == 201, made.body
        (entry,) = made.body["metadata"]["managedFields"]
        assert entry["apiVersion"] == version and entry["fieldsV1"] == {f"f:{name}": {} for name in body}
