"""Where the devices that a claim has can be used."""

from collections.abc import Iterable

import msgspec

from allot.allocation import BadNodeSelector, Node, selects
from allot.api import meta

from .claim import ClaimInfo


def is_reachable(claim: ClaimInfo, node: Node) -> bool:
    """Whether the devices that a claim has can be used from a node."""
    selector = claim.allocation.node_selector if claim.allocation is not None else None
    if selector is None:
        return True
    try:
        return selects(selector, node)
    except BadNodeSelector:
        return False


def selection(claim: ClaimInfo) -> bytes:
    """Equal for claims whose devices can be used from the same nodes, because they say so alike."""
    selector = claim.allocation.node_selector if claim.allocation is not None else None
    return b"" if selector is None else msgspec.json.encode(selector)


def places(claims: Iterable[ClaimInfo]) -> frozenset[str] | None:
    """The nodes that the claims leave, as far as they say it by name."""
    named = [
        places
        for claim in claims
        if claim.allocation is not None and (places := _named(claim.allocation.node_selector)) is not None
    ]
    return frozenset.intersection(*named) if named else None


def _named(selector: meta.NodeSelector | None) -> frozenset[str] | None:
    names: set[str] = set()
    for term in selector.node_selector_terms if selector is not None else ():
        fields = [one for one in term.match_fields if one.key == "metadata.name" and one.operator == "In"]
        if not fields:
            return None
        names.update(fields[0].values)
    return frozenset(names) if selector is not None else None
