"""The roles and bindings that every cluster starts with.

    notation     how the tables are written
    roles        for people and for components that are not control loops
    controllers  one role a control loop
    guests       roles of upstream's components that do not run here, for those who run them beside us
    objects      the tables as API objects, and how a stored one is brought up to date

Names and rules are upstream's, so that manifests and habits carry over; what is
Allot's own is named `allot:`. `tests/apiserver/security/test_bootstrap.py` compares all of it with
upstream's, and lists the differences with their reasons.
"""

from .objects import objects, reconciled
from .roles import NODE_RULES

__all__ = ["NODE_RULES", "objects", "reconciled"]
