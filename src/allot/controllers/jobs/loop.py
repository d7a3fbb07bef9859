"""Makes, counts and deletes the pods of jobs; lets go of pods whose job is gone."""

from collections.abc import Sequence
from typing import Any

from allot.api import Object, errors
from allot.informers import (
    NORMAL,
    WARNING,
    Again,
    Change,
    Deleted,
    Key,
    Reconciler,
    ResourceId,
    controller_of,
    owner_uids,
)

from ..controller import Loop, World
from ..workloads import PODS, Keeper, later, pod_from, slow_start
from .counting import hangs_on_pods
from .plan import JobPlan, plan
from .views import INDEX, NAME_LABEL, TRACKING, has_ended, is_tracked, job_of

JOBS = ResourceId("batch", "v1", "jobs")
_SUFFIX = 5


def make(world: World) -> Sequence[Loop]:
    jobs = Jobs(world)
    return [jobs.loop, jobs.letting_go]


class Jobs:
    def __init__(self, world: World) -> None:
        self._world = world
        self._jobs = world.informer(JOBS)
        self._pods = world.informer(PODS)
        self._writing = world.client.resource("batch", "v1", "jobs")
        self._ended_s: dict[str, float] = {}  # by uid of the pod: since when that is known
        self.loop: Reconciler[Key] = Reconciler("job", self.reconcile, world.clock, world.telemetry)
        self.letting_go: Reconciler[Key] = Reconciler(
            "job_orphan_pod", self.let_go, world.clock, world.telemetry
        )
        self._keeper = Keeper(world, "Job", self._jobs, lambda one: job_of(one).spec.selector, self.loop.add)
        world.on(self._jobs, self._job_changed)
        world.on(self._pods, self._pod_changed)

    def _job_changed(self, change: Change) -> None:
        self.loop.add(Key.of(change.object))
        if isinstance(change, Deleted):
            for pod in self._keeper.cached(change.object.uid):
                self.letting_go.add(Key.of(pod))

    def _known_for_s(self, pod: Object) -> float:
        now_s = self._world.clock.monotonic_s()
        return now_s - self._ended_s.get(pod.uid, now_s)

    def _pod_changed(self, change: Change) -> None:
        pod = change.object
        if isinstance(change, Deleted):
            self._ended_s.pop(pod.uid, None)
        elif (is_tracked(pod) or NAME_LABEL in (pod.metadata.labels or ())) and has_ended(pod):
            self._ended_s.setdefault(pod.uid, self._world.clock.monotonic_s())
        if isinstance(change, Deleted) or not is_tracked(pod):
            return
        controller = controller_of(pod)
        job = self._jobs.cache.get(controller.name, pod.namespace) if controller is not None else None
        if job is None or controller is None or job.uid != controller.uid:
            self.letting_go.add(Key.of(pod))

    # -- one pass -------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> Again | None:
        job = self._jobs.cache.get(key.name, key.namespace)
        if job is None or not job_of(job).is_ours:
            return None
        pods = await self._pods_of(job)
        steps = plan(job, pods, self._world.clock.now(), self._known_for_s)
        if steps.status is not None or steps.create:
            # Before a pod is made, though nothing be new: the server refuses whoever knows an older
            # job, and so nobody makes pods for one that another leader has ended meanwhile (JOB2).
            await self._report(job, steps.status or {})
        error: errors.ApiError | None = None
        try:
            await self._act(job, steps)
        except errors.ApiError as refused:
            error = refused
        for pod in steps.release:
            await self._untrack(pod)
        if error is not None:
            raise error
        return later(steps.again_s)

    async def _pods_of(self, job: Object) -> list[Object]:
        """No older than the job, where they are counted: then the server is asked if need be (JOB1)."""
        pods = await self._keeper.of(job)
        if self._pods.has_heard(job.resource_version) or not hangs_on_pods(job_of(job), pods):
            return pods
        labels = ",".join(f"{key}={value}" for key, value in job_of(job).spec.selector.match_labels.items())
        pages = self._keeper.writing.pages(job.namespace, label_selector=labels)
        return [pod async for page in pages for pod in page.objects if job.uid in owner_uids(pod)]

    async def _act(self, job: Object, steps: JobPlan) -> None:
        async def create(index: int | None) -> None:
            await self._keeper.create(job, _pod(job, index, self._world.ids.suffix(_SUFFIX)))

        async def delete(pod: Object) -> None:
            await self._keeper.delete(job, pod)

        await slow_start(delete, steps.delete)
        await slow_start(create, steps.create)

    async def _report(self, job: Object, status: dict[str, Any]) -> None:
        metadata = {"uid": job.uid, "resourceVersion": job.resource_version}
        patch = {"metadata": metadata, "status": status}
        written = await self._writing.patch(job.name, patch, job.namespace, subresource="status")
        view = job_of(written)
        if view.is_finished and not job_of(job).is_finished:
            failed = view.has("Failed")
            if failed is not None:
                self._world.events.record(job, WARNING, failed.reason, failed.message)
            else:
                self._world.events.record(job, NORMAL, "Completed", "the job is done")

    async def _untrack(self, pod: Object) -> None:
        kept = [one for one in pod.metadata.finalizers or () if one != TRACKING]
        metadata = {"uid": pod.uid, "resourceVersion": pod.resource_version, "finalizers": kept or None}
        try:
            await self._keeper.writing.patch(pod.name, {"metadata": metadata}, pod.namespace)
        except errors.NotFound:
            return

    async def let_go(self, key: Key) -> None:
        """A pod that nobody will count any more need not wait."""
        pod = self._pods.cache.get(key.name, key.namespace)
        if pod is None or not is_tracked(pod):
            return
        controller = controller_of(pod)
        if controller is not None and controller.kind == "Job":
            try:
                live = await self._writing.get(controller.name, pod.namespace)
            except errors.NotFound:
                live = None
            if live is not None and live.uid == controller.uid:
                return
        await self._untrack(pod)


def _pod(job: Object, index: int | None, suffix: str) -> dict[str, Any]:
    template = job.fields["spec"].get("template") or {}
    pod = pod_from(template, job, suffix)
    metadata = pod["metadata"]
    metadata["finalizers"] = [*(metadata.get("finalizers") or ()), TRACKING]
    if index is None:
        return pod
    base = f"{job.name[:50]}-{index}-"
    metadata |= {"name": base + suffix, "generateName": base}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), INDEX: str(index)}
    metadata["labels"] = {**(metadata.get("labels") or {}), INDEX: str(index)}
    told = {
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}},
    }
    spec = {**pod["spec"], "hostname": f"{job.name[:50]}-{index}"}
    for containers in ("initContainers", "containers"):
        if spec.get(containers):
            spec[containers] = [{**one, "env": [*(one.get("env") or ()), told]} for one in spec[containers]]
    return {**pod, "spec": spec}
