"""Typed views of core kinds: they say what the schema says, and read what servers send."""

import types
import typing
from collections.abc import Mapping

import msgspec
import pytest

from allot.api import Object, core, schema
from allot.api.schema.node import Schema, Type

KINDS = {
    core.Pod: "io.k8s.api.core.v1.Pod",
    core.Node: "io.k8s.api.core.v1.Node",
    core.Namespace: "io.k8s.api.core.v1.Namespace",
    core.PodDisruptionBudget: "io.k8s.api.policy.v1.PodDisruptionBudget",
    core.PriorityClass: "io.k8s.api.scheduling.v1.PriorityClass",
}
SCALARS = {
    str: {Type.STRING, Type.QUANTITY, Type.TIME, Type.MICRO_TIME, Type.INT_OR_STRING},
    int: {Type.INTEGER, Type.INT_OR_STRING},
    bool: {Type.BOOLEAN},
}


def strays(view: type, shape: Schema, path: str) -> list[str]:
    """Fields of a view that the schema does not know, or knows otherwise."""
    found = []
    for field in msgspec.structs.fields(view):
        at, inner = f"{path}.{field.encode_name}", shape.fields.get(field.encode_name)
        found += [at] if inner is None else differences(field.type, inner, at)
    return found


def differences(wanted: typing.Any, shape: Schema, path: str) -> list[str]:
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return [
            stray for part in arguments if part is not type(None) for stray in differences(part, shape, path)
        ]
    if origin is tuple:
        return [path] if shape.type is not Type.LIST else differences(arguments[0], shape.element, path)
    if origin is Mapping:
        return [path] if shape.type is not Type.MAP else differences(arguments[1], shape.element, path)
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        return [path] if shape.type is not Type.OBJECT else strays(wanted, shape, path)
    return [] if shape.type in SCALARS[wanted] else [path]


@pytest.mark.parametrize("view", KINDS, ids=lambda view: view.__name__)
def test_every_field_of_a_view_is_a_field_of_the_schema(view):
    """A field that is spelled wrongly would always read as absent."""
    assert strays(view, schema.get(KINDS[view]), view.__name__) == []


def test_a_null_reads_as_absence():
    """Kubernetes writes nulls where a time is not known."""
    conditions = b'[{"type":"Ready","status":"True","lastTransitionTime":null}]'
    pod = Object(
        b'{"metadata":{"name":"a","creationTimestamp":null},"status":{"conditions":%b}}' % conditions
    )
    assert pod.view(core.Pod).status.conditions[0].last_transition_time == ""
    assert pod.view(core.Pod).metadata.creation_timestamp == ""


def test_what_a_view_does_not_know_stays_in_the_object():
    pod = Object(b'{"metadata":{"name":"a"},"spec":{"nodeName":"n","surprise":1}}')
    assert pod.view(core.Pod).spec.node_name == "n"
    assert pod.fields["spec"]["surprise"] == 1


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (core.Toleration(operator="Exists"), True),
        (core.Toleration(key="a", operator="Exists"), True),
        (core.Toleration(key="a", value="1"), True),
        (core.Toleration(key="a", value="1", effect="NoSchedule"), True),
        (core.Toleration(key="a", value="2"), False),
        (core.Toleration(key="b", operator="Exists"), False),
        (core.Toleration(key="a", operator="Exists", effect="NoExecute"), False),
        (core.Toleration(key="a", operator="Gt", value="0"), False),
    ],
)
def test_a_taint_is_tolerated_by_key_value_and_effect(toleration, tolerated):
    assert core.Taint(key="a", value="1", effect="NoSchedule").is_tolerated_by(toleration) is tolerated
