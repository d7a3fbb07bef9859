"""Cron jobs over the real server, with schedules of a second."""

from datetime import datetime
from typing import Any

import pytest

from allot.api import errors
from allot.controllers import cronjobs
from controllers.world import NS, World, tell

CONTROLLER = cronjobs.CONTROLLER


def cron_job(**spec: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "main", "image": "backup:1"}], "restartPolicy": "Never"}
    template = {"metadata": {"labels": {"app": "backup"}}, "spec": {"template": {"spec": pod}}}
    wanted = {"schedule": "@every 1s", "jobTemplate": template, **spec}
    metadata = {"name": "backup", "namespace": NS}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": wanted}


def cron_jobs(here: World):
    return here.client.resource("batch", "v1", "cronjobs")


def jobs(here: World):
    return here.client.resource("batch", "v1", "jobs")


async def first_job(here: World) -> Any:
    async def made() -> Any:
        found = (await jobs(here).list(NS)).objects
        return found[0] if found else None

    return await here.until(made)


def test_a_job_is_made_when_it_is_time_and_the_status_names_it():
    async def story(here: World) -> None:
        await cron_jobs(here).create(cron_job())
        job = await first_job(here)
        assert job.metadata.labels["app"] == "backup"
        (owner,) = job.fields["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("CronJob", "backup", True)

        async def named() -> bool:
            status = (await cron_jobs(here).get("backup", NS)).fields.get("status") or {}
            active = [one["name"] for one in status.get("active") or ()]
            return job.name in active and bool(status.get("lastScheduleTime"))

        await here.until(named)

    tell(story, CONTROLLER)


def test_a_job_that_ended_leaves_the_status_and_then_the_history():
    async def story(here: World) -> None:
        await cron_jobs(here).create(cron_job(successfulJobsHistoryLimit=0))
        job = await first_job(here)
        await cron_jobs(here).patch("backup", {"spec": {"suspend": True}}, NS)
        end = "2026-05-01T00:00:00Z"
        conditions = [
            {"type": type, "status": "True", "lastTransitionTime": end}
            for type in ("SuccessCriteriaMet", "Complete")
        ]
        done = {"succeeded": 1, "startTime": end, "completionTime": end, "conditions": conditions}
        await jobs(here).patch(job.name, {"status": done}, NS, subresource="status")

        async def gone() -> bool:
            status = (await cron_jobs(here).get("backup", NS)).fields.get("status") or {}
            named = [one["name"] for one in status.get("active") or ()]
            left = [one.name for one in (await jobs(here).list(NS)).objects]
            return job.name not in named + left and status.get("lastSuccessfulTime") == end

        await here.until(gone)

    tell(story, CONTROLLER)


def test_a_leader_that_died_before_it_recorded_a_job_is_followed_by_one_that_makes_no_second():
    """The status cannot be written: the job of one minute stays the only one of that minute."""

    async def story(here: World) -> None:
        async def refuse(request: Any) -> None:
            if request.method == "PUT":
                raise errors.Unavailable("not now")

        await cron_jobs(here).create(cron_job(concurrencyPolicy="Forbid"))
        here.wire.before = refuse
        job = await first_job(here)
        await here.stop()
        await here.start()

        async def recorded() -> bool:
            status = (await cron_jobs(here).get("backup", NS)).fields.get("status") or {}
            return [one["name"] for one in status.get("active") or ()] == [job.name]

        await here.until(recorded)
        assert [one.name for one in (await jobs(here).list(NS)).objects] == [job.name]

    tell(story, CONTROLLER)


@pytest.mark.parametrize("is_controlled", [False, True], ids=["nobody's", "another cron job's"])
def test_a_job_that_has_the_name_and_is_not_the_cron_jobs_own_is_not_adopted_and_told_of(is_controlled):
    async def story(here: World) -> None:
        made = await cron_jobs(here).create(cron_job(suspend=True))
        another = cron_job(suspend=True)
        another["metadata"]["name"] = "another"
        other = await cron_jobs(here).create(another)
        owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": other.name, "uid": other.uid}
        owners = [{**owner, "controller": True}] if is_controlled else []
        minute = int(datetime.fromisoformat(made.fields["metadata"]["creationTimestamp"]).timestamp()) // 60
        names = [f"backup-{minute}", f"backup-{minute + 1}"]
        pod = cron_job()["spec"]["jobTemplate"]["spec"]
        for name in names:
            metadata = {"name": name, "namespace": NS, "ownerReferences": owners}
            await jobs(here).create({"metadata": metadata, "spec": pod})
        await cron_jobs(here).patch("backup", {"spec": {"suspend": False}}, NS)
        events = here.client.resource("", "v1", "events")

        async def reported() -> bool:
            return any(one.fields["reason"] == "UnexpectedJob" for one in (await events.list(NS)).objects)

        await here.until(reported)
        await cron_jobs(here).patch("backup", {"spec": {"suspend": True}}, NS)
        await here.quiet()
        found = (await jobs(here).list(NS)).objects
        assert [one.name for one in found] == names
        assert [one.fields["metadata"].get("ownerReferences") or [] for one in found] == [owners, owners]
        status = (await cron_jobs(here).get("backup", NS)).fields.get("status") or {}
        assert not status.get("active") and not status.get("lastScheduleTime")

    tell(story, CONTROLLER)


def test_nothing_is_started_for_a_cron_job_that_was_suspended_while_the_cache_was_behind():
    async def story(here: World) -> None:
        await cron_jobs(here).create(cron_job(schedule="@every 2s"))
        await here.until(lambda: _is_known(here))
        here.ear.hold("cronjobs")
        await cron_jobs(here).patch("backup", {"spec": {"suspend": True}}, NS)

        async def was_asked() -> bool:
            return here.wire.count("GET", "/cronjobs/backup") > 0

        await here.until(was_asked)
        await here.quiet()
        assert not (await jobs(here).list(NS)).objects
        here.ear.let_go()

    tell(story, CONTROLLER)


async def _is_known(here: World) -> bool:
    """The controller has looked at it once."""
    return 'workqueue_adds_total{name="cronjob"}' in here.metrics.text()


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"schedule": "61 * * * *"}, "spec.schedule"),
        ({"schedule": "0 * * *"}, "spec.schedule"),
        ({"timeZone": "Mars/Olympus"}, "spec.timeZone"),
        ({"timeZone": "Local"}, "spec.timeZone"),
        ({"timeZone": ""}, "spec.timeZone"),
    ],
)
def test_what_could_never_run_is_refused(spec, field):
    async def story(here: World) -> None:
        with pytest.raises(errors.Invalid, match=field):
            await cron_jobs(here).create(cron_job(**spec))

    tell(story, CONTROLLER, started=False)
