"""What every object carries: names, labels, owners, and the selectors that look at them.

These are views: frozen, typed, known fields only. Logic reads them and never
writes them back, because a view forgets what it does not know by name. Field
names are the API's own in snake_case; camelCase exists only on the wire.

A list or map that is absent or null reads as an empty one; a string that is
absent reads as "". Where absence means something of its own, the type says None.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec


class View(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True, gc=False):
    """The base of every typed view. Views are trees, which the garbage collector need not look at."""


class OwnerReference(View, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(View, frozen=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if one does."""
        return next((owner for owner in self.owner_references if owner.controller), None)

    @property
    def controlling_pod(self) -> OwnerReference | None:
        """The same, if it is a pod: what was made for one pod is nobody else's to use (C4, C12)."""
        owner = self.controller
        return owner if owner is not None and owner.kind == "Pod" and owner.api_version == "v1" else None


class Condition(View, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int = 0


class LabelSelectorRequirement(View, frozen=True):
    key: str = ""
    operator: str = ""  # In, NotIn, Exists, DoesNotExist
    values: tuple[str, ...] = ()

    def holds(self, value: str | None) -> bool:
        """Of the label's value; None where there is no such label."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:
                return False


class LabelSelector(View, frozen=True):
    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.match_labels and not self.match_expressions

    def selects(self, labels: Mapping[str, str]) -> bool:
        """An empty selector selects everything."""
        if any(labels.get(key) != value for key, value in self.match_labels.items()):
            return False
        return all(one.holds(labels.get(one.key)) for one in self.match_expressions)


class NodeSelectorRequirement(View, frozen=True):
    key: str = ""
    operator: str = ""  # In, NotIn, Exists, DoesNotExist, Gt, Lt
    values: tuple[str, ...] = ()


class NodeSelectorTerm(View, frozen=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(View, frozen=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


V = TypeVar("V", bound=msgspec.Struct)


def view(kind: type[V], fields: Mapping[str, Any]) -> V:
    """The typed view of a decoded object."""
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError:
        return msgspec.convert(without_nulls(fields), kind)


def read(kind: type[V], encoded: bytes | str) -> V:
    """The typed view of an encoded object. A null means what absence means."""
    try:
        return msgspec.json.decode(encoded, type=kind)
    except msgspec.ValidationError:
        return msgspec.convert(without_nulls(msgspec.json.decode(encoded)), kind)


def without_nulls(value: Any) -> Any:
    """A copy in which no object has a null member."""
    if isinstance(value, Mapping):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [without_nulls(inner) for inner in value]
    return value
