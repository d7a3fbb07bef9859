"""The kinds of compute.allot.dev as the server knows them."""

from ..gates import Gates
from ..kind import Kind, Rules, Version
from . import classes, columns, limits

RESOURCE_CLASS = Kind(
    limits.GROUP,
    "ResourceClass",
    "resourceclasses",
    (Version(limits.VERSION, "dev.allot.compute.v1alpha1.ResourceClass", respell=classes.refuse_misspelt),),
    hub=limits.VERSION,
    namespaced=False,
    singular="resourceclass",
    short_names=("crc",),
    counts_generation=True,
    rules=Rules(validate_create=classes.validate_create, validate_update=classes.validate_update),
    columns=columns.CLASS,
    cells=columns.class_,
)

KINDS = (RESOURCE_CLASS,)


def served(gates: Gates) -> tuple[Kind, ...]:
    return KINDS if gates[limits.GATE] else ()
