"""Server-side apply and the record of who owns which field.

    track_update(live, new, author, now, schema)   on every other write

Read `fieldset` for what a set of fields is, `extract` and `compare` for where
sets come from.
"""

from .managed import author_of
from .update import Author, Convert, track_update

__all__ = ["Author", "Convert", "author_of", "track_update"]
