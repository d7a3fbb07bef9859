"""Counts what a namespace uses, for the quotas that limit it.

The server charges each new object in the transaction that stores it. This controller does the
rest: it counts what is there when a quota is made or its terms change, gives back what objects
used that are gone or finished, and counts anew when a device class takes another extended
resource name. Both use the package `quota`, so they count alike.

What it promises
    * `status.used` never falls below what is there (Q1). What is written counts everything that
      was charged up to the version of the quota that the write replaces: a cache is believed when
      it has heard of all writes up to that version, and otherwise the server is asked for a list.
      Whatever is charged meanwhile changes that version, and the count starts over.
    * Once things are quiet, `status.used` is what there is, also after a change of classes.
    * Objects that come cost nothing here. Those that go within a moment cost one write, however
      many are there; a new quota, or new terms, cost one list of each kind in that namespace.
"""

from ..controller import Controller
from .loop import NEEDS, make

CONTROLLER = Controller("resourcequota-controller", "resourcequota-controller", NEEDS, make)

__all__ = ["CONTROLLER"]
