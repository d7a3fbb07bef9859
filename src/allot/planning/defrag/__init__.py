"""Room in one piece: how fragmented devices are, and the fewest moves after which something fits.

layout         the sizes in which the devices of a pool can be had
fragmentation  the largest that fits, against what as much free capacity would allow
movable        who may be moved
again          the pod that is made in the place of another
course         what happens when pods are moved, one after the other
search         the fewest moves
wanted         what is to fit
applying       the moves, made in a cluster
telling        all of it for people
"""

from . import telling
from .again import again
from .applying import Applying, Stopped
from .course import Course, Step
from .fragmentation import Fragmentation, fragmentation
from .movable import SAFE_TO_EVICT, Terms, is_not_to_be_evicted, may_be_lost
from .search import NoPlan, Plan, plan
from .wanted import Wanted, from_manifests, of_profile, waiting

__all__ = [
    "SAFE_TO_EVICT",
    "Applying",
    "Course",
    "Fragmentation",
    "NoPlan",
    "Plan",
    "Step",
    "Stopped",
    "Terms",
    "Wanted",
    "again",
    "fragmentation",
    "from_manifests",
    "is_not_to_be_evicted",
    "may_be_lost",
    "of_profile",
    "plan",
    "telling",
    "waiting",
]
