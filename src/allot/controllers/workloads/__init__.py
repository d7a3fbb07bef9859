"""What the controllers that keep sets of pods have in common. Not a controller itself.

selecting    does a label selector accept these labels?
adoption     who belongs to whom: owned, to be adopted, to be released
pods         how a pod stands: active, ready, available; which to delete first
memory       what was made or deleted and the cache does not show yet
building     a pod from a template, as its owner
doing        many writes, carefully: first one, then two, then four
"""

from .adoption import ORPHANS, Family, free_in_namespace, reference, sort_out, with_owner, without_owner
from .building import pod_from
from .doing import slow_start
from .keeping import PODS, Keeper
from .memory import Unseen
from .pods import deletion_order, is_active, is_available, is_ready, view_of, wait_s
from .selecting import accepts

__all__ = [
    "ORPHANS",
    "PODS",
    "Family",
    "Keeper",
    "Unseen",
    "accepts",
    "deletion_order",
    "free_in_namespace",
    "is_active",
    "is_available",
    "is_ready",
    "pod_from",
    "reference",
    "slow_start",
    "sort_out",
    "view_of",
    "wait_s",
    "with_owner",
    "without_owner",
]
