"""compute.allot.dev/v1alpha1: classes of compute resources (KEP-14), under names that containers ask for.

types        typed views of classes
naming       names of classes as resources, names of compute resources
numbers      numbers with units, as properties have them
selecting    which compute resources a class selects
kinds        what the server serves
classes, nodes, pods    the rules: of classes, of what nodes have, of what containers were given
listed       what nodes have, for servers that keep it beside the Node
binding      the choice that comes with a binding, put into the pod
records      what containers were given, and what a pod holds of it
holds        which pods hold what of a node, as the server keeps it
limits       numbers and well-known strings
"""

from . import binding, holds, limits, listed, records
from .classes import unusable
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
    "binding",
    "class_of",
    "compute_resource_name",
    "holds",
    "limits",
    "listed",
    "property_hash",
    "records",
    "selects",
    "served",
    "unmet",
    "unusable",
]
