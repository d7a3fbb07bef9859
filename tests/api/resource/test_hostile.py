"""Whatever a client sends, it gets an answer of its own making: never a 500.

Bodies are made from the schema, so that most of them get past the decoder and
meet the rules; some members are of another type, null, absent or absurd.
"""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allot.api import Request, resource
from allot.api.schema import Schema
from allot.api.schema.node import Type
from allot.apiserver import identities
from api.resource import objects
from api.resource.objects import with_change

WORDS = [
    "",
    "a",
    "r",
    "gpu",
    "A_",
    "d.example.com",
    "d.example.com/a",
    "x/y/z",
    "é",
    "All",
    "ExactCount",
    "Exists",
]
WORDS += [
    "None",
    "NoExecute",
    "FromClass",
    "metadata.name",
    "In",
    "true",
    "1.2.3",
    "\x00",
    "a" * 300,
    "10.0.0.1/8",
]
words = st.sampled_from(WORDS)
quantities = st.sampled_from(["1", "-1", "0", "500m", "80Gi", "1e3", "16E", 5, 1.5, "many"])
times = st.sampled_from(["2026-11-15T08:00:00Z", "2026-11-15T08:00:00.5+01:00", "never"])
absurd = st.sampled_from([None, "text", 7, -1, True, [], {}, [None], {"a": None}])

_SCALARS = {
    Type.STRING: words,
    Type.BOOLEAN: st.booleans(),
    Type.INTEGER: st.sampled_from([0, 1, 2, 33, -1, 2**63 - 1, 2**63]),
    Type.NUMBER: st.floats(allow_nan=False, allow_infinity=False),
    Type.QUANTITY: quantities,
    Type.TIME: times,
    Type.MICRO_TIME: times,
    Type.ANY: absurd,
}


def shaped(schema: Schema, depth: int = 0) -> st.SearchStrategy:
    """Values of a schema's shape, each part now and then something else."""
    match schema.type:
        case Type.OBJECT:
            members = {
                name: st.deferred(lambda inner=inner: shaped(inner, depth + 1))
                for name, inner in schema.fields.items()
            }
            usual = st.fixed_dictionaries({}, optional=members) if depth < 9 else st.just({})
        case Type.LIST:
            usual = st.lists(shaped(schema.element, depth + 1), max_size=2)
        case Type.MAP:
            usual = st.dictionaries(words, shaped(schema.element, depth + 1), max_size=2)
        case _:
            usual = _SCALARS.get(schema.type, absurd)
    return st.integers(0, 60).flatmap(lambda n: absurd if n == 0 else usual)


def bodies(kind, version):
    shape = kind.version(version).shape()
    parts = {name: shaped(shape.fields[name]) for name in ("spec", "status") if name in shape.fields}
    return st.fixed_dictionaries({}, optional=parts)


EVERY = [
    (kind, version.name) for kind in resource.KINDS for version in kind.versions if version.name != "v1beta2"
]
STORED = {
    "ResourceClaim": objects.claim(objects.request()),
    "ResourceClaimTemplate": objects.template(),
    "DeviceClass": objects.class_(),
    "ResourceSlice": objects.slice_(objects.device()),
    "DeviceTaintRule": objects.rule(),
}


class Wire:
    """Sends bodies for one kind and insists on an answer that is not our fault."""

    def __init__(self, server, kind, version):
        self._server = server
        self._group = "/apis/resource.k8s.io"
        self._rest = ("/namespaces/default" if kind.namespaced else "") + f"/{kind.plural}"
        self.version = version

    def __call__(self, method, name="", body=None, merge=False, version=None):
        content = "application/merge-patch+json" if merge else "application/json"
        headers = {"content-type": content, "accept": "application/json"}
        path = f"{self._group}/{version or self.version}{self._rest}{name}"
        sent = b"" if body is None else json.dumps(body).encode()
        answer = self._server.run(
            self._server.api.handle(Request(method, path, {}, headers, sent), identities.ADMIN)
        )
        assert answer.status < 500, (method, path, body, answer.body)
        return answer.status


@pytest.mark.parametrize(("kind", "version"), EVERY, ids=lambda value: getattr(value, "kind", value))
def test_no_body_breaks_the_server(kind, version, allot_server):
    send = Wire(allot_server, kind, version)
    assert send("POST", body=with_change(STORED[kind.kind], "metadata.name", "old"), version="v1") == 201

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(bodies(kind, version))
    def fuzz(body):
        if send("POST", body={**body, "metadata": {"name": "new"}}) == 201:
            send("GET", "/new", version="v1")
            send("DELETE", "/new")
        send("PUT", "/old", {**body, "metadata": {"name": "old"}})
        send("PATCH", "/old", body, merge=True)
        if kind.has_status:
            send("PUT", "/old/status", {**body, "metadata": {"name": "old"}})
            send("PATCH", "/old/status", body, merge=True)

    fuzz()
