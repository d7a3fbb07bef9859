"""Reading a problem: whatever the input, an answer or an error that names the field."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.allocation import POLICIES, NotAProblem, problem_of, read_problem, solve

GOOD = {
    "name": "good",
    "features": ["ConsumableCapacity", "PartitionableDevices"],
    "node": {"metadata": {"name": "n", "labels": {"a": "b"}}},
    "slices": [
        {
            "metadata": {"name": "s"},
            "spec": {
                "driver": "d",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 2},
                "nodeName": "n",
                "devices": [
                    {
                        "name": "x",
                        "attributes": {"a": {"int": 1}},
                        "allowMultipleAllocations": True,
                        "capacity": {
                            "m": {"value": "4", "requestPolicy": {"default": "1", "validValues": ["1", "2"]}}
                        },
                        "consumesCounters": [{"counterSet": "c", "counters": {"k": {"value": "1"}}}],
                    }
                ],
            },
        },
        {
            "metadata": {"name": "t"},
            "spec": {
                "driver": "d",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 2},
                "nodeName": "n",
                "sharedCounters": [{"name": "c", "counters": {"k": {"value": "3"}}}],
            },
        },
    ],
    "classes": [{"metadata": {"name": "any"}, "spec": {}}],
    "claims": [
        {
            "metadata": {"name": "c"},
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "r",
                            "exactly": {
                                "deviceClassName": "any",
                                "allocationMode": "ExactCount",
                                "count": 1,
                                "capacity": {"requests": {"m": "1"}},
                            },
                        }
                    ]
                }
            },
        }
    ],
    "allocatedDevices": ["d/p/other"],
    "allocatedSharedDevices": ["d/p/x/00000000-0000-4000-8000-000000000000"],
    "allocatedCapacity": {"d/p/x": {"m": "1"}},
}


def verdict(fields) -> str:
    return solve(problem_of(copy.deepcopy(fields)), POLICIES["first-fit"]).verdict


def with_(path: str, value):
    """GOOD with one field replaced; `path` is keys and indices with dots between."""
    fields = copy.deepcopy(GOOD)
    *parents, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    target = fields
    for step in parents:
        target = target[step]
    target[last] = value
    return fields


def test_a_good_problem_is_read():
    assert verdict(GOOD) == "fits"


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (
            "slices.0.spec.devices.0.capacity.m.value",
            "4 apples",
            "slices[0].spec.devices[0].capacity[m].value",
        ),
        ("slices.0.spec.devices.0.capacity.m.value", ["4"], "slices[0].spec.devices[0].capacity[m].value"),
        ("slices.0.spec.devices.0.capacity.m.requestPolicy.default", "", "requestPolicy.default"),
        ("slices.0.spec.devices.0.capacity.m.requestPolicy.validValues", ["1", "x"], "validValues[1]"),
        ("slices.0.spec.devices.0.consumesCounters.0.counters.k.value", "1e", "counters[k].value"),
        ("slices.1.spec.sharedCounters.0.counters.k.value", "1" * 500, "slices[1].spec.sharedCounters[0]"),
        ("claims.0.spec.devices.requests.0.exactly.capacity.requests.m", True, "capacity.requests[m]"),
        (
            "claims.0.spec.devices.requests.0.exactly.count",
            "one",
            "claims[0].spec.devices.requests[0].exactly.count",
        ),
        ("claims.0.spec.devices.requests", {"name": "r"}, "claims[0].spec.devices.requests"),
        ("claims", {}, "claims"),
        ("claims.0", "claim", "claims[0]"),
        ("slices.0.spec.pool.generation", "1", "slices[0].spec.pool.generation"),
        ("slices.0.spec.devices.0.attributes", [1], "slices[0].spec.devices[0].attributes"),
        ("slices.0.spec.devices.0.attributes.a", {"int": "1"}, "slices[0].spec.devices[0].attributes"),
        (
            "classes.0.spec.selectors",
            [{"cel": {"expression": 7}}],
            "classes[0].spec.selectors[0].cel.expression",
        ),
        ("features", "AdminAccess", "features"),
        ("features.0", "Teleportation", "features[0]"),
        ("features.0", 3, "features[0]"),
        ("node", None, "node"),
        ("node", [], "node"),
        ("node.metadata", "n", "node.metadata"),
        ("node.metadata.name", 5, "node.metadata.name"),
        ("node.metadata.labels.a", 5, "node.metadata.labels[a]"),
        ("name", 5, "name"),
        ("allocatedDevices", "d/p/x", "allocatedDevices"),
        ("allocatedDevices.0", "x", "allocatedDevices[0]"),
        ("allocatedDevices.0", 5, "allocatedDevices[0]"),
        ("allocatedSharedDevices.0", "d/p", "allocatedSharedDevices[0]"),
        ("allocatedCapacity", [], "allocatedCapacity"),
        ("allocatedCapacity", {"d/p/x": {"m": "lots"}}, "allocatedCapacity[d/p/x][m]"),
        ("allocatedCapacity", {"d/p/x": "4"}, "allocatedCapacity[d/p/x]"),
    ],
)
def test_what_is_wrong_is_named(path, value, field):
    with pytest.raises(NotAProblem) as caught:
        verdict(with_(path, value))

    assert field in caught.value.field
    assert str(caught.value).startswith(caught.value.field)


def test_null_is_the_same_as_absent():
    fields = with_("slices.0.spec.devices.0.consumesCounters", None)
    fields["allocatedDevices"] = None
    fields["claims"][0]["spec"]["devices"]["constraints"] = None

    assert verdict(fields) == "fits"


def test_a_number_is_a_quantity():
    assert verdict(with_("slices.0.spec.devices.0.capacity.m.value", 4)) == "fits"


def test_the_expected_answer_is_never_read():
    assert verdict({**GOOD, "results": "nonsense", "error": {"also": "nonsense"}}) == "fits"


def test_nothing_asked_fits():
    assert verdict({"node": {"metadata": {"name": "n"}}}) == "fits"
    assert verdict({**GOOD, "claims": []}) == "fits"


def test_slices_of_one_name_are_several():
    """Names are unique in a cluster, not in a problem."""
    assert verdict(with_("slices.1.metadata.name", "s")) == "fits"


@pytest.mark.parametrize(
    "encoded",
    [
        b"",
        b"nonsense",
        b"[]",
        b"null",
        b"7",
        b'"text"',
        b"\xff\xfe",
        b'{"node": ',
        b'{"a":' * 100_000,
        b"[" * 100_000,
        b'{"a":' * 80 + b"1" + b"}" * 80,
        b'{"features": [' + b"9" * 10_000 + b"]}",
        b'{"node": {"metadata": {"name": "n"}}, "claims": [{"x": NaN}]}',
    ],
)
def test_what_is_no_problem_at_all_is_refused(encoded):
    with pytest.raises(NotAProblem):
        read_problem(encoded)


def test_a_cycle_is_refused():
    fields = copy.deepcopy(GOOD)
    fields["node"]["loop"] = fields
    with pytest.raises(NotAProblem, match="nested"):
        problem_of(fields)


def test_a_huge_number_of_branches_is_refused():
    """Every level refers to the one below it twice: small to write, endless to walk."""
    bomb = []
    for _ in range(60):
        bomb = [bomb, bomb]
    with pytest.raises(NotAProblem):
        problem_of({**GOOD, "bomb": bomb})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(value, path=()):
    """Every place in GOOD that could hold something else."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from places(inner, (*path, position))


@given(st.sampled_from([path for path in places(GOOD) if path]), json_values)
@settings(max_examples=400, deadline=None)
def test_anything_anywhere_is_answered_or_refused_by_name(path, value):
    fields = json.loads(json.dumps(GOOD))
    target = fields
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    try:
        answer = verdict(fields)
    except NotAProblem as error:
        assert str(error)
    else:
        assert answer in ("fits", "does-not-fit", "error")


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_or_refused(encoded):
    try:
        read_problem(encoded)
    except NotAProblem as error:
        assert str(error)


@pytest.mark.parametrize(
    ("change", "where", "meant"),
    [
        (lambda p: p.update(allocatedDevice=["d/p/x"]), "allocatedDevice", "did you mean allocatedDevices?"),
        (lambda p: p.update(zzz=1), "zzz", "expected one of allocatedCapacity, "),
        (lambda p: p["node"].update(lables={}), "node.lables", "expected one of "),
        (lambda p: p["node"]["metadata"].update(lables={}), "node.metadata.lables", "did you mean labels?"),
        (
            lambda p: p["slices"][0]["spec"].update(nodename="n"),
            "slices[0].spec.nodename",
            "did you mean nodeName?",
        ),
        (
            lambda p: p["slices"][0]["spec"]["devices"][0].update(atributes={}),
            "slices[0].spec.devices[0].atributes",
            "did you mean attributes?",
        ),
        (
            lambda p: p["claims"][0]["spec"]["devices"]["requests"][0]["exactly"].update(selector=[]),
            "claims[0].spec.devices.requests[0].exactly.selector",
            "did you mean selectors?",
        ),
        (lambda p: p["classes"][0].update(spek={}), "classes[0].spek", "did you mean spec?"),
    ],
)
def test_a_key_that_nobody_reads_is_refused_with_the_one_that_was_meant(change, where, meant):
    """A misspelt list of devices in use would leave them all free, and nobody would notice."""
    problem = copy.deepcopy(GOOD)
    change(problem)

    with pytest.raises(NotAProblem) as refused:
        problem_of(problem)

    assert refused.value.field == where
    assert meant in str(refused.value)
