"""Limit ranges: what a namespace lets one container, one pod or one claim for a volume ask for.

Containers that say nothing get what the range says they get; then everything is held against the bounds.
Ranges are about new objects: what is there already stays as it is.

Why no range is overlooked
    As with quotas: whoever writes a range writes its namespace anew, unchanged. A pod that was decided
    without it compares the namespace, and is decided again.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from allot.api import Fields, Quantity, errors, kinds, podresources

from . import Attempt, Plugin

Ranges = Callable[[Attempt], Awaitable[Sequence[Mapping[str, Any]]]]
"""The limit ranges of the namespace that an attempt writes to."""

ANNOTATION = "kubernetes.io/limit-ranger"

_BOTH = ("initContainers", "containers")
_ONE = Quantity.of(1).nano


NoRanges = Callable[[Attempt], bool]
"""Whether it is known at once that there are none."""


def limits_of_pods(are_none: NoRanges, ranges: Ranges) -> Plugin:
    def admit(attempt: Attempt) -> Awaitable[None] | None:
        if attempt.operation != "CREATE" or attempt.subresource or attempt.new is None or are_none(attempt):
            return None
        return limit(attempt, attempt.new)

    async def limit(attempt: Attempt, new: Fields) -> None:
        limits = _limits(await ranges(attempt))
        if not limits:
            return
        if said := give_defaults(new["spec"], limits):
            metadata = new["metadata"]
            new["status"]["qosClass"] = kinds.qos_class(new["spec"])
            note = f"LimitRanger plugin set: {'; '.join(said)}"
            metadata["annotations"] = {**(metadata.get("annotations") or {}), ANNOTATION: note}
        _refuse(attempt, [*pod_problems(new["spec"], limits)])

    return admit


def limits_of_volume_claims(ranges: Ranges) -> Plugin:
    async def admit(attempt: Attempt) -> None:
        if attempt.operation == "DELETE" or attempt.subresource or attempt.new is None:
            return
        if attempt.old is not None and attempt.old.get("spec") == attempt.new.get("spec"):
            return
        resources = (attempt.new.get("spec") or {}).get("resources") or {}
        asked = podresources.parse(resources.get("requests"))
        problems = []
        for limit in _limits(await ranges(attempt)):
            if limit.get("type") == "PersistentVolumeClaim":
                problems += [*_too_little(limit, "PersistentVolumeClaim", asked, {})]
                problems += [*_too_much(limit, "PersistentVolumeClaim", {}, asked, "request")]
        _refuse(attempt, problems)

    return admit


def _limits(ranges: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of all ranges; one may say nothing at all."""
    return [one for range in ranges for one in (range.get("spec") or {}).get("limits") or ()]


def _refuse(attempt: Attempt, problems: Sequence[str]) -> None:
    if not problems:
        return
    text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    raise errors.Forbidden(
        f'{attempt.kind.plural} "{attempt.name}" is forbidden: {text}',
        kind=attempt.kind.plural,
        name=attempt.name,
    )


# -- defaults ---------------------------------------------------------------------------------------


def give_defaults(spec: Fields, limits: Sequence[Mapping[str, Any]]) -> list[str]:
    """What containers leave open is filled in. What was set, as upstream's annotation says it."""
    sides: dict[str, dict[str, str]] = {"limits": {}, "requests": {}}
    for limit in limits:
        if limit.get("type") == "Container":
            for side, name in (("limits", "default"), ("requests", "defaultRequest")):
                for resource, amount in (limit.get(name) or {}).items():
                    sides[side].setdefault(resource, amount)
    said: list[str] = []
    for list_name, what in (("containers", "container"), ("initContainers", "init container")):
        for container in spec.get(list_name) or ():
            for side in ("requests", "limits"):
                names = _filled(container, side, sides[side])
                if names:
                    said.append(f"{', '.join(names)} {side[:-1]} for {what} {container.get('name', '')}")
    return said


def _filled(container: Fields, side: str, amounts: Mapping[str, str]) -> list[str]:
    """The names that were missing. A limit that the container says for itself is its request, too."""
    resources = container.get("resources") or {}
    said = resources.get(side) or {}
    missing = sorted(name for name in amounts if name not in said)
    if missing:
        container["resources"] = resources | {side: said | {name: amounts[name] for name in missing}}
    return missing


# -- bounds -----------------------------------------------------------------------------------------


def pod_problems(spec: Fields, limits: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for limit in limits:
        match limit.get("type"):
            case "Container":
                for list_name in _BOTH:
                    for container in spec.get(list_name) or ():
                        requests = podresources.container_needs(container, "requests")
                        yield from _bounds(
                            limit, "Container", requests, podresources.container_needs(container, "limits")
                        )
            case "Pod":
                yield from _bounds(
                    limit,
                    "Pod",
                    podresources.pod_needs(spec, "requests"),
                    podresources.pod_needs(spec, "limits"),
                )


Amounts = Mapping[str, Quantity]


def _bounds(limit: Mapping[str, Any], type: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    yield from _too_little(limit, type, requests, limits)
    yield from _too_much(limit, type, requests, limits, "limit")
    yield from _too_far_apart(limit, type, requests, limits)


def _too_little(limit: Mapping[str, Any], type: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, least in sorted(podresources.parse(limit.get("min")).items()):
        rule = f"minimum {name} usage per {type} is {least}"
        if name not in requests:
            yield f"{rule}.  No request is specified"
        elif requests[name] < least:
            yield f"{rule}, but request is {requests[name]}"
        elif name in limits and limits[name] < least:
            yield f"{rule}, but limit is {limits[name]}"


def _too_much(
    limit: Mapping[str, Any], type: str, requests: Amounts, bounded: Amounts, word: str
) -> Iterator[str]:
    """`bounded` must be said and is what is called `word`: the limits, or what a volume requests."""
    for name, most in sorted(podresources.parse(limit.get("max")).items()):
        rule = f"maximum {name} usage per {type} is {most}"
        if name not in bounded:
            yield f"{rule}.  No {word} is specified"
        elif bounded[name] > most:
            yield f"{rule}, but {word} is {bounded[name]}"
        elif name in requests and requests[name] > most:
            yield f"{rule}, but request is {requests[name]}"


def _too_far_apart(limit: Mapping[str, Any], type: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, most in sorted(podresources.parse(limit.get("maxLimitRequestRatio")).items()):
        rule = f"{name} max limit to request ratio per {type} is {most}, but"
        if name not in requests or not requests[name]:
            yield f"{rule} no request is specified or request is 0"
        elif name not in limits or not limits[name]:
            yield f"{rule} no limit is specified or limit is 0"
        elif limits[name].nano * _ONE > most.nano * requests[name].nano:
            yield f"{rule} provided ratio is {limits[name].nano / requests[name].nano:f}"
