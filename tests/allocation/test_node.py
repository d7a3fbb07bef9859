"""Node selectors, matched like node affinity."""

import pytest

from allot.allocation import BadNodeSelector, Node
from allot.allocation.node import selects
from allot.api import meta

NODE = Node("here", {"zone": "a", "cores": "16", "odd": "1_6", "spaced": " 16", "huge": str(2**63)})


def selector(*terms):
    return meta.view(meta.NodeSelector, {"nodeSelectorTerms": list(terms)})


def label(key: str, operator: str, *values: str):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (label("zone", "In", "a", "b"), True),
        (label("zone", "In", "b"), False),
        (label("zone", "NotIn", "b"), True),
        (label("rack", "NotIn", "b"), True),
        (label("zone", "Exists"), True),
        (label("rack", "Exists"), False),
        (label("rack", "DoesNotExist"), True),
        (label("cores", "Gt", "8"), True),
        (label("cores", "Lt", "16"), False),
        (label("zone", "Gt", "8"), False),
        (label("odd", "Gt", "8"), False),  # digits only, and no more than 64 bits
        (label("spaced", "Gt", "8"), False),
        (label("huge", "Gt", "8"), False),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["here"]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["here"]}]}, False),
        ({}, False),  # a term that asks for nothing selects nothing
    ],
)
def test_a_term_holds_or_not(term, expected):
    assert selects(selector(term), NODE) is expected


def test_terms_are_alternatives_and_requirements_are_not():
    both = {
        "matchExpressions": [
            *label("zone", "In", "a")["matchExpressions"],
            *label("rack", "Exists")["matchExpressions"],
        ]
    }

    assert not selects(selector(both), NODE)
    assert selects(selector(both, label("zone", "In", "a")), NODE)
    assert not selects(selector(), NODE)


@pytest.mark.parametrize(
    "term",
    [
        label("zone", "Near", "a"),
        label("zone", "In"),
        label("zone", "Exists", "a"),
        label("cores", "Gt", "many"),
        label("cores", "Gt", "1_0"),
        {"matchFields": [{"key": "spec.name", "operator": "In", "values": ["here"]}]},
    ],
)
def test_a_requirement_that_cannot_be_read_is_refused(term):
    with pytest.raises(BadNodeSelector):
        selects(selector(term), NODE)


def test_reads_what_it_needs_of_a_node():
    fields = {
        "metadata": {"name": "n", "labels": {"a": "b"}},
        "status": {"declaredFeatures": ["X"], "capacity": {"cpu": "4"}},
    }

    assert Node.read(fields) == Node("n", {"a": "b"}, frozenset({"X"}))
    assert Node.read({"metadata": {"name": "n"}}) == Node("n")
