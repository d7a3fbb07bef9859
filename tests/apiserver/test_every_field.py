"""Every field of every built-in kind, with every type of JSON and with odd values of its own type (S4).

No answer is a 500, and whatever was accepted can be listed, shown as a table, read in every version, given
a status, and loaded by a server that starts on it.

ALLOT_EVERY_FIELD=1 asks for all values at all places; otherwise each place gets some of them in turn, and the
pods in the templates of workloads are left to a few kinds.
"""

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest

from allot.api import Gates, Kind, Version, classic, custom, kinds, rbac
from allot.api.schema import Schema, Type
from allot.apiserver import ApiServer

EVERYTHING = bool(os.environ.get("ALLOT_EVERY_FIELD"))
SOME = 2  # values a place, unless everything is asked for
POD_SPEC = "io.k8s.api.core.v1.PodSpec"
WITH_PODS = ("Pod", "Deployment", "Job")
DEPTH_MAX = 9

JSON: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 2**40, "", "x", [], [None], [[]], [{}], ["x"], [1], {}, {"": None}, {"x": "x"},
    {"x": {}}, {"x": []},
)  # fmt: skip

OWN: dict[Type, tuple[Any, ...]] = {
    Type.STRING: ("", "x", "X/y", "a.b/c", "é", "\x00", "%", "..", "x" * 300, "25%", "-1", "1.2.3.4", "true"),
    Type.INTEGER: (0, 1, -1, 2**31 - 1, -(2**31)),
    Type.NUMBER: (0, -1, 1.5, 1e300),
    Type.BOOLEAN: (True, False),
    Type.INT_OR_STRING: (0, -1, 2**31 - 1, "", "x", "101%", "-1%", "1e9%"),
    Type.QUANTITY: ("0", "-1", "1", "1e18", "1n", "9999999999Ei", 5),
    Type.TIME: ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-01-01T00:00:00+14:00"),
    Type.MICRO_TIME: ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"),
    Type.BYTES: ("", "AA==", "eyJhIjoxfQ=="),
    Type.LIST: ([],),
    Type.MAP: ({},),
    Type.OBJECT: ({},),
}

Place = tuple[str | int, ...]
BUILT_IN: tuple[Kind, ...] = (*kinds.ALL, *rbac.KINDS, *classic.served(Gates()), *custom.KINDS)
SERVED = [(kind, version) for kind in BUILT_IN for version in kind.versions]


def places(
    shape: Schema, leave_out: str = "", path: Place = (), outside: tuple[Schema, ...] = ()
) -> Iterator[tuple[Place, Schema]]:
    """Every field, list and map of a shape with one member each; a type inside itself once more."""
    if path:
        yield path, shape
    if len(path) >= DEPTH_MAX or outside.count(shape) > 1 or (shape.name and shape.name == leave_out):
        return
    inside = (*outside, shape)
    if shape.type is Type.OBJECT:
        for name, field in shape.fields.items():
            if (*path, name) not in (("apiVersion",), ("kind",), ("metadata", "name")):
                yield from places(field, leave_out, (*path, name), inside)
    elif shape.element is not None:
        step = 0 if shape.type is Type.LIST else "x"
        yield from places(shape.element, leave_out, (*path, step), inside)
    for choice in shape.choices.values():
        yield from places(choice, leave_out, path, inside)


def object_with(path: Place, value: Any) -> dict[str, Any]:
    for step in reversed(path):
        value = [value] if step == 0 else {step: value}
    return value


def laid_over(below: Any, above: Any) -> Any:
    if isinstance(below, dict) and isinstance(above, dict):
        return {**below, **{name: laid_over(below.get(name), one) for name, one in above.items()}}
    if isinstance(below, list) and isinstance(above, list) and below and above:
        return [laid_over(below[0], above[0]), *below[1:]]
    return above


SPEC = {"containers": [{"name": "c", "image": "i"}]}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": SPEC}
WORKLOAD = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
REQUEST = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
FLAT_REQUEST = {"requests": [{"name": "r", "deviceClassName": "gpu"}]}
POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
WIDGET_SHAPE = {"type": "object", "properties": {"spec": {"type": "object"}}}
WIDGET_VERSION = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": WIDGET_SHAPE}}

SOUND: dict[str, dict[str, Any]] = {
    "Pod": {"spec": SPEC},
    "Deployment": {"spec": WORKLOAD},
    "ReplicaSet": {"spec": WORKLOAD},
    "DaemonSet": {"spec": WORKLOAD},
    "StatefulSet": {"spec": {**WORKLOAD, "serviceName": "s"}},
    "Job": {"spec": {"template": {"spec": {**SPEC, "restartPolicy": "Never"}}}},
    "CronJob": {
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {"spec": {"template": {"spec": {**SPEC, "restartPolicy": "Never"}}}},
        }
    },
    "ResourceClaim": {"spec": {"devices": REQUEST}},
    "ResourceClaimTemplate": {"spec": {"spec": {"devices": REQUEST}}},
    "ResourceClass": {"driverName": "a.b"},
    "PodScheduling": {"spec": {"potentialNodes": ["n"]}},
    "ResourceSlice": {"spec": {"driver": "a.b", "nodeName": "n", "pool": POOL, "devices": [{"name": "d"}]}},
    "DeviceTaintRule": {"spec": {"taint": {"key": "k", "effect": "NoSchedule"}}},
    "CustomResourceDefinition": {
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [WIDGET_VERSION],
        }
    },
    "RoleBinding": {"roleRef": ROLE},
    "ClusterRoleBinding": {"roleRef": ROLE},
}
FLAT = {
    "ResourceClaim": {"spec": {"devices": FLAT_REQUEST}},
    "ResourceClaimTemplate": {"spec": {"spec": {"devices": FLAT_REQUEST}}},
}


CLASSIC = {
    "ResourceClaim": {"spec": {"resourceClassName": "gpu"}},
    "ResourceClaimTemplate": {"spec": {"spec": {"resourceClassName": "gpu"}}},
}
OTHERWISE = {"v1beta1": FLAT, "v1alpha1": CLASSIC}


def sound(kind: Kind, version: Version) -> dict[str, Any]:
    return OTHERWISE.get(version.name, {}).get(kind.kind) or SOUND.get(kind.kind, {})


def address(kind: Kind, version: Version) -> str:
    root = f"/apis/{kind.group}/{version.name}" if kind.group else f"/api/{version.name}"
    return f"{root}/namespaces/default/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"


def values_at(shape: Schema, turn: Iterator[int]) -> list[Any]:
    every = [*JSON, *OWN.get(shape.type, ())]
    if EVERYTHING:
        return every
    own = OWN.get(shape.type) or JSON
    start = next(turn)
    return [own[start % len(own)], *(JSON[(start + 7 * n) % len(JSON)] for n in range(SOME - 1))]


@pytest.mark.parametrize("kind, version", SERVED, ids=[f"{kind.resource} {v.name}" for kind, v in SERVED])
def test_no_value_at_any_place_is_too_much(api, kind, version):
    here, base, failed = address(kind, version), sound(kind, version), []
    turn = itertools.count()
    can_create = "create" in kind.verbs
    leave_out = "" if EVERYTHING or kind.kind in WITH_PODS else POD_SPEC
    for number, (path, shape) in enumerate(places(version.shape(), leave_out)):
        for at, value in enumerate(values_at(shape, turn)):
            name = "widgets.example.com" if kind is custom.DEFINITION else f"x{number}-{at}"
            body = laid_over({**base, "metadata": {"name": name}}, object_with(path, value))
            made = api("POST", here, body) if can_create else None
            answers = [made] if made else []
            if made and made.status == 201 and kind.has_status:
                if path[0] == "status":
                    told = laid_over(made.body, object_with(path, value))
                    answers.append(api("PUT", f"{here}/{name}/status", told))
                answers.append(
                    api("PATCH", f"{here}/{name}", {"spec": None}, media="application/merge-patch+json")
                )
            if kind is custom.DEFINITION and made and made.status == 201:
                answers += gone_through(api, body)
            failed += [(path, value, one.body) for one in answers if one.status >= 500]
    assert not failed, f"{len(failed)} failed, e.g. {failed[:5]}"
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    for served in kind.versions:
        assert api("GET", address(kind, served)).status == 200
        assert api("GET", address(kind, served), accept=table, includeObject="Object").status == 200
    api.run(api.server.close())
    api.server = ApiServer(api.store)
    api.run(api.server.start())
    assert (api("GET", "/readyz").status, api("GET", here).status) == (200, 200)


def gone_through(api, definition):
    """Use the kind that was defined, then take it away again."""
    answers = []
    for version in definition["spec"]["versions"]:
        name = version.get("name") if isinstance(version, dict) else None
        group, plural = definition["spec"]["group"], definition["spec"]["names"]["plural"]
        for scope in ("/namespaces/default", ""):
            where = f"/apis/{group}/{name}{scope}/{plural}"
            widget = {"metadata": {"name": "w"}, "spec": {"x": [{"x": {}}]}, "status": {}}
            answers += [api("POST", where, widget), api("GET", where), api("GET", f"{where}/w/scale")]
            answers.append(api("GET", where, accept="application/json;as=Table;v=v1;g=meta.k8s.io"))
            api("DELETE", f"{where}/w")
    api("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com")
    return answers
