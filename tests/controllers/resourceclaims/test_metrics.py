"""What the claim controller counts, under upstream's names. Rule 6.1 (metrics)."""

from allot.api import errors
from controllers.resourceclaims.objects import (
    allocate,
    claim,
    consumer,
    finish,
    generated,
    gone,
    pod,
    story,
    template,
)
from controllers.world import NS, World

GAUGE = "dynamic_resource_allocation_resource_claims"
CREATES = "dynamic_resource_allocation_resourceclaim_creates_total"


async def shown(here: World, line: str) -> None:
    async def look() -> bool:
        return line in here.metrics.text()

    await here.until(look)


def labels(allocated: str = "false", admin: str = "false", source: str = "") -> str:
    return f'{GAUGE}{{allocated="{allocated}",admin_access="{admin}",source="{source}"}}'


@story
async def test_claims_are_counted_by_allocation_and_source(here: World):
    """Rule 6.1: the gauge has the labels allocated, admin_access and source, and follows each change."""
    made = await here.claims.create(claim())
    await shown(here, f"{labels()} 1")
    await allocate(here, made)
    await shown(here, f"{labels(allocated='true')} 1")
    assert f"{labels()} 0" in here.metrics.text()

    await here.templates.create(template())
    running = await here.pods.create(pod())
    own = await generated(here)
    await allocate(here, own, consumer(running))
    await shown(here, f"{labels(allocated='true', source='resource_claim_template')} 1")
    await finish(here)
    await gone(here, own.name)
    await shown(here, f"{labels(allocated='true', source='resource_claim_template')} 0")


@story
async def test_claims_for_administrators_are_counted_apart(here: World):
    """Rule 6.1: admin_access."""
    namespaces = here.client.resource("", "v1", "namespaces", namespaced=False)
    await namespaces.patch(NS, {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}})
    await here.quiet()
    wanted = template()
    wanted["spec"]["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"] = True
    await here.templates.create(wanted)
    await here.pods.create(pod())
    await generated(here)
    await shown(here, f"{labels(admin='true', source='resource_claim_template')} 1")
    assert (
        f'{CREATES}{{status="success",admin_access="true",owner_api_group="",owner_api_kind="Pod"}} 1'
        in here.metrics.text()
    )


@story
async def test_claims_that_could_not_be_made_are_counted(here: World):
    """Rule 6.1: creations are counted by how they went."""

    async def refuse(request) -> None:
        if request.method == "POST" and request.path.endswith("/resourceclaims"):
            raise errors.Forbidden("not today")

    here.wire.before = refuse
    await here.templates.create(template())
    await here.pods.create(pod())
    await shown(
        here, f'{CREATES}{{status="failure",admin_access="false",owner_api_group="",owner_api_kind="Pod"}}'
    )
    here.wire.before = None
    await generated(here)
    await shown(
        here, f'{CREATES}{{status="success",admin_access="false",owner_api_group="",owner_api_kind="Pod"}} 1'
    )


@story
async def test_the_queue_has_upstreams_name(here: World):
    """Rule 6.1: workqueue metrics under name="resource_claim"."""
    await here.templates.create(template())
    await here.pods.create(pod())
    await generated(here)
    for name in ("workqueue_adds_total", "workqueue_depth", "workqueue_work_duration_seconds_count"):
        assert f'{name}{{name="resource_claim"}}' in here.metrics.text()
