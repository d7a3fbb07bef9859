"""compute.allot.dev/v1alpha1: classes of compute resources (KEP-14), under names that containers ask for.

types        typed views of classes
naming       names of classes as resources, names of compute resources
numbers      numbers with units, as properties have them
selecting    which compute resources a class selects
kinds        what the server serves
classes, nodes, pods    the rules: of classes, of what nodes have, of what containers were given
limits       numbers and well-known strings
"""

from . import limits
from .kinds import KINDS, RESOURCE_CLASS, served
from .naming import class_of, compute_resource_name, property_hash
from .selecting import selects, unmet
from .types import (
    ResourceClass,
    ResourceClassSpec,
    ResourceGroupMember,
    ResourcePropertySelector,
    ResourceSelectorRequirement,
)

__all__ = [
    "KINDS",
    "RESOURCE_CLASS",
    "ResourceClass",
    "ResourceClassSpec",
    "ResourceGroupMember",
    "ResourcePropertySelector",
    "ResourceSelectorRequirement",
    "class_of",
    "compute_resource_name",
    "limits",
    "property_hash",
    "selects",
    "served",
    "unmet",
]
