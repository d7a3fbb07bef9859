"""Pod Security: a namespace's labels say how much its pods may do to their node.

    pod-security.kubernetes.io/enforce: privileged | baseline | restricted      pods are refused
    pod-security.kubernetes.io/warn                                             the client is warned
    ...-version: latest | v1.N                                                  the rules of that version

Labels of the namespace decide at the moment of the write: the namespace joins the transaction. Workloads
are not refused, since their pods will be; the client that writes one is warned. What runs already is left
alone: the client that raises the level of a namespace is warned about its pods. The rules themselves are
in `checks`.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from allot.api import Fields, errors, field

from .. import Attempt, Plugin
from .checks import APPARMOR, Pod, complaints

LEVELS: Final = ("privileged", "baseline", "restricted")
MODES: Final = ("enforce", "audit", "warn")
LATEST: Final = 37
WARNED_PODS_MAX: Final = 10

_PREFIX = "pod-security.kubernetes.io/"
_TEMPLATES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "pods"): (),
    ("", "podtemplates"): ("template",),
    ("", "replicationcontrollers"): ("spec", "template"),
    ("apps", "replicasets"): ("spec", "template"),
    ("apps", "deployments"): ("spec", "template"),
    ("apps", "statefulsets"): ("spec", "template"),
    ("apps", "daemonsets"): ("spec", "template"),
    ("batch", "jobs"): ("spec", "template"),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
"""Where each kind that makes pods says what they are like."""

KINDS: Final = tuple(_TEMPLATES)

_HARMLESS: Final = frozenset(
    [
        "activeDeadlineSeconds",
        "affinity",
        "nodeSelector",
        "schedulingGates",
        "terminationGracePeriodSeconds",
        "tolerations",
    ]
)
"""What may change in a pod that is there, and does nothing to its node."""

Pods = Callable[[str], Awaitable[Sequence[Mapping[str, Any]]]]
"""The pods of a namespace."""


@dataclass(frozen=True, slots=True)
class Policy:
    level: str = "privileged"
    minor: int = LATEST

    def complaints(self, template: Mapping[str, Any]) -> list[str]:
        if self.level == "privileged":
            return []
        annotations = (template.get("metadata") or {}).get("annotations") or {}
        return complaints(self.level, Pod(template.get("spec") or {}, annotations, self.minor))

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor == LATEST else f'v1.{self.minor}'}"


def policies(labels: Mapping[str, str]) -> tuple[dict[str, Policy], list[field.FieldError]]:
    """The policy of each mode. A label that says nothing sensible counts as the strictest, and is named."""
    found, wrong = {}, []
    for mode in MODES:
        level, version = labels.get(_PREFIX + mode), labels.get(f"{_PREFIX}{mode}-version", "latest")
        if level is not None and level not in LEVELS:
            at = (field.Path("metadata") / "labels")[_PREFIX + mode]
            wrong.append(field.invalid(at, level, f"must be one of {', '.join(LEVELS)}"))
            level = "restricted"
        minor = _minor(version)
        if minor is None:
            at = (field.Path("metadata") / "labels")[f"{_PREFIX}{mode}-version"]
            wrong.append(field.invalid(at, version, 'must be "latest" or "v1.x"'))
            minor = LATEST
        found[mode] = Policy(level or "privileged", minor)
    return found, wrong


def _minor(version: str) -> int | None:
    if version == "latest":
        return LATEST
    match = re.fullmatch(r"v1\.(0|[1-9][0-9]{0,3})", version)
    return min(int(match[1]), LATEST) if match else None


def pod_security(attempt: Attempt) -> None:
    """Of everything that makes pods."""
    new = attempt.new
    if attempt.operation == "DELETE" or attempt.subresource not in ("", "ephemeralcontainers") or new is None:
        return
    if attempt.old is not None and _said(attempt, attempt.old) == _said(attempt, new):
        return  # nothing that is judged has changed
    namespace = attempt.context.namespace()
    labels = ((namespace or {}).get("metadata") or {}).get("labels") or {}
    if not any(label.startswith(_PREFIX) for label in labels):
        return
    modes, _ = policies(labels)
    template = _said(attempt, new)
    is_pod = (attempt.kind.group, attempt.kind.plural) == ("", "pods")
    enforced = modes["enforce"]
    wrong = enforced.complaints(template)
    if is_pod and wrong:
        raise errors.Forbidden(
            f'pods "{attempt.name}" is forbidden: violates PodSecurity "{enforced}": {", ".join(wrong)}',
            kind="pods",
            name=attempt.name,
        )
    warned = modes["warn"]
    if wrong := warned.complaints(template):
        attempt.context.warnings.append(f'would violate PodSecurity "{warned}": {", ".join(wrong)}')


def template_of(attempt: Attempt, fields: Fields) -> Mapping[str, Any]:
    """What the pods are like that an object makes; the pod itself, of a pod."""
    for name in _TEMPLATES[attempt.kind.group, attempt.kind.plural]:
        fields = fields.get(name) or {}
    return fields


def _said(attempt: Attempt, written: Fields) -> Mapping[str, Any]:
    """What is judged, and is judged again when it changes."""
    fields = template_of(attempt, written)
    annotations = (fields.get("metadata") or {}).get("annotations") or {}
    profiles = {name: value for name, value in annotations.items() if name.startswith(APPARMOR)}
    spec = {name: value for name, value in (fields.get("spec") or {}).items() if name not in _HARMLESS}
    return {"metadata": {"annotations": profiles}, "spec": spec}


def labels_of_namespaces(pods: Pods) -> Plugin:
    """Levels that do not exist are refused; whoever raises a level hears of pods that are above it."""

    async def admit(attempt: Attempt) -> None:
        new = attempt.new
        if attempt.operation == "DELETE" or attempt.subresource or new is None:
            return
        labels = _labels(new)
        if attempt.old is not None and _labels(attempt.old) == labels:
            return
        modes, wrong = policies(labels)
        if wrong:
            raise field.refusal("", "Namespace", attempt.name, wrong)
        if modes["audit"].level != "privileged":
            attempt.context.warnings.append(f"{_PREFIX}audit: the audit log does not record violations")
        before = policies(_labels(attempt.old or {}))[0]["enforce"]
        if attempt.old is None or modes["enforce"] == before or modes["enforce"].level == "privileged":
            return
        attempt.context.warnings += _about(modes["enforce"], attempt.name, await pods(attempt.name))

    return admit


def _about(enforced: Policy, namespace: str, pods: Sequence[Mapping[str, Any]]) -> list[str]:
    found = [(pod["metadata"]["name"], wrong) for pod in pods if (wrong := enforced.complaints(pod))]
    if not found:
        return []
    told = [f"{name}: {', '.join(wrong)}" for name, wrong in found[:WARNED_PODS_MAX]]
    if len(found) > WARNED_PODS_MAX:
        told.append(f"and {len(found) - WARNED_PODS_MAX} more pods")
    head = f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{enforced}"'
    return [head, *told]


def _labels(namespace: Mapping[str, Any]) -> dict[str, str]:
    labels = (namespace.get("metadata") or {}).get("labels") or {}
    return {name: value for name, value in labels.items() if name.startswith(_PREFIX)}


__all__ = [
    "KINDS",
    "LEVELS",
    "MODES",
    "Policy",
    "labels_of_namespaces",
    "pod_security",
    "policies",
    "template_of",
]
