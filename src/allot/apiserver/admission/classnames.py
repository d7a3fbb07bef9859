"""Bare names in limits and quotas: classes of compute resources, where the gate of classes is on.

With the gate off such names are refused, as Kubernetes refuses them. With it on they are taken whether or not
the class exists: it may come later, and quotas count names. Whoever writes one that does not exist is warned.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from allot.api import FieldError, Fields, Path, compute, field

from . import Attempt, Plugin

FindClass = Callable[[str], Awaitable[Mapping[str, Any] | None]]
"""The class of a name."""

Where = Callable[[Attempt, Fields], Mapping[str, Any]]
"""Of an object, the template of pods, or the pod itself."""

_SORTS = ("initContainers", "containers")
_STANDARD = frozenset(("cpu", "memory"))
_NOT_SERVED = "must be a standard resource type or fully qualified"


def class_names_of_pods(find: FindClass | None, template_of: Where) -> Plugin:
    """`find` is None where the gate is off."""

    def admit(attempt: Attempt) -> Awaitable[None] | None:
        new = attempt.new
        if attempt.operation == "DELETE" or attempt.subresource or new is None:
            return None
        if attempt.old is not None and template_of(attempt, attempt.old) == template_of(attempt, new):
            return None
        spec = template_of(attempt, new).get("spec") or {}
        return _judge(attempt, find, list(_asked(spec))) if _may_name_classes(spec) else None

    return admit


def class_names_of_quotas(find: FindClass | None) -> Plugin:
    def admit(attempt: Attempt) -> Awaitable[None] | None:
        new = attempt.new
        if attempt.operation == "DELETE" or attempt.subresource or new is None:
            return None
        hard = (new.get("spec") or {}).get("hard") or {}
        if attempt.old is not None and ((attempt.old.get("spec") or {}).get("hard") or {}) == hard:
            return None
        return _judge(attempt, find, [(Path("spec.hard")[name], name) for name in hard])

    return admit


def _may_name_classes(spec: Mapping[str, Any]) -> bool:
    """Nearly no pod does, and then nobody needs to know where its limits are."""
    return any(
        name not in _STANDARD and compute.class_of(name.removeprefix("requests."))
        for sort in _SORTS
        for container in spec.get(sort) or ()
        for name in (container.get("resources") or {}).get("limits") or ()
    )


def _asked(spec: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    for sort in _SORTS:
        for at, container in enumerate(spec.get(sort) or ()):
            for name in (container.get("resources") or {}).get("limits") or ():
                yield (Path("spec") / sort)[at] / "resources" / "limits", name


def _judge(attempt: Attempt, find: FindClass | None, asked: list[tuple[Path, str]]) -> Awaitable[None] | None:
    named = [(path, name) for path, name in asked if compute.class_of(name.removeprefix("requests."))]
    if not named:
        return None  # as of nearly all
    if find is None:
        wrong: list[FieldError] = [
            field.invalid(path, name, _NOT_SERVED) for path, name in named if "/" not in name
        ]
        if wrong:
            raise field.refusal(attempt.kind.group, attempt.kind.kind, attempt.name, wrong)
        return None
    return _warn(attempt, find, named)


async def _warn(attempt: Attempt, find: FindClass, named: list[tuple[Path, str]]) -> None:
    for path, name in named:
        class_ = compute.class_of(name.removeprefix("requests."))
        if await find(class_) is None:
            kind = f"{compute.RESOURCE_CLASS.plural}.{compute.limits.GROUP}"
            attempt.context.warnings.append(f"{path}: there is no {kind} {class_} yet")
