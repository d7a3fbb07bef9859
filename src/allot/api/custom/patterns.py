"""The patterns of a schema, matched in linear time.

The language is RE2's, as upstream's is: no look-around, no back references. Nothing
else is tried where RE2 refuses, since a pattern that backtracks can hold up the server
for as long as its author likes.
"""

from functools import lru_cache
from typing import Any

_LENGTH_MAX = 64 * 1024
_KEPT_MAX = 512


@lru_cache(maxsize=_KEPT_MAX)
def compiled(pattern: str) -> Any | None:
    """The pattern, ready to search with, or None if it cannot be read."""
    import re2  # takes a moment to load, and most servers never need it

    options = re2.Options()
    options.log_errors = False
    if len(pattern) > _LENGTH_MAX:
        return None
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None
