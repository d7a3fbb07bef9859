"""Looking again later, and never at once.

A wait that rounding has made next to nothing would not move a clock: the same work would
be done for ever at the same moment.
"""

from allot.informers import Again

_LEAST_S = 0.01


def later(wait_s: float | None) -> Again | None:
    """None means that nothing is to be waited for."""
    return None if wait_s is None else Again(max(wait_s, _LEAST_S))
