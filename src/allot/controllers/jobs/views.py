"""The few fields of jobs that decide what becomes of them, and of their pods."""

from allot.api import Object, core, meta

TRACKING = "batch.kubernetes.io/job-tracking"
"""The finalizer by which a finished pod waits until it has been counted."""
NAME_LABEL = "batch.kubernetes.io/job-name"
INDEX = "batch.kubernetes.io/job-completion-index"
MANAGER = "kubernetes.io/job-controller"
"""How a job names this controller, where it names one."""


class JobSpec(meta.View, frozen=True):
    parallelism: int = 1
    completions: int | None = None
    completion_mode: str = "NonIndexed"
    backoff_limit: int = 6
    active_deadline_seconds: int | None = None
    pod_replacement_policy: str = "TerminatingOrFailed"
    suspend: bool = False
    managed_by: str = MANAGER
    selector: meta.LabelSelector = meta.LabelSelector()


class Uncounted(meta.View, frozen=True):
    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(meta.View, frozen=True):
    active: int = 0
    ready: int = 0
    terminating: int = 0
    succeeded: int = 0
    failed: int = 0
    start_time: str = ""
    completion_time: str = ""
    completed_indexes: str = ""
    uncounted_terminated_pods: Uncounted = Uncounted()
    conditions: tuple[meta.Condition, ...] = ()


class Job(meta.View, frozen=True):
    metadata: meta.ObjectMeta = meta.ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @property
    def is_indexed(self) -> bool:
        return self.spec.completion_mode == "Indexed"

    @property
    def is_ours(self) -> bool:
        """Others, such as queues that span clusters, may do the work of this controller for some jobs."""
        return self.spec.managed_by == MANAGER

    def has(self, condition: str) -> meta.Condition | None:
        """The condition, if it is true."""
        return next((c for c in self.status.conditions if c.type == condition and c.status == "True"), None)

    @property
    def is_finished(self) -> bool:
        return self.has("Complete") is not None or self.has("Failed") is not None


def job_of(object: Object) -> Job:
    return object.view(Job)


def pod_of(object: Object) -> core.Pod:
    return object.view(core.Pod)


def index_of(pod: Object) -> int | None:
    written = (pod.metadata.annotations or {}).get(INDEX, "")
    return int(written) if written.isdigit() and len(written) < 10 else None


def is_tracked(pod: Object) -> bool:
    return TRACKING in (pod.metadata.finalizers or ())


def has_ended(pod: Object) -> bool:
    return pod_of(pod).is_finished or pod.metadata.deletion_timestamp is not None


def has_succeeded(pod: Object) -> bool:
    return pod_of(pod).status.phase == "Succeeded"


def has_failed(pod: Object, replaces_only_failed: bool) -> bool:
    """A pod that is told to end counts as failed at once, unless the job waits for its end."""
    phase = pod_of(pod).status.phase
    leaving = pod.metadata.deletion_timestamp is not None and not replaces_only_failed
    return phase == "Failed" or (leaving and phase != "Succeeded")
