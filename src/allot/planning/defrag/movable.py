"""Who may be moved: evicted, so that whoever made the pod makes another one, which finds a place elsewhere.

A pod stays where it is when nobody would make another, when it or its disruption budget says so, when it is
more important than the one that room is made for, or when its devices would not come along: a claim that the
pod only names is not made anew with it, and one that a driver allocates is that driver's to move.
"""

from typing import NamedTuple

from allot.scheduler import Budgets, PodInfo, Snapshot

from ..future import belongs_to_node, comes_back

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


class Terms(NamedTuple):
    priority: int = 0  # of the pod that room is made for: more important ones stay
    evicts_bare: bool = False  # pods that nobody makes anew may go, too


def is_not_to_be_evicted(pod: PodInfo) -> bool:
    return (pod.object.metadata.annotations or {}).get(SAFE_TO_EVICT) == "false"


def may_be_lost(pod: PodInfo) -> bool:
    """Nobody makes it anew, and it says that it may go all the same."""
    return (pod.object.metadata.annotations or {}).get(SAFE_TO_EVICT) == "true"


def why_it_stays(pod: PodInfo, snapshot: Snapshot, budgets: Budgets, terms: Terms) -> str:
    """ "" where it may be moved."""
    if pod.is_deleting or pod.view.is_finished:
        return "it is ending"
    if belongs_to_node(pod):
        return "it belongs to its node"
    if is_not_to_be_evicted(pod):
        return "it is not to be evicted"
    if not comes_back(pod) and not (terms.evicts_bare or may_be_lost(pod)):
        return "nobody makes it anew"
    if pod.priority > terms.priority:
        return "it is more important"
    covering = budgets.covering(pod)
    if len(covering) > 1:
        return f"{len(covering)} disruption budgets are about it, and no eviction heeds more than one"
    if budgets.violating([pod]):
        return f"disruption budget {covering[0].name} lets no pod go"
    return _held_by_claims(pod, snapshot)


def _held_by_claims(pod: PodInfo, snapshot: Snapshot) -> str:
    for key in pod.claims:
        claim = snapshot.claim(key)
        if claim is None or claim.allocation is None:
            continue
        if claim.is_classic and not claim.is_held_numerically:
            return f"the driver of claim {key.name} would have to be asked"
        if not claim.is_controlled_by(pod.uid):
            return f"it names claim {key.name}, which is not made anew with it"
        if claim.users_besides(pod.uid):
            return f"others use its claim {key.name}"
    return ""
