"""Server-side apply and the record of who owns which field.

    apply(live, config, author, now, schema)       a PATCH of type apply
    track_update(live, new, author, now, schema)   every other write

Read `fieldset` for what a set of fields is, `extract` and `compare` for where
sets come from, then `update` and `apply` for what is done with them.
"""

from .apply import Applied, apply
from .conflicts import Conflict, Conflicts
from .extract import created
from .fieldset import FieldSet, union
from .managed import author_of
from .update import Author, Convert, track_update

__all__ = [
    "Applied",
    "Author",
    "Conflict",
    "Conflicts",
    "Convert",
    "FieldSet",
    "apply",
    "author_of",
    "created",
    "track_update",
    "union",
]
