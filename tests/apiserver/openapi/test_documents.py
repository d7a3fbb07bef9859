"""What clients learn about the API before they use it."""

import asyncio
import json
import re

import pytest

from allot.api import Kind, Request, Version, custom, errors, kinds, rbac, resource
from allot.api.schema import from_structural, get, names
from allot.apiserver.openapi import OpenApi
from allot.apiserver.openapi.texts import TYPES
from allot.apiserver.registry import Registry
from allot.apiserver.reviewing import REVIEWS

WIDGET = from_structural(
    {
        "type": "object",
        "description": "A thing.",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {"size": {"type": "integer", "minimum": 1, "description": "How big."}},
            }
        },
    }
)


@pytest.fixture
def registry():
    return Registry((*kinds.ALL, *rbac.KINDS, *resource.KINDS, *custom.KINDS))


@pytest.fixture
def fetch(registry):
    openapi = OpenApi(registry, REVIEWS, "v1.37.0")

    def fetch(path, accept="application/json"):
        response = asyncio.run(openapi.answer(Request("GET", path, headers={"accept": accept})))
        return None if response is None else json.loads(response.body)

    return fetch


def test_the_older_form_names_no_types(registry):
    """kubectl reads it in protobuf, and then leaves it to the server to check what is in a list."""
    openapi = OpenApi(registry, REVIEWS, "v1.37.0")

    def fetched(accept):
        return asyncio.run(openapi.answer(Request("GET", "/openapi/v2", headers={"accept": accept})))

    assert json.loads(fetched("application/json").body)["swagger"] == "2.0"
    told = fetched("application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
    assert told.content_type == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert told.body == b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.37.0B\x00"


def document(fetch, place):
    return fetch(f"/openapi/v3/{place}")


def test_the_index_leads_to_every_document(fetch):
    paths = fetch("/openapi/v3")["paths"]
    assert {"api/v1", "apis/resource.k8s.io/v1", "apis/authorization.k8s.io/v1"} <= paths.keys()
    for place, where in paths.items():
        address, _, mark = where["serverRelativeURL"].partition("?hash=")
        assert address == f"/openapi/v3/{place}" and len(mark) == 64
        assert fetch(address)["openapi"] == "3.0.0"


def test_every_reference_is_in_its_document(fetch):
    for place in fetch("/openapi/v3")["paths"]:
        found = document(fetch, place)
        text = json.dumps(found)
        wanted = set(re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', text))
        assert wanted <= found["components"]["schemas"].keys()


def test_a_kind_can_be_found_by_its_name_and_its_lists_say_how_they_merge(fetch):
    schemas = document(fetch, "api/v1")["components"]["schemas"]
    pod = schemas["io.k8s.api.core.v1.Pod"]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-list-type"] == "map"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    volumes = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["volumes"]
    assert volumes["x-kubernetes-patch-strategy"] == "merge,retainKeys"
    assert schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"]["default"] == "TCP"
    assert schemas["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"]["x-kubernetes-map-type"] == "atomic"


def test_kubectl_finds_what_it_asks_for_before_it_writes(fetch):
    """It looks for a PATCH of the kind that knows fieldValidation, and for the kinds of patches."""
    item = document(fetch, "apis/resource.k8s.io/v1")["paths"][
        "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}"
    ]
    patch = item["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "resource.k8s.io",
        "kind": "ResourceClaim",
        "version": "v1",
    }
    assert {"dryRun", "fieldManager", "fieldValidation", "force"} <= {p["name"] for p in patch["parameters"]}
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]


def test_operations_have_names_of_their_own(fetch):
    for place in fetch("/openapi/v3")["paths"]:
        ids = [
            operation["operationId"]
            for item in document(fetch, place)["paths"].values()
            for method, operation in item.items()
            if method != "parameters"
        ]
        assert len(ids) == len(set(ids)), [i for i in ids if ids.count(i) > 1]


def test_subresources_speak_their_own_kind(fetch):
    paths = document(fetch, "api/v1")["paths"]
    binding = paths["/api/v1/namespaces/{namespace}/pods/{name}/binding"]["post"]
    assert binding["x-kubernetes-group-version-kind"]["kind"] == "Binding"
    assert "put" in paths["/api/v1/namespaces/{namespace}/pods/{name}/status"]


def test_custom_resources_come_and_go(fetch, registry):
    before = fetch("/openapi/v3")["paths"]
    assert document(fetch, "apis/example.com/v1") is None
    registry.add(Kind("example.com", "Widget", "widgets", (Version("v1", "", custom=WIDGET),), "v1"))

    found = document(fetch, "apis/example.com/v1")
    widget = found["components"]["schemas"]["com.example.v1.Widget"]
    assert widget["description"] == "A thing."
    assert widget["properties"]["spec"]["properties"]["size"] == {
        "type": "integer",
        "minimum": 1,
        "description": "How big.",
    }
    patch = found["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    assert fetch("/openapi/v3")["paths"].keys() - before.keys() == {"apis/example.com/v1"}


def test_there_is_nothing_elsewhere(fetch):
    assert fetch("/openapi/v4") is None
    assert fetch("/openapi/v3/apis/nowhere/v1") is None


def test_a_client_that_insists_on_protobuf_is_told(fetch):
    with pytest.raises(errors.NotAcceptable):
        fetch("/openapi/v3", accept="application/com.github.proto-openapi.spec.v3@v1.0+protobuf")


def test_fields_are_explained_where_the_models_are_installed(fetch):
    pytest.importorskip("lightkube")
    schemas = document(fetch, "api/v1")["components"]["schemas"]
    assert len(schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["nodeName"]["description"]) > 20


def test_every_field_of_resource_k8s_io_is_explained_in_our_own_words(fetch):
    for version in ("v1", "v1beta2", "v1beta1"):
        schemas = document(fetch, f"apis/resource.k8s.io/{version}")["components"]["schemas"]
        ours = {name: one for name, one in schemas.items() if name.startswith("io.k8s.api.resource.")}
        assert len(ours) > 40
        for name, one in ours.items():
            assert one.get("description"), name
            unexplained = [
                field for field, shown in one["properties"].items() if not shown.get("description")
            ]
            assert not unexplained, (name, unexplained)


def test_no_explanation_is_left_over():
    known = {name.rpartition(".")[2]: name for name in names() if name.startswith("io.k8s.api.resource.")}
    for kind, (_, fields) in TYPES.items():
        everywhere = {
            field
            for name in names()
            if re.fullmatch(rf"io\.k8s\.api\.resource\.v\w+\.{kind}", name)
            for field in get(name).fields
        }
        assert kind in known
        assert fields.keys() <= everywhere, (kind, fields.keys() - everywhere)
