"""Claims that the scheduler allocates with numeric parameters (KEP-4381): their class says so.

    asking      a pod's pending claims, with class, parameter objects and what a model makes of them
    copies      classes and parameter objects as allocations keep them
    checking    whether a node has what they ask for, all of them together
    allocating  what is written for the chosen node: results for whoever counts, a handle for the driver
    plugin      NumericResources
    telling     what is missing where, in a sentence

Here is no word of a particular model; `allot.numeric` has those. A claim that is allocated is like any other
(`plugins.claims`).
"""

from .asking import NumericAsk
from .plugin import NumericResources

__all__ = ["NumericAsk", "NumericResources"]
