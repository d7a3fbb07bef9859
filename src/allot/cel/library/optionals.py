"""Optional values: `optional.of(x)`, `a.?b.orValue(0)`."""

from typing import Any, Final

from ..errors import EvaluationError
from ..overloads import function, method
from ..types import BOOL, list_of, optional_of, param
from ..values import NONE, Duration, Optional

V = param("V")


def of_non_zero(value: Any) -> Optional:
    empty = (
        value is None
        or value is False
        or (isinstance(value, int | float | str | bytes | list | tuple | dict) and not value)
    )
    return NONE if empty or value == Duration(0) else Optional(value)


def value(optional: Optional) -> Any:
    if not optional.present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def unwrap(optionals: Any) -> list[Any]:
    return [optional.value for optional in optionals if optional.present]


DECLARATIONS: Final = (
    function("optional.of", "optional_of", (V,), optional_of(V), Optional),
    function("optional.ofNonZeroValue", "optional_ofNonZeroValue", (V,), optional_of(V), of_non_zero),
    function("optional.none", "optional_none", (), optional_of(V), lambda: NONE),
    method("value", "optional_value", (optional_of(V),), V, value),
    method("hasValue", "optional_hasValue", (optional_of(V),), BOOL, lambda o: o.present),
    method(
        "or",
        "optional_or_optional",
        (optional_of(V), optional_of(V)),
        optional_of(V),
        lambda a, b: a if a.present else b,
    ),
    method(
        "orValue",
        "optional_orValue_value",
        (optional_of(V), V),
        V,
        lambda o, other: o.value if o.present else other,
    ),
    function("optional.unwrap", "optional_unwrap", (list_of(optional_of(V)),), list_of(V), unwrap),
    method("unwrapOpt", "optional_unwrapOpt", (list_of(optional_of(V)),), list_of(V), unwrap),
    method("first", "list_first", (list_of(V),), optional_of(V), lambda v: Optional(v[0]) if v else NONE),
    method("last", "list_last", (list_of(V),), optional_of(V), lambda v: Optional(v[-1]) if v else NONE),
)
