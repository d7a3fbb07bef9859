"""A server that makes the claims of a pod with it (WITH1 to WITH3), beside the claim controller."""

from functools import partial
from typing import Any

import msgspec
import pytest

from allot.api import Gates, Object, errors, generated, transaction
from allot.apiserver.writing import claims_of_pods
from allot.controllers import resourceclaims
from api.classic.objects import class_
from api.classic.objects import template as classic_template
from controllers.resourceclaims.objects import claim, direct, exhaust, pod, template
from controllers.resourceclaims.objects import generated as recorded
from controllers.world import NS, World, tell

alone = partial(tell, started=False, claims_with_pods=True, transactions=True)
"""The server, and no controller."""
TWO = [{"name": one, "resourceClaimTemplateName": "t"} for one in ("one", "two")]
LABELLED = {"labels": {"team": "a"}, "annotations": {"note": "kept"}}


def in_v1alpha1(here: World, plural: str, namespaced: bool = True):
    return here.client.resource("resource.k8s.io", "v1alpha1", plural, namespaced=namespaced)


async def classic(here: World) -> None:
    await in_v1alpha1(here, "resourceclasses", namespaced=False).create(class_())
    await in_v1alpha1(here, "resourceclaimtemplates").create(classic_template())


async def structured(here: World) -> None:
    await here.templates.create(template(**LABELLED))


async def claims_of(here: World) -> list[Object]:
    return list((await here.claims.list(NS)).objects)


def names_in(found: Object) -> dict[str, str]:
    status = found.fields.get("status") or {}
    return {one["name"]: one["resourceClaimName"] for one in status.get("resourceClaimStatuses") or ()}


def test_a_pod_and_its_claims_are_there_at_one_revision():
    """WITH1"""

    async def story(here: World) -> None:
        await structured(here)
        for number in range(3):
            created = await here.pods.create(pod(f"p{number}", claims=TWO))
            found = [await here.claims.get(name, NS) for name in names_in(created).values()]
            assert {one.resource_version for one in found} == {created.resource_version}
            assert list(names_in(created)) == ["one", "two"]
        assert len(await claims_of(here)) == 6

    alone(story)


def plain(found: Object, known: dict[str, str]) -> Any:
    """An object with what differs between any two of them written alike."""
    text = msgspec.json.encode(found.fields).decode()
    for said, meant in known.items():
        text = text.replace(said, meant)
    fields = msgspec.json.decode(text)
    metadata = fields["metadata"]
    for name in ("resourceVersion", "creationTimestamp", "uid"):
        del metadata[name]
    for entry in metadata["managedFields"]:
        del entry["time"]
    return fields


@pytest.mark.parametrize("furnish", [structured, classic])
@pytest.mark.parametrize("how_many", [1, 2], ids=["the first of a template", "another one"])
def test_what_is_made_is_what_the_controller_would_have_made(furnish, how_many: int):
    """WITH3, Rule 6.1: field by field, and who owns each of them."""
    seen: list[Any] = []

    async def story(here: World) -> None:
        await furnish(here)
        for number in range(how_many):
            await here.pods.create(pod(f"p{number}"))
        last = f"p{how_many - 1}"
        made = await recorded(here, last)
        found = await here.pods.get(last, NS)
        known = {made.name: "CLAIM", made.uid: "CLAIM-UID", found.uid: "POD-UID"}
        seen.append((plain(found, known), plain(made, known)))

    alone(story)
    tell(story, resourceclaims.CONTROLLER, transactions=True)
    assert seen[0] == seen[1]
    owners = [(one["manager"], one["operation"]) for one in seen[0][0]["metadata"]["managedFields"]]
    assert owners[0] == (generated.FIELD_MANAGER, "Apply")


# -- where it is left to the controller (WITH2) ------------------------------------------------------


async def no_template(here: World) -> None:
    pass


async def no_class(here: World) -> None:
    await in_v1alpha1(here, "resourceclaimtemplates").create(classic_template())


async def full_quota(here: World) -> None:
    await exhaust(here, "count/resourceclaims.resource.k8s.io")


async def any_quota(here: World) -> None:
    """Of something else: what it counts is found out where a write pays."""
    await exhaust(here, "count/configmaps")


async def name_taken(here: World) -> None:
    await classic(here)
    await here.claims.create(claim("p-gpu"))


async def admin_access(here: World) -> None:
    body = template()
    request = body["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    request["adminAccess"] = True
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    await here.client.resource("", "v1", "namespaces", namespaced=False).patch(NS, label)
    await here.templates.create(body)


async def policy(here: World) -> None:
    rule = {
        "apiGroups": ["resource.k8s.io"],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": ["resourceclaims"],
    }
    group = "admissionregistration.k8s.io"
    policies = here.client.resource(group, "v1", "validatingadmissionpolicies", namespaced=False)
    bindings = here.client.resource(group, "v1", "validatingadmissionpolicybindings", namespaced=False)
    spec = {"validations": [{"expression": "false"}], "matchConstraints": {"resourceRules": [rule]}}
    await policies.create({"metadata": {"name": "none"}, "spec": spec})
    bound = {"policyName": "none", "validationActions": ["Deny"]}
    await bindings.create({"metadata": {"name": "none"}, "spec": bound})


TEMPLATES = (no_template, no_class, name_taken, admin_access)
NAMESPACES = (full_quota, any_quota, policy)


async def left_to_the_controller(here: World, body: dict[str, Any]) -> None:
    await here.quiet()  # the server has learned of everything
    before = {one.uid for one in await claims_of(here)}
    created = await here.pods.create(body)
    assert names_in(created) == {}
    assert {one.uid for one in await claims_of(here)} == before


@pytest.mark.parametrize("furnish", TEMPLATES, ids=lambda one: one.__name__)
def test_no_pod_is_refused_for_its_claims(furnish):
    """WITH2"""

    async def story(here: World) -> None:
        await furnish(here)
        await left_to_the_controller(here, pod())

    alone(story)


@pytest.mark.parametrize("is_known", [False, True], ids=["the first of a template", "another one"])
@pytest.mark.parametrize("furnish", NAMESPACES, ids=lambda one: one.__name__)
def test_where_somebody_has_a_say_about_claims_they_are_asked(furnish, is_known: bool):
    """WITH2"""

    async def story(here: World) -> None:
        await structured(here)
        if is_known:
            assert names_in(await here.pods.create(pod("before")))
        await furnish(here)
        await left_to_the_controller(here, pod())

    alone(story)


def test_a_claim_that_would_have_no_name_is_not_made():
    """WITH2: names are cut in proportion, and what is left of this one ends with a dot."""
    name = "a" * 51 + "." + "b" * 10
    assert ".-" in generated.base_name(name, "gpu")

    async def story(here: World) -> None:
        await structured(here)
        assert names_in(await here.pods.create(pod("before")))
        await left_to_the_controller(here, pod(name))

    alone(story)


def test_a_pod_that_has_its_node_already_is_left_to_the_controller():
    """WITH2: its claims are reserved for it too, where they can be."""

    async def story(here: World) -> None:
        await structured(here)
        assert names_in(await here.pods.create(pod(nodeName="n"))) == {}

    alone(story)


def test_all_claims_of_a_pod_are_made_or_none(monkeypatch):
    """WITH2"""

    async def story(here: World) -> None:
        await structured(here)
        missing = [*TWO, {"name": "three", "resourceClaimTemplateName": "unknown"}]
        assert names_in(await here.pods.create(pod(claims=missing))) == {}
        many = [{"name": f"e{n}", "resourceClaimTemplateName": "t"} for n in range(4)]
        monkeypatch.setattr(claims_of_pods, "ENTRIES_MAX", 3)
        assert names_in(await here.pods.create(pod("many", claims=many))) == {}
        monkeypatch.setattr(claims_of_pods, "BYTES_MAX", 1000)
        assert names_in(await here.pods.create(pod("large", claims=many[:3]))) == {}
        assert await claims_of(here) == []
        monkeypatch.undo()
        assert len(names_in(await here.pods.create(pod("right", claims=many)))) == 4

    alone(story)


def test_a_dry_run_makes_nothing():
    async def story(here: World) -> None:
        await structured(here)
        assert names_in(await here.pods.create(pod(), dry_run=True)) == {}
        assert await claims_of(here) == []

    alone(story)


def test_claims_that_a_pod_names_itself_are_not_made():
    async def story(here: World) -> None:
        await structured(here)
        mixed = [*direct(), {"name": "own", "resourceClaimTemplateName": "t"}]
        assert list(names_in(await here.pods.create(pod(claims=mixed)))) == ["own"]
        assert names_in(await here.pods.create(pod("named", claims=direct()))) == {}
        assert len(await claims_of(here)) == 1

    alone(story)


def test_a_template_that_changes_is_read_anew():
    async def story(here: World) -> None:
        await structured(here)
        await here.pods.create(pod("before"))
        await here.templates.delete("t", NS)
        await here.quiet()
        assert names_in(await here.pods.create(pod("without"))) == {}
        other = template()
        other["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 3
        await here.templates.create(other)
        await here.quiet()
        name = names_in(await here.pods.create(pod("after")))["gpu"]
        [asked] = (await here.claims.get(name, NS)).fields["spec"]["devices"]["requests"]
        assert asked["exactly"]["count"] == 3

    alone(story)


@pytest.mark.parametrize("bound", ["PATTERNS_MAX", "PATTERN_BYTES_MAX"])
def test_what_is_remembered_of_templates_is_bounded(monkeypatch, bound: str):
    """A template that is not remembered is read anew, and its claims are made all the same."""
    monkeypatch.setattr(claims_of_pods, bound, 3)

    async def story(here: World) -> None:
        for number in range(5):
            await here.templates.create(template(f"t{number}"))
        for number in range(10):
            entry = [{"name": "gpu", "resourceClaimTemplateName": f"t{number % 5}"}]
            assert names_in(await here.pods.create(pod(f"p{number}", claims=entry)))
        kept = here.server.api._claims_of_pods._patterns
        assert len(kept) == (3 if bound == "PATTERNS_MAX" else 0)

    alone(story)


def test_with_the_gate_of_classic_claims_off_none_is_made():
    async def story(here: World) -> None:
        body = template()
        body["spec"]["spec"] = {"resourceClassName": "gpu"}
        with pytest.raises(errors.ApiError):
            await in_v1alpha1(here, "resourceclaimtemplates").create(classic_template())
        await structured(here)
        assert list(names_in(await here.pods.create(pod()))) == ["gpu"]

    alone(story, gates=Gates({"DRAControlPlaneController": False, "DRANumericParameters": False}))


def asked_of(found: Object) -> str:
    (request,) = found.fields["spec"]["devices"]["requests"]
    return request["exactly"]["deviceClassName"]


def test_a_template_of_a_transaction_makes_claims_in_that_one_alone():
    """What is pending has revisions that come again in the next transaction: a claim is not made from a
    template that was never stored, or of which a later one has taken the place."""

    def of_class(name: str) -> dict[str, Any]:
        made = template()
        (request,) = made["spec"]["spec"]["devices"]["requests"]
        request["exactly"]["deviceClassName"] = name
        return made

    async def story(here: World) -> None:
        templates, pods = here.templates.writes, here.pods.writes
        for name, more in (("never-stored", [pods.bind("unknown", NS, "n")]), ("stored", [])):
            writes = [templates.create(of_class(name), NS), pods.create(pod("a"), NS), *more]
            if more:
                with pytest.raises(errors.NotFound):
                    await here.client.together(writes)
            else:
                await here.client.together(writes)
        (made,) = await claims_of(here)
        assert asked_of(made) == "stored"
        await here.client.together([templates.delete("t", NS), pods.create(pod("b"), NS)])
        assert len(await claims_of(here)) == 1, "there is no template any more"

    alone(story)


def test_in_a_transaction_that_is_refused_nothing_is_left():
    async def story(here: World) -> None:
        await structured(here)
        writes = here.pods.writes
        with pytest.raises(errors.ApiError):
            await here.client.together([writes.create(pod("a"), NS), writes.bind("unknown", NS, "n")])
        assert await claims_of(here) == []
        created, other = await here.client.together(
            [writes.create(pod("a"), NS), here.claims.writes.create(claim(), NS)]
        )
        found = await here.claims.get(names_in(created)["gpu"], NS)
        assert {found.resource_version, other.resource_version} == {created.resource_version}

    alone(story)


def test_the_controller_leaves_them_as_they_are():
    """Rule 6.1: it finds them recorded. What follows - release and deletion - is its own as ever."""

    async def story(here: World) -> None:
        await structured(here)
        created = await here.pods.create(pod())
        await here.quiet()
        found = await here.pods.get("p", NS)
        assert found.resource_version == created.resource_version
        [made] = await claims_of(here)
        assert here.wire.count("POST", transaction.PATH) == here.wire.count("POST", "/resourceclaims") == 0
        await here.claims.delete(made.name, NS)  # somebody takes it away: it is made again

        async def another() -> bool:
            names = names_in(await here.pods.get("p", NS))
            return names.get("gpu") not in (None, made.name)

        await here.until(another)

    tell(story, resourceclaims.CONTROLLER, claims_with_pods=True, transactions=True)


@pytest.mark.parametrize("furnish", [no_template, full_quota], ids=lambda one: one.__name__)
def test_what_the_server_does_not_make_the_controller_makes_later(furnish):
    async def story(here: World) -> None:
        if furnish is full_quota:
            await structured(here)
        await furnish(here)
        assert names_in(await here.pods.create(pod())) == {}
        if furnish is no_template:
            await structured(here)
        else:
            await here.client.resource("", "v1", "resourcequotas").delete("full", NS)
        await recorded(here)

    tell(story, resourceclaims.CONTROLLER, claims_with_pods=True, transactions=True)
