"""Classic claims that are not allocated yet: their drivers are asked, and allocate them.

    asking     a pod's claims that drivers are to allocate, their classes, and what was said so far
    plugin     ClassicResources: nodes that a class leaves, what drivers said about the pod (PLUGIN5), and
               what they are asked next
    telling    who refused what and who has not answered, in a sentence

The talk itself is in `negotiating`. A claim that is allocated is like any other (`plugins.claims`).
"""

from .asking import ClassicAsk, read_ask
from .plugin import ClassicResources

__all__ = ["ClassicAsk", "ClassicResources", "read_ask"]
