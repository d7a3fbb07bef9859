"""Server-side apply and the record of who owns which field.

apply(live, config, author, now, schema)       a PATCH of type apply
track_update(live, new, author, now, schema)   every other write

fieldset      sets of fields, in the very form that `managedFields` shows them
elements      what tells the elements of a list apart
extract       what a writer owns who made an object out of nothing
configured    what an applier says by a configuration
compare       what is different between two objects
managed       the entries of `managedFields`: who wrote which fields, when, and how
update        who owns what after an ordinary write
apply         one writer's complete opinion, merged with everybody else's
merge         the configuration laid over the live object
conflicts     what an apply would take from others, as the answer a client gets
lastapplied   kubectl's annotation from before server-side apply
"""

from .apply import Applied, apply
from .configured import configured
from .conflicts import Conflict, Conflicts
from .extract import created
from .fieldset import FieldSet, union
from .managed import author_of
from .update import Author, Versions, track_update

__all__ = [
    "Applied",
    "Author",
    "Conflict",
    "Conflicts",
    "FieldSet",
    "Versions",
    "apply",
    "author_of",
    "configured",
    "created",
    "track_update",
    "union",
]
