"""Pods that say their claims as in the time of classic claims, through the real server (KEP-3063)."""

import pytest

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
OLD = {"name": "gpu", "source": {"resourceClaimTemplateName": "t"}}
NOW = {"name": "gpu", "resourceClaimTemplateName": "t"}


def spec(*entries, uses=("gpu",)):
    claims = [{"name": one} for one in uses]
    container = {"name": "c", "image": "i", "resources": {"claims": claims}}
    return {"containers": [container], "resourceClaims": list(entries)}


def pod(*entries, name="p", **more):
    return {"metadata": {"name": name}, "spec": spec(*entries, **more)}


def deployment(*entries, **more):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec(*entries, **more)}
    body = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": body}


def claims_of(answer):
    assert answer.status in (200, 201), answer.body
    assert answer.warnings == []
    body = answer.body["spec"]
    return (body["template"]["spec"] if "template" in body else body)["resourceClaims"]


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        (OLD, NOW),
        ({"name": "gpu", "source": {"resourceClaimName": "c"}}, {"name": "gpu", "resourceClaimName": "c"}),
        ({**NOW, "source": {"resourceClaimTemplateName": "t"}}, NOW),
        ({**NOW, "source": None}, NOW),
    ],
)
def test_the_older_spelling_is_stored_as_the_newer(api, said, stored):
    """3063-CORE-07, 3063-CORE-12: neither claim nor template need exist. 3063-API-04: what was published is
    still understood."""
    assert claims_of(api("POST", PODS, pod(said), fieldValidation="Strict")) == [stored]
    assert claims_of(api("POST", DEPLOYMENTS, deployment(said), fieldValidation="Strict")) == [stored]


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ({"name": "gpu", "source": {}}, "spec.resourceClaims[0]"),
        ({"name": "gpu"}, "spec.resourceClaims[0]"),
        (
            {"name": "gpu", "source": {"resourceClaimName": "c", "resourceClaimTemplateName": "t"}},
            "spec.resourceClaims[0]",
        ),
    ],
)
def test_exactly_one_source_is_wanted(api, said, cause):
    """3063-CORE-07."""
    refused = api("POST", PODS, pod(said))
    assert (refused.status, [field for field, _ in refused.causes]) == (422, [cause])


def test_who_says_both_says_the_same(api):
    refused = api("POST", PODS, pod({**NOW, "source": {"resourceClaimTemplateName": "other"}}))
    assert (refused.status, "leave `source` out" in refused.body["message"]) == (400, True)


def test_entries_are_labels_and_unique_and_uses_name_them(api):
    """3063-CORE-03, 3063-CORE-04."""
    refused = api("POST", PODS, pod({**OLD, "name": "No_Label"}, uses=["No_Label"]))
    assert refused.causes == [("spec.resourceClaims[0].name", "FieldValueInvalid")]
    refused = api("POST", PODS, pod(OLD, OLD))
    assert refused.causes == [("spec.resourceClaims[1].name", "FieldValueDuplicate")]
    refused = api("POST", PODS, pod(OLD, uses=["nic"]))
    assert refused.causes == [("spec.containers[0].resources.claims[0]", "FieldValueNotFound")]


def test_the_spellings_of_the_story_are_refused_with_the_right_ones(api):
    """3063-CORE-05, and X-06."""
    body = pod(OLD)
    body["spec"]["containers"][0]["resources"]["claims"] = ["gpu"]
    refused = api("POST", PODS, body)
    assert (refused.status, "write `- name: gpu`" in refused.body["message"]) == (400, True)
    refused = api("POST", PODS, pod({"name": "gpu", "template": {"resourceClaimTemplateName": "t"}}))
    assert (refused.status, "write `resourceClaimTemplateName`" in refused.body["message"]) == (400, True)


def test_the_claims_of_a_pod_never_change(api):
    """3063-CORE-02: in either spelling."""
    api("POST", PODS, pod(OLD))
    same = {"spec": {"resourceClaims": [OLD]}}
    assert claims_of(api("PATCH", f"{PODS}/p", same, media=MERGE)) == [NOW]
    other = {"spec": {"resourceClaims": [{"name": "gpu", "source": {"resourceClaimName": "c"}}]}}
    assert api("PATCH", f"{PODS}/p", other, media=MERGE).status == 422
    used = [{"op": "remove", "path": "/spec/containers/0/resources/claims"}]
    assert api("PATCH", f"{PODS}/p", used, media=JSON_PATCH).status == 422


def test_patches_and_applies_meet_one_spelling(api):
    api("POST", DEPLOYMENTS, deployment(OLD))
    path = f"{DEPLOYMENTS}/d"
    patch = {"spec": {"template": {"spec": {"resourceClaims": [{"name": "gpu", "source": OLD["source"]}]}}}}
    assert claims_of(api("PATCH", path, patch, media=STRATEGIC)) == [NOW]
    entry = {"name": "gpu", "source": {"resourceClaimTemplateName": "other"}}
    patch = {"spec": {"template": {"spec": {"resourceClaims": [entry]}}}}
    other = [{"name": "gpu", "resourceClaimTemplateName": "other"}]
    assert claims_of(api("PATCH", path, patch, media=STRATEGIC)) == other
    assert claims_of(api("PUT", path, deployment(OLD))) == [NOW]
    added = {"op": "add", "path": "/spec/template/spec/resourceClaims/-", "value": {**OLD, "name": "nic"}}
    assert claims_of(api("PATCH", path, [added], media=JSON_PATCH)) == [NOW, {**NOW, "name": "nic"}]
    wanted = deployment(OLD, {**OLD, "name": "nic"})
    query = {"fieldManager": "me", "force": "true", "fieldValidation": "Strict"}
    assert claims_of(api("PATCH", path, wanted, media=APPLY, **query)) == [NOW, {**NOW, "name": "nic"}]


def test_a_manifest_of_then_is_applied_again_and_again(api):
    """What `kubectl apply` sends for one that it has applied before: the answer it sees has no `source`."""

    def again(source):
        entry = {"$retainKeys": ["name", "source"], "name": "gpu", "source": source}
        return {"$setElementOrder/resourceClaims": [{"name": "gpu"}], "resourceClaims": [entry]}

    api("POST", PODS, pod(OLD))
    answer = api("PATCH", f"{PODS}/p", {"spec": again(OLD["source"])}, media=STRATEGIC)
    assert claims_of(answer) == [NOW]
    api("POST", DEPLOYMENTS, deployment(OLD))
    patch = {"spec": {"template": {"spec": again({"resourceClaimName": "c"})}}}
    answer = api("PATCH", f"{DEPLOYMENTS}/d", patch, media=STRATEGIC)
    assert claims_of(answer) == [{"name": "gpu", "resourceClaimName": "c"}]
