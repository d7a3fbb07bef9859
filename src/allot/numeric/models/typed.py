"""What our models share: JSON read into typed values, and selectors over the labels of an instance."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta

from allot.api import meta

from ..model import BadData

INT64_MAX: Final = 2**63 - 1
Count = Annotated[int, Meta(ge=0, le=INT64_MAX)]
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


class Tolerant(msgspec.Struct, frozen=True, rename="camel"):
    """Capacity: a newer driver may say more than is known here."""

    metadata: dict[str, Any] = {}

    @property
    def labels(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.metadata.get("labels") or {}
        return found


class Strict(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Parameters: what is not known is a typing mistake in a class."""

    metadata: dict[str, Any] = {}
    selector: meta.LabelSelector | None = None

    def selects(self, labels: Mapping[str, str]) -> bool:
        return self.selector is None or self.selector.selects(labels)

    @property
    def selector_text(self) -> str:
        if self.selector is None or self.selector.is_empty:
            return ""
        parts = [f"{key}={value}" for key, value in sorted(self.selector.match_labels.items())]
        parts += [
            f"{one.key} {one.operator} {','.join(one.values)}".rstrip()
            for one in self.selector.match_expressions
        ]
        return f" with labels {', '.join(parts)}"


T = TypeVar("T", bound=msgspec.Struct)


def read(kind: type[T], data: Mapping[str, Any], spellings: Mapping[str, str] | None = None) -> T:
    """Raises BadData. `spellings` are other names under which fields may come."""
    respelled = _respelled(data, spellings or {})
    try:
        found = msgspec.convert(respelled, kind)
    except msgspec.ValidationError as why:
        raise BadData(str(why)) from None
    if isinstance(found, Tolerant):
        _require_labels(found.metadata.get("labels"))
    if isinstance(found, Strict) and found.selector is not None:
        _require_known(respelled["selector"])
        for one in found.selector.match_expressions:
            if one.operator not in OPERATORS or not one.key:
                raise BadData(f"selector: {one.operator!r} is none of {', '.join(OPERATORS)}")
            if (one.operator in ("In", "NotIn")) != bool(one.values):
                raise BadData(f"selector: {one.operator} of {one.key} has the wrong number of values")
    return found


def _require_known(selector: Mapping[str, Any]) -> None:
    """A typing mistake in a selector would select everything."""
    _require_named(selector, "selector", ("matchLabels", "matchExpressions"))
    for one in selector.get("matchExpressions") or ():
        _require_named(one, "selector.matchExpressions", ("key", "operator", "values"))


def _require_named(fields: Mapping[str, Any], where: str, known: tuple[str, ...]) -> None:
    for name in fields:
        if name not in known:
            raise BadData(f"{where}: {name!r} is none of {', '.join(known)}")


def _require_labels(labels: Any) -> None:
    is_fine = labels is None or (
        isinstance(labels, Mapping)
        and all(isinstance(key, str) and isinstance(value, str) for key, value in labels.items())
    )
    if not is_fine:
        raise BadData("metadata.labels: texts by name are expected")


def _respelled(data: Mapping[str, Any], spellings: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for name, value in data.items():
        own = spellings.get(name, name)
        if own in found:
            raise BadData(f"{own} is there twice, in two spellings")
        found[own] = value
    return found
