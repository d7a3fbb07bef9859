"""What a node has, and what containers see of it."""

from collections.abc import Callable, Mapping
from re import compile
from typing import Any, Final

from allot.driver import Edits, Instance, Node, NotUsable, NumericDriver, Reserved, numeric

NAME: Final = "dra.e2e.example.com"
INSTANCE: Final = "frobnicators"
_VARIABLE: Final = compile("[A-Za-z_][A-Za-z0-9_]*")


def make(count: int, version: str = "v1alpha1") -> NumericDriver:
    """For a node that has so many. `version` is the oldest that a scheduler of the cluster may need."""
    return NumericDriver(NAME, capacity(count, version), prepare)


def capacity(count: int, version: str) -> Callable[[Node], list[Instance]]:
    return lambda node: [numeric.counter(INSTANCE, count, version=version)]


def prepare(claim: Reserved) -> Edits:
    """The allocation is all that is needed: it carries class and parameters as they were."""
    found = {
        "FROBNICATORS": str(claim.data["count"]),
        **_variables(claim, claim.class_parameters or {}, "data"),
        **_variables(claim, claim.claim_parameters.get("spec") or {}, "env"),
    }
    return Edits(env=tuple(f"{name}={value}" for name, value in found.items()))


def _variables(claim: Reserved, given: Mapping[str, Any], part: str) -> dict[str, str]:
    """Raises NotUsable."""
    found: dict[str, str] = given.get(part) or {}
    for name in found:
        if not _VARIABLE.fullmatch(name):
            raise NotUsable(f"claim {claim}: {name!r} cannot be the name of a variable")
    return found
