"""Jobs: pods that run until enough of them have succeeded."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ... import names
from ...age import human_duration, moment, since
from ...field import FieldError, Path, forbidden, invalid, required, too_long, unsupported
from ...kind import Column, Fields, Kind, Rules, Version, WriteContext
from ..labels import matches, validate_selector
from ..numbers import validate_not_negative
from ..podspec import default_template, respelled_at, validate_template
from ..reading import default, items, obj, section, text
from ..workloads import AGE, CONTAINERS, IMAGES, NAME, SELECTOR, SPEC, TEMPLATE, count, wide_cells

MODES = ("Indexed", "NonIndexed")
RESTART_POLICIES = ("Never", "OnFailure")
REPLACEMENTS = ("Failed", "TerminatingOrFailed")
UID_LABEL = "batch.kubernetes.io/controller-uid"
NAME_LABEL = "batch.kubernetes.io/job-name"
OLD_LABELS = {"controller-uid": UID_LABEL, "job-name": NAME_LABEL}
PARALLELISM_INDEXED_MAX = 100_000
MANAGER_LENGTH_MAX = 63
INT32_MAX = 2**31 - 1
_FIXED_COUNTS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_FIXED = (
    "selector", "completionMode", "podFailurePolicy", "successPolicy", "backoffLimitPerIndex",
    "manualSelector", "managedBy",
)  # fmt: skip
_SCHEDULING = ("nodeSelector", "affinity", "tolerations", "schedulingGates")


def default_spec(spec: Fields) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    per_index = spec.get("backoffLimitPerIndex") is not None
    for name, value in (
        ("parallelism", 1), ("backoffLimit", INT32_MAX if per_index else 6), ("suspend", False),
    ):  # fmt: skip
        if spec.get(name) is None:
            spec[name] = value
    default(spec, "completionMode", "NonIndexed")
    replaced = "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed"
    default(spec, "podReplacementPolicy", replaced)
    for rule in items(spec, "podFailurePolicy", "rules"):
        for condition in items(rule, "onPodConditions"):
            default(condition, "status", "True")


def _default(job: Fields, now: datetime) -> None:
    spec = section(job, "spec")
    default_spec(spec)
    labels = obj(spec, "template", "metadata", "labels")
    metadata = section(job, "metadata")
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)
    default_template(section(spec, "template"))


def _prepare_create(job: Fields, context: WriteContext) -> None:
    """Unless told otherwise, a job finds its pods by its own uid."""
    spec = section(job, "spec")
    if spec.get("manualSelector"):
        return
    uid, name = text(job, "metadata", "uid"), text(job, "metadata", "name")
    mine = {UID_LABEL: uid, NAME_LABEL: name}
    labels = section(section(section(spec, "template"), "metadata"), "labels")
    for key, value in (*mine.items(), *((old, mine[new]) for old, new in OLD_LABELS.items())):
        labels.setdefault(key, value)
    if spec.get("selector") is None:
        spec["selector"] = {}
    section(spec["selector"], "matchLabels").setdefault(UID_LABEL, uid)


def validate_spec(spec: Fields, path: Path) -> list[FieldError]:
    """Everything but the selector, which the template of a cron job does not have."""
    pod = obj(spec, "template", "spec")
    found = validate_not_negative(spec, _FIXED_COUNTS, path)
    found += validate_template(obj(spec, "template"), path / "template")
    if pod.get("restartPolicy") not in RESTART_POLICIES:
        at = path / "template" / "spec" / "restartPolicy"
        found.append(unsupported(at, pod.get("restartPolicy"), RESTART_POLICIES))
    for name, known in (("completionMode", MODES), ("podReplacementPolicy", REPLACEMENTS)):
        if spec.get(name) is not None and spec[name] not in known:
            found.append(unsupported(path / name, spec[name], known))
    found += _validate_manager(spec.get("managedBy"), path / "managedBy")
    return found + _validate_indexed(spec, path) + _validate_failure_policy(spec, path)


def _validate_manager(name: str | None, path: Path) -> list[FieldError]:
    if name is None:
        return []
    if "/" not in name:
        return [invalid(path, name, "must be a domain-prefixed path, such as 'example.com/queue'")]
    found = [invalid(path, name, problem) for problem in names.qualified(name)]
    return [*found, too_long(path, MANAGER_LENGTH_MAX)] if len(name) > MANAGER_LENGTH_MAX else found


def _validate_indexed(spec: Fields, path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    if spec.get("completionMode") == "Indexed":
        if spec.get("completions") is None:
            found.append(required(path / "completions", "when completion mode is Indexed"))
        if (spec.get("parallelism") or 0) > PARALLELISM_INDEXED_MAX:
            text = f"must be less than or equal to {PARALLELISM_INDEXED_MAX} when completion mode is Indexed"
            found.append(invalid(path / "parallelism", spec["parallelism"], text))
    elif spec.get("backoffLimitPerIndex") is not None:
        text = "requires indexed completion mode"
        found.append(invalid(path / "backoffLimitPerIndex", spec["backoffLimitPerIndex"], text))
    return found


def _validate_failure_policy(spec: Fields, path: Path) -> list[FieldError]:
    if spec.get("podFailurePolicy") is None:
        return []
    found: list[FieldError] = []
    at = path / "podFailurePolicy" / "rules"
    if obj(spec, "template", "spec").get("restartPolicy") != "Never":
        text = 'only "Never" is supported when podFailurePolicy is specified'
        found.append(
            invalid(
                path / "template" / "spec" / "restartPolicy",
                obj(spec, "template", "spec").get("restartPolicy"),
                text,
            )
        )
    for index, rule in enumerate(items(spec, "podFailurePolicy", "rules")):
        if rule.get("action") not in ("Count", "FailIndex", "FailJob", "Ignore"):
            known = ("Count", "FailIndex", "FailJob", "Ignore")
            found.append(unsupported(at[index] / "action", rule.get("action") or "", known))
        if rule.get("onExitCodes") is not None and items(rule, "onPodConditions"):
            text = "specifying both OnExitCodes and OnPodConditions is not supported"
            found.append(invalid(at[index], "", text))
        elif rule.get("onExitCodes") is None and not items(rule, "onPodConditions"):
            text = "specifying one of OnExitCodes and OnPodConditions is required"
            found.append(invalid(at[index], "", text))
    return found


def _validate(job: Fields) -> list[FieldError]:
    spec = obj(job, "spec")
    found = validate_spec(spec, SPEC)
    selector = spec.get("selector")
    if selector is None:
        return [*found, required(SPEC / "selector")]
    found += validate_selector(selector, SPEC / "selector")
    labels = obj(spec, "template", "metadata", "labels")
    if not matches(selector, labels):
        text = "`selector` does not match template `labels`"
        found.append(invalid(TEMPLATE / "metadata" / "labels", labels, text))
    return found


def _validate_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    spec, before = obj(new, "spec"), obj(old, "spec")
    fixed = [*_FIXED]
    elastic = (
        spec.get("completionMode") == "Indexed"
        and before.get("completions") == before.get("parallelism")
        and spec.get("completions") == spec.get("parallelism")
    )
    if not elastic:
        fixed.append("completions")
    found = [
        invalid(SPEC / name, spec.get(name), "field is immutable")
        for name in fixed
        if spec.get(name) != before.get(name)
    ]
    if _template_that_stays(new, old) != obj(before, "template"):
        found.append(invalid(TEMPLATE, obj(spec, "template"), "field is immutable"))
    return _validate(new) + found if spec != before else found


def _template_that_stays(new: Fields, old: Fields) -> Fields:
    """The new template, less what may change: where pods go, while the job has never started."""
    template, before = obj(new, "spec", "template"), obj(old, "spec", "template")
    waits = obj(old, "spec").get("suspend") and not text(old, "status", "startTime")
    if not waits:
        return template
    pod = {key: value for key, value in obj(template, "spec").items() if key not in _SCHEDULING}
    pod |= {key: obj(before, "spec")[key] for key in _SCHEDULING if key in obj(before, "spec")}
    return {**template, "metadata": obj(before, "metadata"), "spec": pod}


def _validate_status(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    path, status = Path("status"), obj(new, "status")
    found = validate_not_negative(status, ("active", "succeeded", "failed", "ready", "terminating"), path)
    if text(old, "status", "completionTime") and not status.get("completionTime"):
        found.append(forbidden(path / "completionTime", "completionTime cannot be removed"))
    return found


# -- columns ------------------------------------------------------------------------------------

_STATES = (("Complete", "Complete"), ("Failed", "Failed"))
_LATER_STATES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _state(job: Fields) -> str:
    true = {
        condition.get("type")
        for condition in items(job, "status", "conditions")
        if condition.get("status") == "True"
    }
    for condition, shown in _STATES:
        if condition in true:
            return shown
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((state for state in _LATER_STATES if state in true), "Running")


def _completions(job: Fields) -> str:
    done, wanted = count(job, "status", "succeeded"), obj(job, "spec").get("completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = count(job, "spec", "parallelism")
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _duration(job: Fields, now: datetime) -> str:
    start = moment(text(job, "status", "startTime"))
    if start is None:
        return ""
    end = moment(text(job, "status", "completionTime")) or now
    return human_duration((end - start).total_seconds())


def _cells(job: Fields, now: datetime) -> Sequence[Any]:
    return [
        job["metadata"]["name"],
        _state(job),
        _completions(job),
        _duration(job, now),
        since(job["metadata"].get("creationTimestamp"), now),
        *wide_cells(job),
    ]


JOB = Kind(
    group="batch",
    kind="Job",
    plural="jobs",
    singular="job",
    categories=("all",),
    versions=(
        Version(
            "v1",
            "io.k8s.api.batch.v1.Job",
            default=_default,
            respell=respelled_at("spec", "template", "spec"),
        ),
    ),
    hub="v1",
    has_status=True,
    counts_generation=True,
    rules=Rules(
        prepare_create=_prepare_create,
        validate_create=lambda new, context: _validate(new),
        validate_update=_validate_update,
        validate_status=_validate_status,
    ),
    columns=(
        NAME,
        Column("Status", description="How it stands."),
        Column("Completions", description="How many pods succeeded, of how many."),
        Column("Duration", description="How long it ran or has been running."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ),
    cells_at=_cells,
    selectable={"status.successful": lambda job: str(count(job, "status", "succeeded"))},
)
