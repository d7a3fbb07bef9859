"""Jobs that have ended, and how long they stay."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from allot.api import Object, age, encode
from allot.controllers import finishedjobs, garbagecollection
from allot.controllers.finishedjobs.plan import stays_s
from controllers.world import NS, World, tell

ENDED = datetime(2026, 1, 1, tzinfo=UTC)
TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app:1"}]}}


def condition(type: str, at: datetime = ENDED, status: str = "True") -> dict[str, Any]:
    return {"type": type, "status": status, "lastTransitionTime": age.timestamp(at)}


def job(ttl: int | None, *conditions: dict[str, Any], **metadata: Any) -> Object:
    spec = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    status = {"conditions": [*conditions]}
    return Object(encode({"metadata": {"name": "j", **metadata}, "spec": spec, "status": status}))


@pytest.mark.parametrize("end", ["Complete", "Failed"])
def test_a_job_stays_as_long_after_its_end_as_it_says(end):
    decided = condition("SuccessCriteriaMet", ENDED - timedelta(minutes=5))
    now = ENDED + timedelta(seconds=20)
    assert stays_s(job(60, decided, condition(end)), now) == 40
    assert stays_s(job(0, condition(end)), now) == -20
    assert stays_s(job(60, condition(end, datetime.max.replace(tzinfo=UTC))), now) > 10**11


def test_whoever_has_not_ended_or_names_no_time_stays():
    assert stays_s(job(0), ENDED) is None
    assert stays_s(job(0, condition("Complete", status="False"), condition("FailureTarget")), ENDED) is None
    assert stays_s(job(None, condition("Complete")), ENDED) is None
    assert stays_s(job(0, condition("Complete"), deletionTimestamp=age.timestamp(ENDED)), ENDED) is None


async def create(here: World, name: str, ttl: int | None, *conditions: dict[str, Any]) -> Object:
    jobs = here.client.resource("batch", "v1", "jobs")
    spec = {"template": TEMPLATE, **({} if ttl is None else {"ttlSecondsAfterFinished": ttl})}
    made = await jobs.create({"metadata": {"name": name, "namespace": NS}, "spec": spec})
    await jobs.patch(name, {"status": {"conditions": [*conditions]}}, NS, subresource="status")
    return made


def test_a_job_goes_with_its_pods_when_its_time_is_up():
    """Those whose time is not up, who run, or who name no time, stay."""

    async def story(here: World) -> None:
        jobs = here.client.resource("batch", "v1", "jobs")
        done = await create(here, "done", 60, condition("Complete"))
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "done", "uid": done.uid, "controller": True}
        metadata = {
            "name": "pod",
            "namespace": NS,
            "ownerReferences": [{**owner, "blockOwnerDeletion": True}],
        }
        await here.pods.create({"metadata": metadata, "spec": TEMPLATE["spec"]})
        await create(here, "running", 0)
        await create(here, "kept", None, condition("Failed"))
        await create(here, "recent", 3600, condition("Complete", datetime.now(UTC)))

        async def gone() -> bool:
            return await here.find(jobs, "done") is None

        await here.until(gone)
        assert not (await here.pods.list(NS)).objects
        await here.quiet()
        assert {one.name for one in (await jobs.list(NS)).objects} == {"running", "kept", "recent"}
        assert here.wires["ttl-after-finished-controller"].count("DELETE", "/jobs/") == 1

    tell(story, finishedjobs.CONTROLLER, garbagecollection.CONTROLLER)


def test_it_is_waited_for_and_less_time_counts_at_once():
    async def story(here: World) -> None:
        jobs = here.client.resource("batch", "v1", "jobs")
        await create(here, "soon", 1, condition("Complete", datetime.now(UTC)))
        await create(here, "later", 3600, condition("Complete", datetime.now(UTC)))
        await here.quiet()
        await jobs.patch("later", {"spec": {"ttlSecondsAfterFinished": 0}}, NS)

        async def nobody() -> bool:
            return not (await jobs.list(NS)).objects

        await here.until(nobody)

    tell(story, finishedjobs.CONTROLLER, garbagecollection.CONTROLLER)


def test_who_asks_for_more_time_at_the_last_moment_gets_it():
    """The cache still shows the short time; the deletion names the version it was decided on."""

    async def story(here: World) -> None:
        jobs = here.client.resource("batch", "v1", "jobs")
        await here.start()
        wire, asked = here.wire, []

        async def meanwhile(request: Any) -> None:
            if request.method == "DELETE" and not asked:
                asked.append(request)
                await jobs.patch("j", {"spec": {"ttlSecondsAfterFinished": 2_000_000_000}}, NS)

        wire.before = meanwhile
        await create(here, "j", 0, condition("Complete"))

        async def tried() -> bool:
            return bool(asked)

        await here.until(tried)
        await here.quiet()
        live = await jobs.get("j", NS)
        assert live.metadata.deletion_timestamp is None
        assert len(asked) == 1

    tell(story, finishedjobs.CONTROLLER, started=False)
