"""Whether what somebody says of a node to come has the shape of a Node and of ResourceSlices.

Templates come from files and from strangers, and are simulated as they are: what is wrong with one is said
here, with its place, and not by whatever would stumble over it.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from allot.api import Fields, Quantity, kinds, resource, schema


class BadGroups(ValueError):
    """The message names the place."""


def check_shapes(node: Fields, slices: Sequence[Any], where: str) -> list[str]:
    """Fields that no such object has, by their place; they are taken out. Raises BadGroups."""
    unknown = _unknown(node, _node(), where, "node")
    for at, one in enumerate(slices):
        if not isinstance(one, dict):
            raise BadGroups(f"{where}.slices[{at}]: an object is needed")
        unknown += _unknown(one, _slice(), where, f"slices[{at}]")
    for what in ("capacity", "allocatable"):
        for name, amount in ((node.get("status") or {}).get(what) or {}).items():
            if Quantity.parse(amount).nano < 0:
                raise BadGroups(f"{where}.node.status.{what}.{name}: {amount} is below nothing")
    return unknown


def _unknown(fields: Fields, shape: schema.Schema, where: str, path: str) -> list[str]:
    problems = schema.check(fields, shape)
    if problems.malformed:
        raise BadGroups(f"{where}.{path}: {problems.malformed}")
    return [f"{path}: {one}" for one in problems.unknown]


@cache
def _node() -> schema.Schema:
    return next(one.versions[0].shape() for one in kinds.ALL if (one.group, one.kind) == ("", "Node"))


@cache
def _slice() -> schema.Schema:
    return next(one.shape() for one in resource.RESOURCE_SLICE.versions if one.name == "v1")
