"""Which writes a policy is about. Pure.

Resources are named `pods`, `pods/status`, `pods/*`, `*/scale`, `*` (no subresource) or `*/*`. Versions are
not compared where the policy takes equivalent ones (the default): an object is shown as it is stored,
whichever version the client wrote.
"""

from collections.abc import Mapping
from typing import Any

from .. import Attempt
from .views import MatchResources, ResourceRule


def matches(match: MatchResources, attempt: Attempt, namespace: Mapping[str, Any] | None) -> bool:
    exact = match.match_policy == "Exact"
    if not any(_covers(rule, attempt, exact) for rule in match.resource_rules):
        return False
    return is_selected(match, attempt, namespace)


def is_narrowed_to(
    match: MatchResources | None, attempt: Attempt, namespace: Mapping[str, Any] | None
) -> bool:
    """By a binding, which may leave everything open."""
    if match is None:
        return True
    exact = match.match_policy == "Exact"
    if match.resource_rules and not any(_covers(rule, attempt, exact) for rule in match.resource_rules):
        return False
    return is_selected(match, attempt, namespace)


def is_selected(match: MatchResources, attempt: Attempt, namespace: Mapping[str, Any] | None) -> bool:
    exact = match.match_policy == "Exact"
    if any(_covers(rule, attempt, exact) for rule in match.exclude_resource_rules):
        return False
    by_namespace, by_object = match.namespace_selector, match.object_selector
    if by_namespace is not None and not by_namespace.is_empty:
        labels = _namespace_labels(attempt, namespace)
        if labels is not None and not by_namespace.selects(labels):
            return False
    if by_object is None or by_object.is_empty:
        return True
    return any(by_object.selects(_labels(one)) for one in (attempt.new, attempt.old) if one is not None)


def _namespace_labels(attempt: Attempt, namespace: Mapping[str, Any] | None) -> Mapping[str, str] | None:
    """None for what is in no namespace: every selector takes it."""
    if attempt.kind.group == "" and attempt.kind.plural == "namespaces":
        return _labels(attempt.new or attempt.old)
    return _labels(namespace) if attempt.kind.namespaced else None


def _labels(fields: Mapping[str, Any] | None) -> Mapping[str, str]:
    return ((fields or {}).get("metadata") or {}).get("labels") or {}


def _covers(rule: ResourceRule, attempt: Attempt, exact: bool) -> bool:
    kind = attempt.kind
    return (
        _is_in(kind.group, rule.api_groups)
        and (not exact or _is_in(attempt.context.version, rule.api_versions))
        and _is_in(attempt.operation, rule.operations)
        and (rule.scope == "*" or (rule.scope == "Namespaced") == kind.namespaced)
        and (not rule.resource_names or attempt.name in rule.resource_names)
        and any(_is_resource(one, kind.plural, attempt.subresource) for one in rule.resources)
    )


def _is_in(value: str, wanted: tuple[str, ...]) -> bool:
    return "*" in wanted or value in wanted


def _is_resource(wanted: str, plural: str, subresource: str) -> bool:
    name, slash, below = wanted.partition("/")
    if name not in ("*", plural):
        return False
    return (below in ("*", subresource) and (bool(subresource) or below == "*")) if slash else not subresource
