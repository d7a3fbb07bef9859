"""JSON Merge Patch (RFC 7386): objects merge, null removes, all else replaces."""

from typing import Any


def merge_patch(document: Any, patch: Any) -> Any:
    """The document with the patch laid over it. Neither is changed; the result may share parts."""
    if type(patch) is not dict:
        return patch
    merged = dict(document) if type(document) is dict else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif type(value) is dict:
            merged[name] = merge_patch(merged.get(name), value)
        else:
            merged[name] = value
    return merged
