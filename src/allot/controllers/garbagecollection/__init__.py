"""Garbage collection: what nobody owns any more goes, in the way its owner was deleted.

    background    the owner is gone; whatever only it owned goes after it
    foreground    the owner has the finalizer `foregroundDeletion`; dependents go first,
                  and the owner when none that holds it back (blockOwnerDeletion) is left
    orphan        the owner has the finalizer `orphan`; references to it are taken away,
                  then the owner goes and its former dependents stay

`monitors` follows every resource and tells the `graph`; the graph says whom to look at;
`loop` asks the server and `plan` decides.

What it promises
    * Nothing is deleted on the word of a cache. That an owner is gone is the server's
      word, about that uid, and the delete names the version that was judged.
    * A reference reaches into its own namespace or to cluster-scoped owners, no further.
    * Where the owner's kind is not served (any more), the object is left alone.
"""

from ..controller import Controller
from .loop import make
from .monitors import DEFINITIONS

CONTROLLER = Controller("garbage-collector-controller", "generic-garbage-collector", (DEFINITIONS,), make)

__all__ = ["CONTROLLER"]
