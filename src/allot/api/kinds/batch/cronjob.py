"""Cron jobs: a job whenever it is time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ... import cron
from ...age import since
from ...field import FieldError, Path, forbidden, invalid, required, unsupported
from ...kind import Column, Fields, Kind, Rules, Version
from ..numbers import validate_not_negative
from ..podspec import default_template, respelled_at
from ..reading import default, items, obj, section, text
from ..workloads import AGE, CONTAINERS, IMAGES, NAME, SELECTOR, SPEC, container_cells
from . import job

POLICIES = ("Allow", "Forbid", "Replace")
NAME_MAX = 52  # leaves room for what is added to the names of the jobs


def _default(cron_job: Fields, now: datetime) -> None:
    spec = section(cron_job, "spec")
    default(spec, "concurrencyPolicy", "Allow")
    for name, value in (
        ("suspend", False), ("successfulJobsHistoryLimit", 3), ("failedJobsHistoryLimit", 1),
    ):  # fmt: skip
        if spec.get(name) is None:
            spec[name] = value
    default_template(section(section(section(spec, "jobTemplate"), "spec"), "template"))


def _validate(cron_job: Fields) -> list[FieldError]:
    spec = obj(cron_job, "spec")
    found = validate_not_negative(
        spec, ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"), SPEC
    )
    found += _validate_schedule(spec.get("schedule") or "")
    if spec.get("timeZone") is not None:
        found += _validate_zone(spec["timeZone"])
    if spec.get("concurrencyPolicy") not in POLICIES:
        found.append(unsupported(SPEC / "concurrencyPolicy", spec.get("concurrencyPolicy"), POLICIES))
    template = SPEC / "jobTemplate" / "spec"
    if obj(spec, "jobTemplate", "spec").get("manualSelector"):
        found.append(unsupported(template / "manualSelector", True, ("nil", "false")))
    if obj(spec, "jobTemplate", "spec").get("selector") is not None:
        found.append(forbidden(template / "selector", "`selector` will be auto-generated"))
    return found + job.validate_spec(obj(spec, "jobTemplate", "spec"), template)


def _validate_schedule(schedule: str) -> list[FieldError]:
    path = SPEC / "schedule"
    if not schedule:
        return [required(path)]
    if "TZ" in schedule:
        return [invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")]
    try:
        cron.parse(schedule)
    except cron.BadSchedule as wrong:
        return [invalid(path, schedule, str(wrong))]
    return []


def _validate_zone(zone: str) -> list[FieldError]:
    path = SPEC / "timeZone"
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    if zone.lower() == "local":
        return [invalid(path, zone, "timeZone must be an explicit time zone as defined in the IANA database")]
    try:
        cron.time_zone(zone)
    except cron.UnknownZone as wrong:
        return [invalid(path, zone, str(wrong))]
    return []


def _cells(cron_job: Fields, now: datetime) -> Sequence[Any]:
    spec = obj(cron_job, "spec")
    last = text(cron_job, "status", "lastScheduleTime")
    return [
        cron_job["metadata"]["name"],
        spec.get("schedule", ""),
        spec.get("timeZone") or "<none>",
        "True" if spec.get("suspend") else "False",
        len(items(cron_job, "status", "active")),
        since(last, now) if last else "<none>",
        since(cron_job["metadata"].get("creationTimestamp"), now),
        *container_cells(obj(spec, "jobTemplate", "spec", "template")),
        "<none>",
    ]


def _validate_name(cron_job: Fields) -> list[FieldError]:
    name = text(cron_job, "metadata", "name")
    if len(name) <= NAME_MAX:
        return []
    return [invalid(Path("metadata.name"), name, f"must be no more than {NAME_MAX} characters")]


CRON_JOB = Kind(
    group="batch",
    kind="CronJob",
    plural="cronjobs",
    singular="cronjob",
    short_names=("cj",),
    categories=("all",),
    versions=(
        Version(
            "v1",
            "io.k8s.api.batch.v1.CronJob",
            default=_default,
            respell=respelled_at("spec", "jobTemplate", "spec", "template", "spec"),
        ),
    ),
    hub="v1",
    has_status=True,
    counts_generation=True,
    rules=Rules(
        validate_create=lambda new, context: [*_validate_name(new), *_validate(new)],
        validate_update=lambda new, old, context: _validate(new),
    ),
    columns=(
        NAME,
        Column("Schedule", description="When a job is started."),
        Column("Timezone", description="Where it is that time."),
        Column("Suspend", description="Whether it pauses."),
        Column("Active", "integer", description="How many jobs are running."),
        Column("Last Schedule", description="How long ago a job was started."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ),
    cells_at=_cells,
)
