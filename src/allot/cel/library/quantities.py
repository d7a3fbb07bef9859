"""Quantities and versions: Kubernetes' own types in the language.

Two overloads share each comparison; which one is meant is known from the types,
or from the values where the types are dynamic.
"""

from typing import Final

from allot.api import Quantity, Semver, normalized_semver

from ..errors import EvaluationError
from ..overloads import function, method
from ..types import BOOL, DOUBLE, INT, QUANTITY, SEMVER, STRING


def quantity(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except ValueError as problem:
        raise EvaluationError(str(problem)) from None


def is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except ValueError:
        return False
    return True


def as_integer(value: Quantity) -> int:
    if value.int64 is None:
        raise EvaluationError("cannot convert value to integer")
    return value.int64


def semver(text: str, normalize: bool = False) -> Semver:
    try:
        return Semver.parse(normalized_semver(text) if normalize else text)
    except ValueError as problem:
        raise EvaluationError(str(problem)) from None


def is_semver(text: str, normalize: bool = False) -> bool:
    try:
        Semver.parse(normalized_semver(text) if normalize else text)
    except ValueError:
        return False
    return True


_TWO_Q, _TWO_S = (QUANTITY, QUANTITY), (SEMVER, SEMVER)

DECLARATIONS: Final = (
    function("quantity", "string_to_quantity", (STRING,), QUANTITY, quantity),
    function("isQuantity", "is_quantity_string", (STRING,), BOOL, is_quantity),
    function("sign", "quantity_sign", (QUANTITY,), INT, lambda q: q.sign),  # not a method, unlike the others
    method("isInteger", "quantity_is_integer", (QUANTITY,), BOOL, lambda q: q.int64 is not None),
    method("asInteger", "quantity_as_integer", (QUANTITY,), INT, as_integer),
    method("asApproximateFloat", "quantity_get_float", (QUANTITY,), DOUBLE, Quantity.as_float),
    method("add", "quantity_add", _TWO_Q, QUANTITY, lambda a, b: a + b),
    method("add", "quantity_add_int", (QUANTITY, INT), QUANTITY, lambda a, n: a + Quantity.of(n)),
    method("sub", "quantity_sub", _TWO_Q, QUANTITY, lambda a, b: a - b),
    method("sub", "quantity_sub_int", (QUANTITY, INT), QUANTITY, lambda a, n: a - Quantity.of(n)),
    method("isGreaterThan", "quantity_is_greater_than", _TWO_Q, BOOL, lambda a, b: a.nano > b.nano),
    method("isLessThan", "quantity_is_less_than", _TWO_Q, BOOL, lambda a, b: a.nano < b.nano),
    method("compareTo", "quantity_compare_to", _TWO_Q, INT, Quantity.compare),
    function("semver", "string_to_semver", (STRING,), SEMVER, semver),
    function("semver", "string_bool_to_semver", (STRING, BOOL), SEMVER, semver),
    function("isSemver", "is_semver_string", (STRING,), BOOL, is_semver),
    function("isSemver", "is_semver_string_bool", (STRING, BOOL), BOOL, is_semver),
    method("major", "semver_major", (SEMVER,), INT, lambda v: v.major),
    method("minor", "semver_minor", (SEMVER,), INT, lambda v: v.minor),
    method("patch", "semver_patch", (SEMVER,), INT, lambda v: v.patch),
    method("isGreaterThan", "semver_is_greater_than", _TWO_S, BOOL, lambda a, b: a > b),
    method("isLessThan", "semver_is_less_than", _TWO_S, BOOL, lambda a, b: a < b),
    method("compareTo", "semver_compare_to", _TWO_S, INT, Semver.compare),
)
