"""The roles and bindings that every cluster starts with.

    notation     how the tables are written
    roles        for people and for components that are not control loops
    controllers  one role a control loop
    objects      the tables as API objects, and how a stored one is brought up to date

Names and rules are upstream's, so that manifests and habits carry over; what is
Allot's own is named `allot:`. The roles of components that do not exist here
(cloud providers, proxies, certificate signers) are left out, except where people
bind them by name.
"""

from .objects import objects, reconciled
from .roles import NODE_RULES

__all__ = ["NODE_RULES", "objects", "reconciled"]
