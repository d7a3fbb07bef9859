"""Claims that are not made from their templates, and whether the person who asks is told why."""

from allot import scheduler
from allot.api import User
from allot.cli import unmade
from allot.client import Client
from allot.controllers import resourceclaims
from allot.informers import Key
from controllers.resourceclaims.objects import allocate, exhaust, finish, generated, pod, story, template
from controllers.world import NS, World, tell

CLAIMS = "count/resourceclaims.resource.k8s.io"


async def causes(here: World, name: str = "p", client: Client | None = None) -> unmade.Causes:
    """What the administrator sees of the pod is explained with the rights of the client."""
    reading = await scheduler.read(here.client, here.gates, NS)
    return await unmade.causes(client or here.client, reading.pods[Key(NS, name)], reading.snapshot)


async def notes(here: World, name: str = "p") -> tuple[str, ...]:
    return (await causes(here, name)).notes


async def allow(here: World, *resources: str) -> Client:
    """Somebody who may list these and nothing else."""
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": ["*"], "resources": list(resources), "verbs": ["list"]}
    await here.client.resource(group, "v1", "roles").create({"metadata": {"name": "r"}, "rules": [rule]}, NS)
    binding = {
        "metadata": {"name": "r"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "tenant"}],
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "r"},
    }
    await here.client.resource(group, "v1", "rolebindings").create(binding, NS)
    return here.server.client(User("tenant", ("system:authenticated",)))


@story
async def test_a_template_that_is_not_there_is_said(here: World):
    entries = [{"name": name, "resourceClaimTemplateName": "missing"} for name in ("a", "b")]
    await here.pods.create(pod(claims=entries))
    told = await causes(here)
    assert told == unmade.Causes((f'there is no ResourceClaimTemplate "missing" in namespace {NS}',))


@story
async def test_a_quota_that_is_used_up_is_said_in_the_words_of_the_controller(here: World):
    await exhaust(here, CLAIMS)
    await here.templates.create(template())
    await here.pods.create(pod())
    (note,) = await here.until(lambda: notes(here))
    assert note.startswith("FailedResourceClaimCreation, ")
    assert 'ago: PodResourceClaim gpu: resourceclaims.resource.k8s.io "p-gpu-" is forbidden' in note
    assert "exceeded quota: full" in note


@story
async def test_each_claim_of_a_pod_has_a_cause_of_its_own(here: World):
    await exhaust(here, CLAIMS)
    await here.templates.create(template())
    entries = [
        {"name": "a", "resourceClaimTemplateName": "missing"},
        {"name": "b", "resourceClaimTemplateName": "t"},
    ]
    await here.pods.create(pod(claims=entries))

    async def both():
        told = await notes(here)
        return len(told) == 2 and told

    first, second = await here.until(both)
    assert "no ResourceClaimTemplate" in first and "PodResourceClaim b: " in second


@story
async def test_a_claim_that_vanished_and_cannot_be_made_again_is_explained_too(here: World):
    await here.templates.create(template())
    await here.pods.create(pod())
    made = await generated(here)
    assert await notes(here) == ()
    await exhaust(here, CLAIMS)
    await here.claims.delete(made.name, NS)
    (note,) = await here.until(lambda: notes(here))
    assert "exceeded quota: full" in note


def test_while_nobody_has_tried_nothing_is_said():
    async def quiet(here: World) -> None:
        await here.templates.create(template())
        await here.pods.create(pod())
        assert await causes(here) == unmade.Causes()

    tell(quiet, resourceclaims.CONTROLLER, started=False)


def test_of_several_failures_the_newest_is_quoted_and_those_of_an_earlier_pod_are_not():
    async def failed_twice(here: World) -> None:
        await here.templates.create(template())
        made = await here.pods.create(pod())
        events = here.client.resource("", "v1", "events")
        for uid, hour, text in (
            (made.uid, 1, "old"),
            (made.uid, 2, "new"),
            ("of-an-earlier-pod", 3, "other"),
        ):
            about = {"kind": "Pod", "namespace": NS, "name": "p", "uid": uid}
            event = {
                "metadata": {"name": text},
                "involvedObject": about,
                "reason": unmade.REASON,
                "message": f"PodResourceClaim gpu: {text}",
                "lastTimestamp": f"2026-01-01T0{hour}:00:00Z",
            }
            await events.create(event, NS)
        (note,) = await notes(here)
        assert note.endswith("ago: PodResourceClaim gpu: new")

    tell(failed_twice, resourceclaims.CONTROLLER, started=False)


@story
async def test_a_pod_for_which_none_will_be_made_is_not_explained(here: World):
    await here.pods.create(pod())
    await finish(here)
    assert await causes(here) == unmade.Causes()


@story
async def test_a_pod_that_has_its_claim_is_not_explained(here: World):
    """Also when its template is gone since."""
    await here.templates.create(template())
    await here.pods.create(pod())
    await allocate(here, await generated(here))
    await here.templates.delete("t", NS)
    assert await causes(here) == unmade.Causes()


@story
async def test_who_may_read_neither_templates_nor_events_is_told_so(here: World):
    await here.pods.create(pod())
    told = await causes(here, client=await allow(here, "pods"))
    assert told.notes == ()
    assert [one.partition(":")[0] for one in told.unread] == [
        "cannot list resourceclaimtemplates",
        "cannot list events",
    ]


@story
async def test_who_may_read_events_alone_is_told_what_they_say(here: World):
    await here.pods.create(pod())
    tenant = await allow(here, "events")

    async def quoted():
        told = await causes(here, client=tenant)  # rights and events arrive a moment later
        return told.notes and told

    told = await here.until(quoted)
    assert 'resource claim template "t":' in told.notes[0]
    assert [one.partition(":")[0] for one in told.unread] == ["cannot list resourceclaimtemplates"]
