"""Kinds that are kept for others, and say so."""

import pytest

from allot.api import errors, kinds, schema
from allot.api.kinds import stored

IGNORING = {"failurePolicy": "Ignore"}


def smallest(shape: schema.Schema) -> object:
    """The least that the schema takes."""
    match shape.type.value:
        case "object":
            return {name: smallest(one) for name, one in shape.fields.items() if name in shape.required}
        case "list":
            return []
        case "map":
            return {}
        case "integer" | "number":
            return 1
        case "boolean":
            return False
        case _:
            return ""


def wanted(kind) -> dict:
    made = smallest(kind.versions[0].shape())
    made["metadata"] = {"name": "x", **({"namespace": "default"} if kind.namespaced else {})}
    if kind.plural == "mutatingadmissionpolicies":
        made["spec"] = {**made.get("spec", {}), **IGNORING}
    return made


def resource(client, kind):
    return client.resource(kind.group, kind.versions[0].name, kind.plural, namespaced=kind.namespaced)


@pytest.mark.parametrize("kind", stored.KINDS, ids=lambda kind: kind.plural)
def test_it_is_stored_listed_and_warned_about(allot_server, kind):
    said: list[str] = []
    client = allot_server.client(warn=said.append)

    async def story():
        made = await resource(client, kind).create(wanted(kind))
        assert [text for text in said if "stored and not acted on" in text]
        listed = await resource(client, kind).list("default" if kind.namespaced else "")
        assert [one.uid for one in listed.objects] == [made.uid]
        said.clear()
        patch = {"metadata": {"labels": {"a": "b"}}}
        await resource(client, kind).patch("x", patch, made.namespace)
        assert said == []

    allot_server.run(story())


@pytest.mark.parametrize("plural", ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"])
@pytest.mark.parametrize("policy", [{}, {"failurePolicy": "Fail"}])
def test_a_webhook_that_must_agree_is_refused_with_the_reason(allot_server, plural, policy):
    kind = next(one for one in kinds.ALL if one.plural == plural)
    hook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://a.example.com"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    both = [{**hook, **IGNORING}, {**hook, "name": "b.example.com", **policy}]
    with pytest.raises(errors.Invalid, match=r"webhooks\[1\].failurePolicy: Forbidden: nobody is asked"):
        allot_server.run(resource(allot_server.client(), kind).create({**wanted(kind), "webhooks": both}))
    allot_server.run(resource(allot_server.client(), kind).create({**wanted(kind), "webhooks": both[:1]}))


def test_a_policy_that_must_hold_is_refused(allot_server):
    kind = next(one for one in kinds.ALL if one.plural == "mutatingadmissionpolicies")
    with pytest.raises(errors.Invalid, match=r"spec\.failurePolicy"):
        allot_server.run(resource(allot_server.client(), kind).create({**wanted(kind), "spec": {}}))
