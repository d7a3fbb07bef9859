"""What the controllers that keep sets of pods have in common. Not a controller itself.

selecting    does a label selector accept these labels?
adoption     who belongs to whom: owned, to be adopted, to be released
pods         how a pod stands: active, ready, available; which to delete first
memory       what was made or deleted and the cache does not show yet
building     a pod from a template, as its owner
keeping      the part that awaits: an owner's pods, adopted, made and deleted
ending       the end of a pod that somebody else decides on: told first, then deleted
shares       so many, or a share of them
pausing      looking again later, and never at once
revisions    every template that a set ever had
history      keeps them
doing        many writes, carefully: first one, then two, then four
"""

from .adoption import ORPHANS, Family, free_in_namespace, reference, sort_out, with_owner, without_owner
from .building import pod_from
from .doing import slow_start
from .ending import disrupt
from .history import REVISIONS, History
from .keeping import PODS, Keeper
from .memory import Unseen
from .pausing import later
from .pods import (
    NODE_INDEX,
    deletion_order,
    is_active,
    is_available,
    is_ready,
    node_name,
    view_of,
    wait_s,
)
from .revisions import POD_LABEL, HistoryRules, hash_of, template_in
from .selecting import accepts
from .shares import count_of

__all__ = [
    "NODE_INDEX",
    "ORPHANS",
    "PODS",
    "POD_LABEL",
    "REVISIONS",
    "Family",
    "History",
    "HistoryRules",
    "Keeper",
    "Unseen",
    "accepts",
    "count_of",
    "deletion_order",
    "disrupt",
    "free_in_namespace",
    "hash_of",
    "is_active",
    "is_available",
    "is_ready",
    "later",
    "node_name",
    "pod_from",
    "reference",
    "slow_start",
    "sort_out",
    "template_in",
    "view_of",
    "wait_s",
    "with_owner",
    "without_owner",
]
