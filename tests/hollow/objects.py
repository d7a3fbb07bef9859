"""Hollow nodes as values, with defaults for everything."""

from typing import Any

from allot.api import Object, encode
from allot.fleet import FLEET_LABEL


def node(name: str = "n", fleet: str = "mixed", **more: Any) -> Object:
    metadata = {"name": name, "uid": f"uid-{name}", "labels": {FLEET_LABEL: fleet}}
    return Object(encode({"metadata": metadata, **more}))
