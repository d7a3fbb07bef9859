"""The numbers and well-known strings of numeric parameters. They may grow in later versions, never shrink."""

from typing import Final

from ..resource.limits import GROUP
from ..resource.shape import NUMERIC_FINALIZER

VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
GATE: Final = "DRANumericParameters"


FINALIZER: Final = NUMERIC_FINALIZER
"""Of claims that the scheduler allocated with numeric parameters, or is about to."""

PARAMETER_TYPES_MAX: Final = 32
HANDLE_MAX: Final = 256 * 1024  # bytes
TEMPLATE_MAX: Final = 10 * 1024  # bytes

INSTANCES_MAX: Final = 128
NODE_INSTANCES_MAX: Final = 4096
"""Instances of one driver that count on one node, whole objects in the order of their names: no node makes
everybody look through more."""
INSTANCE_ID_MAX: Final = 253  # bytes
DATA_MAX: Final = 32 * 1024  # bytes of JSON

POOL_PREFIX: Final = "numeric/"


def pool_of(node: str) -> str:
    """The pool that instances of a node are counted in, wherever devices are counted by pool."""
    return f"{POOL_PREFIX}{node}"


def node_of(pool: str) -> str | None:
    """The node of such a pool; None of any other."""
    return pool.removeprefix(POOL_PREFIX) if pool.startswith(POOL_PREFIX) else None
