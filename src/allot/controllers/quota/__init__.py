"""Counts what a namespace uses, for the quotas that limit it.

The server charges each new object in the transaction that stores it. This controller does the
rest: it counts what is there when a quota is made or its terms change, gives back what objects
used that are gone or finished, and counts anew when a device class takes another extended
resource name. Both use the package `quota`, so they count alike.

What it promises
    * `status.used` never falls below what is there (Q1). Caches only say when to look. What is
      written was listed from the server after the version of the quota that the write replaces;
      whatever is charged meanwhile changes that version, and the count starts over.
    * Once things are quiet, `status.used` is what there is, also after a change of classes.
    * Objects that come cost nothing here. Those that go cost one list of their kind, in that
      namespace, for all that go within a moment.
"""

from ..controller import Controller
from .loop import NEEDS, make

CONTROLLER = Controller("resourcequota-controller", "resourcequota-controller", NEEDS, make)

__all__ = ["CONTROLLER"]
