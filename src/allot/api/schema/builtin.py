"""The shapes of the Kubernetes kinds, from the generated table, `extras` and `traits`.

The table is read on first use (about a millisecond) and each type is built when
somebody asks for it, so that a process which only serves claims never builds Pod.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from . import extras
from .node import ANYTHING, Schema, Type
from .traits import ATOMIC_TYPES, FIELD_TRAITS, NO_TRAIT, Trait

TABLE = Path(__file__).with_name("kubernetes-1.37.json")

_PREFIXES = {
    "compute": "dev.allot.compute",
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "meta": "io.k8s.apimachinery.pkg.apis.meta",
}

_SCALARS: Mapping[str, tuple[Type, str]] = {
    "s": (Type.STRING, ""),
    "b": (Type.BOOLEAN, ""),
    "i": (Type.INTEGER, "int32"),
    "l": (Type.INTEGER, "int64"),
    "n": (Type.NUMBER, "double"),
    "q": (Type.QUANTITY, ""),
    "t": (Type.TIME, "date-time"),
    "u": (Type.MICRO_TIME, "date-time"),
    "y": (Type.BYTES, "byte"),
    "x": (Type.INT_OR_STRING, "int-or-string"),
    "*": (Type.ANY, ""),
}


class UnknownType(KeyError):
    """No type of this name is in the table."""


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    """Short name -> field -> expression; tools/schemas.py explains the letters."""
    generated = msgspec.json.decode(TABLE.read_bytes(), type=dict[str, dict[str, str]])
    for short, members in extras.FIELDS.items():
        generated[short].update(members)
    return {**generated, **extras.TYPES}


def full_name(short: str) -> str:
    """core_v1.Pod -> io.k8s.api.core.v1.Pod"""
    module, _, kind = short.partition(".")
    group, _, version = module.partition("_")
    return f"{_PREFIXES.get(group, f'io.k8s.api.{group}')}.{version}.{kind}"


@cache
def _short_names() -> Mapping[str, str]:
    return {full_name(short): short for short in _table()}


def names() -> frozenset[str]:
    """Every type there is, by its full name."""
    return frozenset(_short_names())


@cache
def get(name: str) -> Schema:
    """The shape of a type, e.g. of "io.k8s.api.core.v1.Pod"."""
    short = _short_names().get(name)
    if short is None:
        raise UnknownType(name)
    return _named(short)


@cache
def _named(short: str) -> Schema:
    written = _table()[short]
    return Schema(
        Type.OBJECT,
        name=full_name(short),
        fields=lambda: _fields(short),
        required=frozenset(field for field, expression in written.items() if expression.startswith("!")),
        atomic=short in ATOMIC_TYPES,
    )


def _fields(short: str) -> dict[str, Schema]:
    traits = FIELD_TRAITS.get(short, {})
    return {
        field: _shape(expression.removeprefix("!"), traits.get(field, NO_TRAIT))
        for field, expression in _table()[short].items()
    }


def _shape(expression: str, trait: Trait = NO_TRAIT) -> Schema:
    start, rest = expression[0], expression[1:]
    if start == "#":
        return _referred(rest, trait)
    if start == "[":
        return Schema(
            Type.LIST,
            element=_shape(rest),
            list_type=trait.list_type,
            keys=trait.keys,
            merge_key=trait.merge_key,
            strategies=trait.strategies,
        )
    if trait.is_bare:
        return Schema(Type.OBJECT)
    if start == "{":
        element = _chosen(trait.choices) if trait.choices else _shape(rest)
        return Schema(Type.MAP, element=element, atomic=bool(trait.atomic))
    if trait is NO_TRAIT:
        return _scalar(start)
    if trait.choices:
        return _chosen(trait.choices)
    type_, format_ = _SCALARS[start]
    return Schema(type_, format=format_, default=trait.default)


_JSON_TYPES = {"#": dict, "{": dict, "[": list, "b": bool, "s": str}


def _chosen(expressions: tuple[str, ...]) -> Schema:
    return Schema(Type.ANY, choices={_JSON_TYPES[one[0]]: _shape(one) for one in expressions})


@cache
def _scalar(letter: str) -> Schema:
    type_, format_ = _SCALARS[letter]
    return ANYTHING if type_ is Type.ANY else Schema(type_, format=format_)


def _referred(short: str, trait: Trait) -> Schema:
    named = _named(short)
    if trait is NO_TRAIT:
        return named
    return Schema(
        Type.OBJECT,
        name=named.name,
        fields=lambda: named.fields,
        required=named.required,
        atomic=named.atomic if trait.atomic is None else trait.atomic,
        strategies=trait.strategies,
    )
