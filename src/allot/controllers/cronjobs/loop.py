"""Waits until a cron job is due, and makes its job."""

import contextlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from allot.api import Object, errors
from allot.client import Propagation
from allot.informers import (
    NORMAL,
    OWNER_INDEX,
    WARNING,
    Again,
    Change,
    Key,
    Reconciler,
    ResourceId,
    controller_of,
    owner_uids,
)

from ..controller import Loop, World
from ..workloads import Unseen, later
from .plan import job_for, name_for, plan, status

CRON_JOBS = ResourceId("batch", "v1", "cronjobs")
JOBS = ResourceId("batch", "v1", "jobs")


def make(world: World) -> Sequence[Loop]:
    return [CronJobs(world).loop]


class CronJobs:
    def __init__(self, world: World) -> None:
        self._world = world
        self._cron_jobs = world.informer(CRON_JOBS)
        jobs = world.informer(JOBS)
        self._owned = jobs.cache.index(OWNER_INDEX, owner_uids)
        self._unseen = Unseen()
        self._writing = world.client.resource("batch", "v1", "cronjobs")
        self._jobs = world.client.resource("batch", "v1", "jobs")
        self.loop: Reconciler[Key] = Reconciler("cronjob", self.reconcile, world.clock, world.telemetry)
        world.on(self._cron_jobs, lambda change: self.loop.add(Key.of(change.object)))
        world.on(jobs, self._unseen.hear)
        world.on(jobs, self._job_changed)

    def _job_changed(self, change: Change) -> None:
        controller = controller_of(change.object)
        if controller is not None and controller.kind == "CronJob":
            self.loop.add(Key(change.object.namespace, controller.name))

    async def reconcile(self, key: Key) -> Again | None:
        cron_job = self._cron_jobs.cache.get(key.name, key.namespace)
        if cron_job is None:
            return None
        jobs = self._jobs_of(cron_job)
        steps = plan(cron_job, jobs, self._world.clock.now())
        for note in steps.notes:
            self._say(cron_job, WARNING if note.is_warning else NORMAL, note.reason, note.message)
        for job in steps.replace:
            await self._delete(cron_job, job, "job that still ran")
        if steps.due is not None and name_for(cron_job, steps.due) not in {job.name for job in jobs}:
            await self._start(cron_job, steps.due)
        wanted = status(cron_job, self._jobs_of(cron_job), steps.due)
        if wanted is not None:
            # By version: a copy that knows an older cron job is refused, and looks again.
            await self._writing.update_status(cron_job.changed({"status": wanted}))
        for job in steps.forget:  # what they tell is written down
            await self._delete(cron_job, job, "job of the past")
        return later(steps.again_s)

    def _jobs_of(self, cron_job: Object) -> list[Object]:
        cached = [job for job in self._owned[cron_job.uid] if _is_controlled_by(job, cron_job)]
        return self._unseen.complete(cron_job.uid, cached, self._world.clock.monotonic_s())

    async def _start(self, cron_job: Object, due: datetime) -> None:
        await self._require_current(cron_job)
        wanted = job_for(cron_job, due)
        try:
            job = await self._jobs.create(wanted)
        except (errors.AlreadyExists, errors.Timeout):
            job = await self._jobs.get(wanted["metadata"]["name"], cron_job.namespace)
            if not _is_controlled_by(job, cron_job):
                self._say(cron_job, WARNING, "UnexpectedJob", f"job {job.name} is another's")
                raise errors.Conflict(f"job {job.name} is another's") from None
        except errors.ApiError as refused:
            self._say(cron_job, WARNING, "FailedCreate", f"the job could not be created: {refused}")
            raise
        else:
            self._say(cron_job, NORMAL, "SuccessfulCreate", f"created job {job.name}")
        self._unseen.came(job, cron_job.uid, self._world.clock.monotonic_s())

    async def _require_current(self, cron_job: Object) -> None:
        """The cache may be behind: nothing is started for one that was suspended or deleted meanwhile."""
        live = await self._writing.get(cron_job.name, cron_job.namespace)
        if live.resource_version != cron_job.resource_version:
            raise errors.Conflict(f"cron job {cron_job.name} has changed; waiting for its news")

    async def _delete(self, cron_job: Object, job: Object, what: str) -> None:
        with contextlib.suppress(errors.NotFound):
            await self._jobs.delete(job.name, job.namespace, uid=job.uid, propagation=Propagation.BACKGROUND)
            self._say(cron_job, NORMAL, "SuccessfulDelete", f"deleted {what} {job.name}")
        self._unseen.left(job.uid, cron_job.uid, self._world.clock.monotonic_s())

    def _say(self, cron_job: Object, type: str, reason: str, message: str) -> None:
        self._world.events.record(cron_job, type, reason, message)


def _is_controlled_by(job: Object, cron_job: Object) -> bool:
    controller: Any = controller_of(job)
    return controller is not None and controller.uid == cron_job.uid
