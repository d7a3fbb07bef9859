"""No request makes the server fail (S4): no 500, no hang, and it goes on.

Half of the noise is made of sound requests with one thing wrong, since whole noise
never gets past the front door. ALLOT_FUZZ_EXAMPLES asks for more of it; bench/fuzz.py
runs schemathesis on our own OpenAPI documents.
"""

import copy
import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allot.api import Request
from allot.apiserver import identities

from .conftest import Api

POD = {
    "metadata": {"name": "p", "labels": {"a": "b"}},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "resources": {"limits": {"cpu": "1"}},
                "env": [{"name": "A", "value": "b"}],
            }
        ],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "resourceClaims": [{"name": "r", "resourceClaimName": "x"}],
    },
}
CLAIM = {
    "metadata": {"name": "c"},
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "r",
                    "exactly": {
                        "deviceClassName": "gpu",
                        "count": 2,
                        "selectors": [{"cel": {"expression": "device.driver == 'x'"}}],
                        "capacity": {"requests": {"memory": "1Gi"}},
                    },
                }
            ],
            "constraints": [{"matchAttribute": "a.b/c", "requests": ["r"]}],
            "config": [{"opaque": {"driver": "a.b", "parameters": {"x": 1}}}],
        }
    },
}
SLICE = {
    "metadata": {"name": "s"},
    "spec": {
        "driver": "a.b",
        "nodeName": "n",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {
                "name": "d",
                "attributes": {"x": {"int": 1}, "v": {"version": "1.0.0"}},
                "capacity": {
                    "m": {"value": "1Gi", "requestPolicy": {"default": "1Gi", "validRange": {"min": "1"}}}
                },
                "allowMultipleAllocations": True,
                "taints": [{"key": "k", "effect": "NoSchedule"}],
            }
        ],
    },
}
DEFINITION = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}},
            }
        ],
    },
}
ROLE = {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
DEPLOYMENT = {
    "metadata": {"name": "d"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]},
        "strategy": {"rollingUpdate": {"maxSurge": "25%"}},
    },
}
EXAMPLES = int(os.environ.get("ALLOT_FUZZ_EXAMPLES", "300"))
NAMESPACED = "/namespaces/default"
TARGETS = [
    ("/api/v1" + NAMESPACED + "/pods", POD),
    ("/apis/resource.k8s.io/v1" + NAMESPACED + "/resourceclaims", CLAIM),
    ("/apis/resource.k8s.io/v1beta2" + NAMESPACED + "/resourceclaims", CLAIM),
    ("/apis/resource.k8s.io/v1beta1" + NAMESPACED + "/resourceclaims", CLAIM),
    ("/apis/resource.k8s.io/v1/resourceslices", SLICE),
    ("/apis/resource.k8s.io/v1beta1/resourceslices", SLICE),
    ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION),
    ("/apis/rbac.authorization.k8s.io/v1" + NAMESPACED + "/roles", ROLE),
    ("/apis/apps/v1" + NAMESPACED + "/deployments", DEPLOYMENT),
]
MEDIA = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
]
QUERIES = [
    "limit", "continue", "resourceVersion", "resourceVersionMatch", "labelSelector", "fieldSelector",
    "dryRun", "fieldManager", "fieldValidation", "force", "propagationPolicy", "gracePeriodSeconds",
    "includeObject", "timeoutSeconds", "sendInitialEvents", "allowWatchBookmarks",
]  # fmt: skip

noise = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(-1e300, 1e300)
    | st.text(max_size=20) | st.sampled_from(["", "a", "1", "1e400", "-1", "v1", "\x00", "a/b", "%"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def places(value, path=()):
    """Every place in a document."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for at, member in enumerate(value):
            yield from places(member, (*path, at))


@st.composite
def nearly_sound(draw):
    """A sound object with something else put in one or two places."""
    path, body = draw(st.sampled_from(TARGETS))
    body = copy.deepcopy(body)
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.sampled_from(sorted(places(body), key=str)))
        inserted = draw(noise)
        if not place:
            return path, inserted
        inside = body
        for key in place[:-1]:
            inside = inside[key]
        if draw(st.booleans()) and isinstance(inside, dict):
            inside[draw(st.text(max_size=6))] = inserted
        else:
            inside[place[-1]] = inserted
    return path, body


@st.composite
def requests(draw):
    path, body = draw(nearly_sound())
    method = draw(st.sampled_from(["POST", "PUT", "PATCH", "DELETE", "GET"]))
    if method not in ("POST", "GET") or draw(st.booleans()):
        path += "/" + draw(st.sampled_from(["p", "c", "s", "r", "d", "widgets.example.com", "%", "a b"]))
        path += draw(
            st.sampled_from(["", "", "", "/status", "/scale", "/binding", "/eviction", "/log", "/x"])
        )
    if method == "PATCH" and draw(st.booleans()):
        operation = {
            "op": draw(st.sampled_from(["add", "remove", "copy", "move", "test", "x"])),
            "path": "/spec",
            "from": "/metadata",
            "value": body,
        }
        body = [operation] * draw(st.integers(1, 3))
    raw = draw(st.binary(max_size=60)) if draw(st.integers(0, 9)) == 0 else json.dumps(body).encode()
    query = draw(
        st.dictionaries(
            st.sampled_from(QUERIES), st.text(max_size=12) | st.sampled_from(["1", "true", "All"]), max_size=3
        )
    )
    headers = {"content-type": draw(st.sampled_from(MEDIA))}
    return Request(method, path, query, headers, raw)


@pytest.fixture(scope="module")
def served():
    api = Api()
    for path, body in TARGETS:
        api("POST", path, body)
    yield api
    api.close()


@settings(
    max_examples=EXAMPLES,
    deadline=5000,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(request_=requests())
def test_no_request_makes_the_server_fail(served, request_):
    async def ask():
        response = await served.server.handle(request_, identities.ADMIN)
        if response.stream is not None:
            return response.status, b"".join([piece async for piece in response.stream])
        return response.status, response.body

    status, body = served.run(ask())
    assert status < 500 or status == 504, (status, body[:500])
    if status >= 400:
        said = json.loads(body)
        assert said["kind"] == "Status" and said["message"] and said["code"] == status
