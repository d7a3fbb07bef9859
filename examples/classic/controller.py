"""The control plane half of a driver for classic claims: two made-up licences, for any node."""

import sys
from collections.abc import Sequence

from allot.driver import controller as kit

LICENCES = ("gold-0", "gold-1")
held: dict[str, str] = {}  # claim -> licence


def begin(claims: Sequence[kit.Claim]) -> None:
    """What is held. Here a real driver would free whatever its own records have beyond that."""
    held.clear()
    held.update({claim.uid: claim.handle for claim in claims if claim.handle})


def free() -> list[str]:
    return [one for one in LICENCES if one not in held.values()]


def allocate(asks: Sequence[kit.Ask], node: str | None) -> kit.Answers:
    """Of the claims of one pod, together. It may be called again for the same claim."""
    if len(free()) < len([ask for ask in asks if ask.claim.uid not in held]):
        return {ask.claim.uid: kit.Refused("all licences are in use") for ask in asks}
    for ask in asks:
        if ask.claim.uid not in held:
            held[ask.claim.uid] = free()[0]
    return {ask.claim.uid: kit.Allocation(held[ask.claim.uid]) for ask in asks}


def deallocate(claim: kit.Claim) -> None:
    """It may be called again, and for a claim that holds nothing."""
    held.pop(claim.uid, None)


def unsuitable_nodes(asks: Sequence[kit.Ask], nodes: Sequence[str]) -> kit.Unsuitable:
    """Every node is as good as any, as long as there are licences."""
    return {ask.claim.uid: () if len(free()) >= len(asks) else nodes for ask in asks}


if __name__ == "__main__":
    sys.exit(kit.Controller("licence.example.com", allocate, deallocate, unsuitable_nodes, begin).main())
