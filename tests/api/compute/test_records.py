"""What a pod holds, read from its containers, or from the annotation where the server has no field for it."""

import msgspec
import pytest

from allot.api import compute, core
from kep.compute import container, named, pod

NAME = named({"type": "p100"})
ENTRIES = [{"computeResourceName": NAME, "count": 2}]


def view(made):
    return msgspec.convert(made, core.Pod)


def annotated(text):
    made = pod("p", {"p100": 2})
    made["metadata"]["annotations"] = {compute.limits.RECORD_ANNOTATION: text}
    return view(made)


def test_the_annotation_means_what_the_field_does():
    """14-BIND-12: a server that drops the field keeps the annotation, and the devices count all the same."""
    by_field = view(pod("p", None, container(record={"p100": ENTRIES}, p100=2)))
    written = compute.records.written(compute.records.given(by_field))
    assert compute.records.held(annotated(written)) == compute.records.held(by_field) == {NAME: 2}
    assert compute.records.given(annotated(written)) == compute.records.given(by_field)


@pytest.mark.parametrize("text", ["", "[]", '{"c": 1}', '{"c": {"p100": [{"count": "many"}]}}'])
def test_an_annotation_that_is_no_record_holds_nothing(text):
    assert compute.records.held(annotated(text)) == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"x": {"p100": ENTRIES}},
        {"c": {"gold": ENTRIES}},
        {"c": {"p100": [{"computeResourceName": NAME, "count": 3}]}},
        {"c": {"p100": ENTRIES, "nvidia.com/gpu": ENTRIES}},
        {
            "c": {
                "p100": [{"computeResourceName": NAME, "count": -1}, {"computeResourceName": "b", "count": 3}]
            }
        },
        {"c": {"p100": [{"resourceName": "cpu", "amount": "1", "member": 0}]}},
    ],
)
def test_an_annotation_that_is_not_what_the_containers_ask_for_holds_nothing(wrong):
    """14-BIND-08: whoever may write a pod may write this, and quota counts only what containers ask for."""
    text = msgspec.json.encode(wrong).decode()
    assert compute.records.given(annotated(text)) == {}
    assert compute.records.held(annotated(text)) == {}
