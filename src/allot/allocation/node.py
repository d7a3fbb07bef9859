"""A node as far as devices care: its name, its labels, what its agent declares.

Node selectors are matched the way the scheduler matches node affinity: terms are
alternatives, requirements of a term must all hold, a term without requirements
matches nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from re import ASCII, compile
from typing import Any

from allot.api import meta

_INTEGER = compile(r"[+-]?\d{1,100}", ASCII)


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    declared_features: frozenset[str] = frozenset()

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> "Node":
        """From a v1 Node as a dictionary."""
        metadata = fields.get("metadata") or {}
        status = fields.get("status") or {}
        return cls(
            name=metadata.get("name") or "",
            labels=dict(metadata.get("labels") or {}),
            declared_features=frozenset(status.get("declaredFeatures") or ()),
        )


class BadNodeSelector(ValueError):
    """A node selector that cannot be read. Validation keeps these out of the API."""


def selects(selector: meta.NodeSelector, node: Node) -> bool:
    """Whether `node` is among the selected. Raises BadNodeSelector."""
    for term in selector.node_selector_terms:
        _check(term)
    return any(_term_holds(term, node) for term in selector.node_selector_terms)


def _term_holds(term: meta.NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.name}
    return all(_holds(one, node.labels) for one in term.match_expressions) and all(
        _holds(one, fields) for one in term.match_fields
    )


def _holds(one: meta.NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(one.key)
    match one.operator:
        case "In":
            return value is not None and value in one.values
        case "NotIn":
            return value is None or value not in one.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            number = _integer(value)
            if number is None:
                return False
            bound = int(one.values[0])
            return number > bound if one.operator == "Gt" else number < bound


def _check(term: meta.NodeSelectorTerm) -> None:
    for one in term.match_fields:
        if one.key != "metadata.name" or one.operator not in ("In", "NotIn") or len(one.values) != 1:
            raise BadNodeSelector(f"field {one.key!r} with {one.operator!r} of {len(one.values)} values")
    for one in term.match_expressions:
        match one.operator:
            case "In" | "NotIn":
                good = bool(one.values)
            case "Exists" | "DoesNotExist":
                good = not one.values
            case "Gt" | "Lt":
                good = len(one.values) == 1 and _integer(one.values[0]) is not None
            case _:
                good = False
        if not good:
            raise BadNodeSelector(f"label {one.key!r} with {one.operator!r} of {len(one.values)} values")


def _integer(text: str | None) -> int | None:
    """A 64-bit integer in ASCII digits, as Kubernetes reads labels; None where the text is no such thing."""
    if text is None or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
