"""Opaque configuration of devices, decoded into the author's own classes, with errors that name the field.

    class GpuConfig(Config, frozen=True):
        sharing: Literal["exclusive", "timeSliced"] = "exclusive"
        replicas: int = 1

A claim or a class names it by `kind: GpuConfig`. Names are camelCase there and snake_case here; fields
that the class does not have are refused, since a misspelt one would be ignored otherwise.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec


class Config(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What every configuration has. Restrict `api_version` with a Literal where versions differ."""

    api_version: str = ""
    kind: str = ""


class BadConfig(ValueError):
    """The message says what is wrong, and where in the configuration."""


def decoded(parameters: Mapping[str, Any] | None, classes: Iterable[type[Config]]) -> Config:
    by_kind = {one.__name__: one for one in classes}
    kind = (parameters or {}).get("kind")
    if not by_kind:
        raise BadConfig("this driver takes no configuration")
    if kind not in by_kind:
        raise BadConfig(f"kind: {kind!r} is not one of {', '.join(by_kind)}")
    try:
        return msgspec.convert(dict(parameters or {}), by_kind[kind])
    except msgspec.ValidationError as wrong:
        what, _, place = str(wrong).partition(" - at ")
        where = place.strip("`").removeprefix("$").removeprefix(".")
        raise BadConfig(f"{where}: {what}" if where else what) from None
