"""S3: fields that a built-in kind does not have are dropped where they enter, by whatever way."""

import json

import pytest
import yaml

from allot.api import kinds, rbac, resource
from allot.api.kind import Kind

PODS = "/api/v1/namespaces/default/pods"
CONFIGS = "/api/v1/namespaces/default/configmaps"
CLAIMS = "/apis/resource.k8s.io/{}/namespaces/default/resourceclaims"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

SPEC = {"containers": [{"name": "c", "image": "i"}]}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": SPEC}
ODD = {
    **POD,
    "spec": {"strange": {"deep": [1]}, "containers": [{"name": "c", "image": "i", "stranger": 1}]},
}


def warnings_of(*paths):
    return [f'299 - "unknown field \\"{path}\\""' for path in paths]


WARNINGS = warnings_of("spec.strange", "spec.containers[0].stranger")


def is_clean(api, path):
    """Neither the answer nor the store holds it, nor anybody's record of who owns what."""
    stored = [entry.value for entry in api.run(api.store.range("/objects/")).entries]
    answer = json.dumps(api("GET", path).body)
    return not any(b"strange" in value for value in stored) and "strange" not in answer


def wrote(answer, warnings):
    assert answer.status in (200, 201), answer.body
    assert sorted(answer.warnings) == sorted(warnings)
    assert "strange" not in json.dumps(answer.body)


def test_create(api):
    wrote(api("POST", PODS, ODD, dryRun="All"), WARNINGS)
    wrote(api("POST", PODS, ODD), WARNINGS)
    assert is_clean(api, f"{PODS}/web")


def test_create_in_yaml(api):
    wrote(api("POST", PODS, yaml.safe_dump(ODD).encode(), media="application/yaml"), WARNINGS)
    assert is_clean(api, f"{PODS}/web")


def test_update(api):
    made = api("POST", PODS, POD).body
    made["spec"]["containers"][0]["stranger"] = made["spec"]["strange"] = 1
    wrote(api("PUT", f"{PODS}/web", made), WARNINGS)
    assert is_clean(api, f"{PODS}/web")


def test_status(api):
    api("POST", PODS, POD)
    odd = {**POD, "status": {"phase": "Running", "strange": 1}}
    wrote(api("PUT", f"{PODS}/web/status", odd), warnings_of("status.strange"))
    patch = {"status": {"strange": 1, "reason": "x"}}
    for kind in ("merge-patch", "strategic-merge-patch"):
        answer = api("PATCH", f"{PODS}/web/status", patch, media=f"application/{kind}+json")
        wrote(answer, warnings_of("status.strange"))
    assert is_clean(api, f"{PODS}/web")


@pytest.mark.parametrize(
    "media, patch",
    [
        ("json-patch+json", [{"op": "add", "path": "/spec/strange", "value": {"x": 1}}]),
        ("merge-patch+json", {"spec": {"strange": {"x": 1}}}),
        ("strategic-merge-patch+json", {"spec": {"strange": {"x": 1}}}),
        ("apply-patch+yaml", {"apiVersion": "v1", "kind": "Pod", "spec": {"strange": {"x": 1}}}),
    ],
)
def test_patches(api, media, patch):
    api("POST", PODS, POD)
    how = {"media": f"application/{media}", "fieldManager": "me"}
    strict = api("PATCH", f"{PODS}/web", patch, **how, fieldValidation="Strict")
    assert strict.status == 400
    assert 'strict decoding error: unknown field "spec.strange"' in strict.body["message"]
    for _ in range(2):
        wrote(api("PATCH", f"{PODS}/web", patch, **how), warnings_of("spec.strange"))
    assert is_clean(api, f"{PODS}/web")


def test_an_apply_that_creates(api):
    how = {"media": "application/apply-patch+yaml", "fieldManager": "me"}
    wrote(api("PATCH", f"{PODS}/web", ODD, **how), WARNINGS)
    assert is_clean(api, f"{PODS}/web")


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_every_version(api, version):
    asks = {"deviceClassName": "gpu"}
    one = {"name": "r", "strange": 1, **(asks if version == "v1beta1" else {"exactly": asks})}
    claim = {"metadata": {"name": "c"}, "spec": {"strange": 1, "devices": {"requests": [one]}}}
    made = api("POST", CLAIMS.format(version), claim)
    assert made.status == 201
    unknown = [text for text in made.warnings if "unknown" in text]
    assert unknown == warnings_of("spec.strange", "spec.devices.requests[0].strange")
    assert is_clean(api, CLAIMS.format("v1") + "/c")


def test_subresources(api):
    """Each has a shape of its own, which is warned about and held to just the same."""
    api("POST", PODS, POD)
    bound = api("POST", f"{PODS}/web/binding", {"target": {"name": "n", "strange": 1}})
    wrote(bound, warnings_of("target.strange"))
    eviction = {"metadata": {"name": "web"}, "strange": 1}
    assert api("POST", f"{PODS}/web/eviction", eviction, fieldValidation="Strict").status == 400
    wrote(api("POST", f"{PODS}/web/eviction", eviction), warnings_of("strange"))
    template = {"metadata": {"labels": {"a": "b"}}, "spec": SPEC}
    wanted = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    api("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": wanted})
    scale = {"spec": {"replicas": 2, "strange": 1}}
    wrote(api("PUT", f"{DEPLOYMENTS}/d/scale", scale), warnings_of("spec.strange"))
    patched = api("PATCH", f"{DEPLOYMENTS}/d/scale", scale, media="application/merge-patch+json")
    wrote(patched, warnings_of("spec.strange"))
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    api("POST", accounts, {"metadata": {"name": "a"}})
    token = api("POST", f"{accounts}/a/token", {"spec": {"audiences": ["x"], "strange": 1}})
    wrote(token, warnings_of("spec.strange"))
    review = {"spec": {"resourceAttributes": {"verb": "get", "strange": 1}}}
    asked = api("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    wrote(asked, warnings_of("spec.resourceAttributes.strange"))
    namespace = {**api("GET", "/api/v1/namespaces/default").body, "spec": {"finalizers": [], "strange": 1}}
    wrote(api("PUT", "/api/v1/namespaces/default/finalize", namespace), warnings_of("spec.strange"))
    assert is_clean(api, f"{DEPLOYMENTS}/d")


@pytest.mark.parametrize("finalizers", ["boom", {"a": 1}, [{}], 7])
def test_finalizers_of_a_namespace_are_a_list_of_texts(api, finalizers):
    body = {"metadata": {"name": "default"}, "spec": {"finalizers": finalizers}}
    assert api("PUT", "/api/v1/namespaces/default/finalize", body).status == 400
    assert api("PUT", "/api/v1/namespaces/default/finalize", {"spec": "boom"}).status == 400


def test_keys_given_twice_in_a_patch_are_told_of(api):
    twice = ['299 - "duplicate field \\"data.x\\""']
    api("POST", CONFIGS, {"metadata": {"name": "a"}})
    for kind in ("merge-patch", "strategic-merge-patch"):
        answer = api("PATCH", f"{CONFIGS}/a", b'{"data":{"x":"1","x":"2"}}', media=f"application/{kind}+json")
        assert answer.warnings == twice
    applied = b"apiVersion: v1\nkind: ConfigMap\ndata:\n  x: '1'\n  x: '2'\n"
    how = {"media": "application/apply-patch+yaml", "fieldManager": "me", "force": "true"}
    assert api("PATCH", f"{CONFIGS}/a", applied, **how).warnings == twice
    assert api("PATCH", f"{CONFIGS}/a", applied, **how, fieldValidation="Strict").status == 400


def test_a_schema_inside_a_definition_is_typed_to_the_bottom(api):
    """Below `items` and `additionalProperties`, too, though they may be something else than a schema."""
    text = {"type": "string", "strange": 1}
    bag = {"type": "object", "additionalProperties": {"type": "array", "items": text}}
    spec = {"type": "object", "properties": {"bag": bag}}
    shape = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": shape}}
    version["subresources"] = {"status": {"strange": 1}}
    names = {"plural": "bags", "kind": "Bag"}
    body = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    made = api("POST", CRDS, {"metadata": {"name": "bags.example.com"}, "spec": body})
    inside = "schema.openAPIV3Schema.properties.spec.properties.bag.additionalProperties.items"
    here = "spec.versions[0]"
    wrote(made, warnings_of(f"{here}.{inside}.strange", f"{here}.subresources.status.strange"))
    assert is_clean(api, f"{CRDS}/bags.example.com")


BUILT_IN: tuple[Kind, ...] = (*kinds.ALL, *rbac.KINDS, *resource.KINDS)


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.resource)
def test_the_stored_form_of_every_kind_has_a_shape(kind):
    assert kind.stored_shape().fields["metadata"].fields["name"]
