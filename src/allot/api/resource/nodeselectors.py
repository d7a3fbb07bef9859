"""The rules of a core NodeSelector, as slices and allocations use it."""

from .. import field, names
from ..field import Path
from ..kind import Fields
from .found import Found

_NO_OPERATOR = "not a valid selector operator"


def check(found: Found, selector: Fields, path: Path) -> None:
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        found.add(field.required(path / "nodeSelectorTerms", "must have at least one node selector term"))
    for at, term in enumerate(terms):
        here = (path / "nodeSelectorTerms")[at]
        for i, requirement in enumerate(term.get("matchExpressions") or ()):
            _expression(found, requirement, (here / "matchExpressions")[i])
        for i, requirement in enumerate(term.get("matchFields") or ()):
            _field(found, requirement, (here / "matchFields")[i])


def _expression(found: Found, requirement: Fields, path: Path) -> None:
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    match operator:
        case "In" | "NotIn":
            if not values:
                text = "must be specified when `operator` is 'In' or 'NotIn'"
                found.add(field.required(path / "values", text))
            for at, value in enumerate(values):
                found.texts((path / "values")[at], value, names.label_value(value))
        case "Exists" | "DoesNotExist":
            if values:
                text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                found.add(field.forbidden(path / "values", text))
        case "Gt" | "Lt":
            if len(values) != 1:
                text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                found.add(field.required(path / "values", text))
        case _:
            found.add(field.invalid(path / "operator", operator, _NO_OPERATOR))
    key = requirement.get("key") or ""
    found.texts(path / "key", key, names.qualified(key))


def _field(found: Found, requirement: Fields, path: Path) -> None:
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    if operator not in ("In", "NotIn"):
        found.add(field.invalid(path / "operator", operator, _NO_OPERATOR))
    elif len(values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        found.add(field.required(path / "values", text))
    key = requirement.get("key") or ""
    if key != "metadata.name":
        found.add(field.invalid(path / "key", key, "not a valid field selector key"))
        return
    for at, value in enumerate(values):
        found.texts((path / "values")[at], value, names.subdomain(value))
