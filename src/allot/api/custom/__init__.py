"""Kinds that users define: CustomResourceDefinition, and what it makes of a schema.

definition   the kind CustomResourceDefinition and its rules
structure    which schemas are structural, and so can be pruned and defaulted
validate     an object against the keywords of its schema
printing     columns by JSON path
making       from a definition to the `Kind` that the server serves
"""

from .definition import CLEANUP, DEFINITION, KINDS
from .making import kind_of
from .structure import check_structural
from .validate import validate

__all__ = ["CLEANUP", "DEFINITION", "KINDS", "check_structural", "kind_of", "validate"]
