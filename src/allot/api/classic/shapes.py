"""One kind, two shapes: which rules judge an object, and what a client of the other version cannot know.

Structured and classic claims share their kinds and their stored form; `by_shape` is the one place that tells
them apart for the server. Each shape is written in its own version: classic claims in v1alpha1, structured
ones in all others. A typed client of another version reads an object without the members that it has no names
for, and writes it back without them. So in a write through such a version

    what is not said stays as it is: the spec, the allocation and who made it
    what is said otherwise is refused, with the version in which it can be said
    metadata, finalizers and reservations pass, judged by the rules of the claim's own shape
"""

from collections.abc import Callable

from .. import field
from ..field import FieldError, Path
from ..kind import Fields, Rules, WriteContext
from ..resource import shape
from ..resource.limits import GROUP
from ..resource.reading import same
from . import limits

Holder = Callable[[Fields], Fields]
"""What holds the spec of a claim: the claim itself, or the spec of a template."""

_STATUS = Path("status")
_STATUS_PARTS = ("driverName", "deallocationRequested", "devices")
_CLASSIC_SPEC = dict.fromkeys(("resourceClassName", "parametersRef", "allocationMode"))
_CLASSIC_STATUS = dict.fromkeys(("driverName", "deallocationRequested"))
_CLASSIC_ALLOCATION = dict.fromkeys(("resourceHandle", "shareable"))


def in_claim(claim: Fields) -> Fields:
    return claim


def in_template(template: Fields) -> Fields:
    if template.get("spec") is None:
        template["spec"] = {}
    inner: Fields = template["spec"]
    return inner


def by_shape(structured: Rules, classic: Rules, holder: Holder, numeric: Rules | None = None) -> Rules:
    """The rules of a kind whose objects have one of two shapes. `numeric` are for the status of claims that
    have the classic shape and are allocated by the scheduler."""

    def of_new(new: Fields, context: WriteContext) -> Rules:
        """What is made in v1alpha1 is classic, or wrong. With the gate off the members go, as those of all
        gates do, and what is left is structured."""
        is_meant = _is_classic(new, holder) and context.gates[limits.GATE]
        return classic if is_meant or context.version == limits.VERSION else structured

    def of_old(old: Fields) -> Rules:
        return classic if _is_classic(old, holder) else structured

    def of_status(old: Fields) -> Rules:
        return numeric if numeric is not None and shape.is_numeric_in(old) else of_old(old)

    def speaks_otherwise(rules: Rules, context: WriteContext) -> bool:
        return (rules is classic) != (context.version == limits.VERSION)

    def prepare_update(new: Fields, old: Fields, context: WriteContext) -> None:
        rules = of_old(old)
        if speaks_otherwise(rules, context):
            _keep_unsaid(new, old, holder)
        rules.prepare_update(new, old, context)

    def prepare_status(new: Fields, old: Fields, context: WriteContext) -> None:
        rules = of_status(old)
        if speaks_otherwise(rules, context) or rules is numeric:
            _keep_unsaid(new, old, holder)
        rules.prepare_status(new, old, context)

    def validate_create(new: Fields, context: WriteContext) -> list[FieldError]:
        rules = of_new(new, context)
        found = rules.validate_create(new, context)
        return found if rules is classic else found + _strays_in_spec(new, holder)

    def validate_status(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
        rules = of_status(old)
        found = rules.validate_status(new, old, context)
        if rules is structured:
            found = found + _strays_in_status(new)
        if speaks_otherwise(rules, context):
            own = limits.VERSION if rules is classic else "v1"
            found = [*_changed_elsewhere(new, old, own), *found]
        return found

    return Rules(
        prepare_create=lambda new, context: of_new(new, context).prepare_create(new, context),
        prepare_update=prepare_update,
        prepare_status=prepare_status,
        validate_create=validate_create,
        validate_update=lambda new, old, context: of_old(old).validate_update(new, old, context),
        validate_status=validate_status,
        warnings=structured.warnings,
    )


def _is_classic(fields: Fields, holder: Holder) -> bool:
    return bool((holder(fields).get("spec") or {}).get("resourceClassName"))


def _keep_unsaid(new: Fields, old: Fields, holder: Holder) -> None:
    here, there = holder(new), holder(old)
    if here.get("spec") is not there.get("spec"):
        here["spec"] = {**(there.get("spec") or {}), **(here.get("spec") or {})}
    status, before = new.get("status"), old.get("status")
    if status is None or before is None or status is before:
        return
    for part in _STATUS_PARTS:
        if part not in status and part in before:
            status[part] = before[part]
    said, kept = status.get("allocation"), before.get("allocation")
    if said is not None and kept is not None:
        status["allocation"] = {**kept, **said}


def _changed_elsewhere(new: Fields, old: Fields, own: str) -> list[FieldError]:
    status, before = new.get("status") or {}, old.get("status") or {}
    text = f"of this claim is written in {GROUP}/{own} only"
    return [
        field.forbidden(_STATUS / part, text)
        for part in ("allocation", *_STATUS_PARTS)
        if not same(status.get(part), before.get(part))
    ]


def _strays_in_spec(new: Fields, holder: Holder) -> list[FieldError]:
    """A structured claim has nothing of a classic one."""
    spec = holder(new).get("spec") or {}
    if _CLASSIC_SPEC.keys().isdisjoint(spec):
        return []  # as nearly all
    path = Path("spec") if holder is in_claim else Path("spec") / "spec"
    text = "may only be set beside `resourceClassName`"
    return [field.forbidden(path / part, text) for part in _CLASSIC_SPEC if spec.get(part)]


def _strays_in_status(new: Fields) -> list[FieldError]:
    status = new.get("status") or {}
    allocation = status.get("allocation") or {}
    if _CLASSIC_STATUS.keys().isdisjoint(status) and _CLASSIC_ALLOCATION.keys().isdisjoint(allocation):
        return []  # as nearly all
    text = "may only be set where the claim names a resource class"
    return [
        *(field.forbidden(_STATUS / part, text) for part in _CLASSIC_STATUS if status.get(part)),
        *(
            field.forbidden(_STATUS / "allocation" / part, text)
            for part in _CLASSIC_ALLOCATION
            if allocation.get(part)
        ),
    ]
