"""Numeric parameters (KEP-4381): what nodes have, and what classes say about the parameters of claims.

types            typed views
kinds            NodeResourceCapacity, as the server knows it
capacity         its rules
parametertypes   the rules of `numericParameters` in a ResourceClass
limits           numbers and well-known strings
"""

from . import limits, parametertypes
from .kinds import NODE_RESOURCE_CAPACITY
from .types import NodeResourceCapacity, NodeResourceInstance, NumericParameterType

__all__ = [
    "NODE_RESOURCE_CAPACITY",
    "NodeResourceCapacity",
    "NodeResourceInstance",
    "NumericParameterType",
    "limits",
    "parametertypes",
]
