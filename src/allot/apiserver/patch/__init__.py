"""Three ways to say what should change; the fourth, apply, is a package of its own.

    json_patch(document, operations)           RFC 6902
    merge_patch(document, patch)               RFC 7386
    strategic_merge(document, patch, schema)   Kubernetes' own, for kinds with a schema (`strategic`)

`ordering` gives a list the order that `$setElementOrder` asks for.

All take plain values, change nothing, and raise the API error that the client gets.
"""

from .json_patch import GROWTH_BYTES_MAX, OPERATIONS_MAX, json_patch
from .merge_patch import merge_patch
from .strategic import strategic_merge

__all__ = ["GROWTH_BYTES_MAX", "OPERATIONS_MAX", "json_patch", "merge_patch", "strategic_merge"]
