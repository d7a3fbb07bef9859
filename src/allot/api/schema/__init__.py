"""What an object of each kind looks like: names, types, and how its lists and maps merge.

    get("io.k8s.api.core.v1.Pod")     the shape of a Kubernetes type
    from_structural(openapi)          the shape of a custom resource
    decode(body), decode_yaml(body)   bytes from a client to plain values, within bounds
    check(fields, schema)             wrong types, usual spellings; unknown fields are taken out
    prune(fields, schema)             unknown fields are taken out, whatever the rest looks like

Read `node` for what a shape says, `traits` for what we know beyond the table, `extras` for what we add to it.
"""

from .builtin import UnknownType, get, names
from .check import FINE, Problems, check
from .compile import fits_encoded
from .decode import (
    DEPTH_MAX,
    KEY_LENGTH_MAX,
    VALUES_MAX,
    Decoded,
    decode,
    decode_value,
    depth_of,
    require_bounded,
    require_shallow,
    too_deep,
)
from .defaults import apply_defaults
from .node import ANYTHING, ATOMIC, BY_KEY, FREE, MISSING, SET, Schema, Type
from .prune import prune
from .structural import from_structural
from .walk import Mistyped
from .where import NOTED_MAX, PATH_LENGTH_MAX
from .yaml import UNFOLDED_MAX, decode_yaml, yaml_scalar

__all__ = [
    "ANYTHING",
    "ATOMIC",
    "BY_KEY",
    "DEPTH_MAX",
    "FINE",
    "FREE",
    "KEY_LENGTH_MAX",
    "MISSING",
    "NOTED_MAX",
    "PATH_LENGTH_MAX",
    "SET",
    "UNFOLDED_MAX",
    "VALUES_MAX",
    "Decoded",
    "Mistyped",
    "Problems",
    "Schema",
    "Type",
    "UnknownType",
    "apply_defaults",
    "check",
    "decode",
    "decode_value",
    "decode_yaml",
    "depth_of",
    "fits_encoded",
    "from_structural",
    "get",
    "names",
    "prune",
    "require_bounded",
    "require_shallow",
    "too_deep",
    "yaml_scalar",
]
