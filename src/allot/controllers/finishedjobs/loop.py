"""Deletes jobs whose time is up, and their pods before them."""

import contextlib
from collections.abc import Sequence

from allot.api import errors
from allot.client import Propagation
from allot.informers import Again, Key, Reconciler, ResourceId

from ..controller import Loop, World
from ..workloads import later
from .plan import stays_s

JOBS = ResourceId("batch", "v1", "jobs")
_LATENCY_S = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


def make(world: World) -> Sequence[Loop]:
    jobs = world.informer(JOBS)
    writing = world.client.resource("batch", "v1", "jobs")
    latency = world.metrics.histogram(
        "ttl_after_finished_controller_job_deletion_duration_seconds",
        "From the moment when a job's time was up to its deletion.",
        bounds=_LATENCY_S,
    )

    async def reconcile(key: Key) -> Again | None:
        job = jobs.cache.get(key.name, key.namespace)
        left_s = stays_s(job, world.clock.now()) if job is not None else None
        if job is None or left_s is None:
            return None
        if left_s > 0:
            return later(left_s)
        with contextlib.suppress(errors.NotFound):
            await writing.delete(
                job.name,
                job.namespace,
                uid=job.uid,
                resource_version=job.resource_version,
                propagation=Propagation.FOREGROUND,
            )
            latency.observe(-left_s)
        return None

    loop = Reconciler("ttl_jobs_to_delete", reconcile, world.clock, world.telemetry)
    world.on(jobs, lambda change: loop.add(Key.of(change.object)))
    return [loop]
