"""Between the generations of the API: manifests, workloads and nodes that move from one to another. Pure.

mapping     what took the place of the classes and parameters that administrators once made
manifests   documents of files, whatever they are: `convert`
claims      claims, templates, classes and slices of every version of resource.k8s.io
podspecs    pods, and what makes pods: what was spelled otherwise, and what they ask for
replacing   classic claims and templates of a namespace, replaced by structured ones
rawnames    workloads that ask for a resource, moved to a class over it (KEP-14)
nodewise    a node that goes from a device plugin to a DRA driver (KEP-5004)
"""

from . import nodewise, rawnames
from .manifests import Conversion, convert
from .mapping import BadMapping, Mapping, read_mapping
from .replacing import Replacement, Replacing, replacing

__all__ = [
    "BadMapping",
    "Conversion",
    "Mapping",
    "Replacement",
    "Replacing",
    "convert",
    "nodewise",
    "rawnames",
    "read_mapping",
    "replacing",
]
