"""Whatever clients send, in whatever order: an answer, never an exception of ours."""

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allot.api.errors import ApiError
from allot.api.schema import apply_defaults, check, from_structural, get
from allot.apiserver.apply import Applied, Author, apply, track_update
from allot.apiserver.patch import json_patch, merge_patch, strategic_merge

from .shaped import shaped

NOW = "2026-01-01T00:00:00Z"

WIDGET = from_structural(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "parts": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name", "type"],
                        "items": {
                            "type": "object",
                            "properties": {
                                "name": {"type": "string"},
                                "type": {"type": "string", "default": "x"},
                                "free": {"x-kubernetes-preserve-unknown-fields": True},
                            },
                        },
                    },
                    "labels": {"type": "object", "additionalProperties": {"type": "integer"}},
                    "finalizers": {
                        "type": "array",
                        "x-kubernetes-list-type": "set",
                        "items": {"type": "string"},
                    },
                },
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
)
SCHEMAS = {
    "pod": get("io.k8s.api.core.v1.Pod"),
    "deployment": get("io.k8s.api.apps.v1.Deployment"),
    "claim": get("io.k8s.api.resource.v1.ResourceClaim"),
    "slice": get("io.k8s.api.resource.v1.ResourceSlice"),
    "widget": WIDGET,
}


def accepted(fields, schema):
    """What the server would go on with, or None when it has already said no."""
    if type(fields) is not dict:
        return None
    problems = check(fields, schema)
    if problems.malformed or problems.mistyped:
        return None
    apply_defaults(fields, schema)
    if type(fields.setdefault("metadata", {})) is not dict:
        return None
    assert not check(copy.deepcopy(fields), schema).malformed
    return fields


@st.composite
def histories(draw):
    schema = SCHEMAS[draw(st.sampled_from(sorted(SCHEMAS)))]
    ways = st.sampled_from(["update", "status", "apply", "force", "merge", "strategic", "json"])
    steps = [
        (draw(ways), draw(st.sampled_from("ab")), draw(shaped(schema)))
        for _ in range(draw(st.integers(1, 4)))
    ]
    return schema, steps


def step(live, how, who, value, schema):
    """One request. The object afterwards, or `live` when it was refused."""
    current = copy.deepcopy(live) or {"metadata": {}}
    match how:
        case "merge":
            value = merge_patch(current, value)
        case "strategic" if type(value) is dict:
            value = strategic_merge(current, value, schema)
        case "json":
            value = json_patch(current, [{"op": "add", "path": "/spec", "value": value}])
        case "apply" | "force":
            config = accepted(value, schema)
            if config is None:
                return live
            config["metadata"].pop("managedFields", None)
            result = apply(live, config, Author(who, "v1"), NOW, schema, force=how == "force")
            return result.fields if isinstance(result, Applied) else live
    new = accepted(value, schema)
    if new is None:
        return live
    managed = track_update(live, new, Author(who, "v1", "status" if how == "status" else ""), NOW, schema)
    new["metadata"]["managedFields"] = managed
    return new


@settings(
    max_examples=250, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None
)
@given(histories())
def test_any_history_is_answered(history):
    schema, steps = history
    live = None
    for how, who, value in steps:
        before = copy.deepcopy(live)
        try:
            after = step(live, how, who, value, schema)
        except ApiError as error:
            assert error.message and error.code < 500
            after = live
        assert live == before, "nobody changes what is stored"
        live = after
    if live is not None:
        assert accepted(copy.deepcopy(live), schema) is not None, "what is stored can be stored again"


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_histories_get_somewhere(name):
    """The generator makes objects that are accepted often enough to mean something."""
    schema = SCHEMAS[name]
    made = []

    @settings(max_examples=60, database=None, suppress_health_check=list(HealthCheck), deadline=None)
    @given(shaped(schema))
    def collect(value):
        made.append(accepted(value, schema) is not None)

    collect()
    assert sum(made) > len(made) / 4, f"{sum(made)} of {len(made)}"
