"""Pods whose classic claims would have names that are too long."""

import pytest

from api.classic.objects import template as classic_template

TEMPLATES = "/apis/resource.k8s.io/{}/namespaces/default/resourceclaimtemplates"
PODS = "/api/v1/namespaces/default/pods"


def pod(entry, template="one", **metadata):
    claims = [{"name": "short", "resourceClaimTemplateName": template}]
    claims.append({"name": entry, "resourceClaimTemplateName": template})
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": entry}]}}
    return {"metadata": metadata, "spec": {"containers": [container], "resourceClaims": claims}}


@pytest.fixture
def with_templates(api):
    body = classic_template()
    body["metadata"]["name"] = "one"
    assert api("POST", TEMPLATES.format("v1alpha1"), body).status == 201
    asks = [{"name": "r", "exactly": {"deviceClassName": "d"}}]
    structured = {"metadata": {"name": "structured"}, "spec": {"spec": {"devices": {"requests": asks}}}}
    assert api("POST", TEMPLATES.format("v1"), structured).status == 201
    return api


def test_a_pod_is_refused_whose_classic_claim_could_have_no_name(with_templates):
    """3063-CORE-09."""
    api = with_templates
    fits, too_long = "p" * (253 - 1 - 63), "p" * (253 - 63)
    assert api("POST", PODS, pod("e" * 63, name=fits)).status == 201
    answer = api("POST", PODS, pod("e" * 63, name=too_long))
    assert answer.status == 422
    assert answer.causes == [("spec.resourceClaims[1].name", "FieldValueInvalid")]
    assert "must be no more than 253" in answer.body["message"]


def test_a_generated_name_is_judged_when_it_is_made(with_templates):
    """3063-CORE-09: a generated name has five letters more than its base, and at most 63 in all."""
    api = with_templates
    assert api("POST", PODS, pod("e" * 63, generateName="p" * 200)).status == 201


@pytest.mark.parametrize("template", ["structured", "not-there-yet"])
def test_names_of_structured_claims_are_shortened(with_templates, template):
    assert with_templates("POST", PODS, pod("e" * 63, template, name="p" * 200)).status == 201
