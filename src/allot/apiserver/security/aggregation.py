"""The aggregation rule of a cluster role, ready to be asked."""

from collections.abc import Mapping
from typing import Any

from ..requests.selectors import LabelSelector, Requirement

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent"}
_NEVER = Requirement("", "in")


def read_selectors(aggregation_rule: Mapping[str, Any] | None) -> tuple[LabelSelector, ...]:
    """A role is chosen when any of these accepts its labels."""
    return tuple(_read(s) for s in (aggregation_rule or {}).get("clusterRoleSelectors") or ())


def _read(fields: Mapping[str, Any]) -> LabelSelector:
    equal = [
        Requirement(key, "in", frozenset([value])) for key, value in (fields.get("matchLabels") or {}).items()
    ]
    return LabelSelector((*equal, *(_requirement(e) for e in fields.get("matchExpressions") or ())))


def _requirement(fields: Mapping[str, Any]) -> Requirement:
    operator = _OPERATORS.get(fields.get("operator", ""))
    if operator is None:
        return _NEVER  # nobody knows what it means, so it chooses nothing
    return Requirement(fields.get("key", ""), operator, frozenset(fields.get("values") or ()))
