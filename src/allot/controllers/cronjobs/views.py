"""The few fields of cron jobs that decide what becomes of them, and of their jobs."""

from allot.api import Object, meta


class CronJobSpec(meta.View, frozen=True):
    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = "Allow"
    suspend: bool = False
    successful_jobs_history_limit: int | None = 3
    failed_jobs_history_limit: int | None = 1


class CronJobStatus(meta.View, frozen=True):
    last_schedule_time: str = ""
    last_successful_time: str = ""


class CronJob(meta.View, frozen=True):
    metadata: meta.ObjectMeta = meta.ObjectMeta()
    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


class JobStatus(meta.View, frozen=True):
    start_time: str = ""
    completion_time: str = ""
    conditions: tuple[meta.Condition, ...] = ()


class Job(meta.View, frozen=True):
    status: JobStatus = JobStatus()

    def has(self, condition: str) -> bool:
        return any(one.type == condition and one.status == "True" for one in self.status.conditions)

    @property
    def has_succeeded(self) -> bool:
        return self.has("Complete")

    @property
    def has_failed(self) -> bool:
        return self.has("Failed")

    @property
    def is_finished(self) -> bool:
        return self.has_succeeded or self.has_failed


def cron_job_of(object: Object) -> CronJob:
    return object.view(CronJob)


def job_of(object: Object) -> Job:
    return object.view(Job)
