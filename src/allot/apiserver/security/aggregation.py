"""Label selectors as objects, and the aggregation rules of cluster roles made of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class Requirement(NamedTuple):
    key: str
    operator: str  # In, NotIn, Exists, DoesNotExist
    values: frozenset[str] = frozenset()

    def accepts(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
            case _:
                return False  # an operator nobody knows chooses nothing


@dataclass(frozen=True, slots=True)
class Selector:
    requirements: tuple[Requirement, ...]

    def accepts(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.accepts(labels) for requirement in self.requirements)


def read_selectors(aggregation_rule: Mapping[str, Any] | None) -> tuple[Selector, ...]:
    """A role is chosen when any of these accepts its labels."""
    return tuple(_read(s) for s in (aggregation_rule or {}).get("clusterRoleSelectors") or ())


def _read(fields: Mapping[str, Any]) -> Selector:
    equal = [
        Requirement(key, "In", frozenset([value])) for key, value in (fields.get("matchLabels") or {}).items()
    ]
    expressions = [
        Requirement(e.get("key", ""), e.get("operator", ""), frozenset(e.get("values") or ()))
        for e in fields.get("matchExpressions") or ()
    ]
    return Selector((*equal, *expressions))
