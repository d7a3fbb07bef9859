"""The variables of a container."""

import asyncio
from typing import Any

import pytest

from allot.api import Object, encode, errors
from allot.nodeagent.environment import BadEnvironment, environment, expanded
from allot.nodeagent.fields import Around
from allot.nodeagent.views import Pod
from node.objects import pod

OBJECTS = {
    ("configmaps", "default", "settings"): {"data": {"level": "high", "color": "red"}},
    ("secrets", "default", "keys"): {"data": {"token": "czNjcjN0"}},
}


async def lookup(plural: str, namespace: str, name: str) -> Object:
    try:
        return Object(encode(OBJECTS[plural, namespace, name]))
    except KeyError:
        raise errors.NotFound(f'{plural} "{name}" not found') from None


def variables(
    *env: dict[str, Any], env_from: list[dict[str, Any]] | None = None, own: tuple[str, ...] = ()
) -> dict[str, str]:
    container = {"name": "main", "env": env, "envFrom": env_from or []}
    metadata = {"labels": {"app": "web"}, "annotations": {"a/b": "c"}}
    one = pod(metadata=metadata, spec={"containers": [container], "serviceAccountName": "robot"})
    around = Around("10.0.0.1", {"cpu": "8"}, own)
    return asyncio.run(environment(one, one.view(Pod).spec.containers[0], around, lookup))


def field(path: str) -> dict[str, Any]:
    return {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}


def test_a_value_may_name_those_before_it():
    found = variables(
        {"name": "A", "value": "1"}, {"name": "B", "value": "$(A)-$(C)-$$(A)"}, {"name": "C", "value": "3"}
    )
    assert found["B"] == "1-$(C)-$(A)"


def test_references_are_put_where_they_are_known():
    assert expanded("$(A) $(B) $$ $", {"A": "x"}) == "x $(B) $ $"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "default"),
        ("metadata.uid", "uid-p"),
        ("metadata.labels['app']", "web"),
        ("metadata.annotations['a/b']", "c"),
        ("metadata.labels['none']", ""),
        ("spec.nodeName", "n"),
        ("spec.serviceAccountName", "robot"),
        ("status.hostIP", "10.0.0.1"),
        ("status.podIP", "10.0.0.1"),
    ],
)
def test_fields_of_the_pod(path, value):
    assert variables(field(path))["X"] == value


def test_a_pod_with_addresses_of_its_own_is_told_those():
    def told(path: str) -> str:
        return variables(field(path), own=("10.1.0.7", "fd00::7"))["X"]

    assert told("status.podIP") == "10.1.0.7" and told("status.podIPs") == "10.1.0.7,fd00::7"
    assert told("status.hostIP") == told("status.hostIPs") == "10.0.0.1"


def test_config_maps_and_secrets():
    found = variables(
        {"name": "L", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "level"}}},
        {"name": "T", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
        {"name": "O", "valueFrom": {"secretKeyRef": {"name": "none", "key": "x", "optional": True}}},
        env_from=[{"prefix": "P_", "configMapRef": {"name": "settings"}}, {"secretRef": {"name": "keys"}}],
    )
    assert found.items() >= {"L": "high", "T": "s3cr3t", "P_color": "red", "token": "s3cr3t"}.items()
    assert "O" not in found


@pytest.mark.parametrize(
    ("variable", "says"),
    [
        (field("spec.none"), "variable X: field spec.none is not known to this node"),
        (
            {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "k"}}},
            'variable X: configmaps "none" not found',
        ),
        (
            {"name": "X", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k"}}},
            "variable X: couldn't find key k in secrets default/keys",
        ),
        (
            {"name": "X", "valueFrom": {"resourceFieldRef": {"resource": "nonsense"}}},
            "variable X: resource nonsense is not known to this node",
        ),
        (
            {"name": "X", "valueFrom": {"fileKeyRef": {"key": "a"}}},
            "variable X: its source is not known to this node",
        ),
    ],
)
def test_what_is_not_there_is_an_error_that_names_the_variable(variable, says):
    with pytest.raises(BadEnvironment, match=says):
        variables(variable)


def test_a_container_may_ask_how_much_it_may_use():
    """Without a limit of its own, that is what the node has."""
    ref = {"resource": "limits.cpu", "divisor": "1m"}
    assert variables({"name": "X", "valueFrom": {"resourceFieldRef": ref}})["X"] == "8000"
