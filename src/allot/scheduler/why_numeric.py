"""What numeric claims have (KEP-4381), and what became of it, for whoever asks why."""

from collections.abc import Iterator

from allot.api import Quantity, numeric, resource

from .claim import ClaimInfo
from .snapshot import Snapshot

Result = resource.DeviceRequestAllocationResult


def in_numbers(claim: ClaimInfo) -> str:
    """What a claim takes of which instance, or that it takes nothing."""
    if claim.allocation is None:
        return f"nothing taken yet; class {claim.view.spec.resource_class_name} has numeric parameters"
    return ", ".join(map(_taken, claim.allocation.devices.results))


def lost(claim: ClaimInfo, snapshot: Snapshot) -> Iterator[str]:
    """What is no longer there of what a claim takes: a pod that uses it waits for it on its node."""
    if not claim.is_held_numerically or claim.allocation is None:
        return
    for result in claim.allocation.devices.results:
        node = _node(result)
        if snapshot.node(node) is None:
            stays = "; it is given back when the claim is deleted" if _is_kept(claim) else ""
            yield f"claim {claim.key.name} is for node {node} alone, which is not there{stays}"
            continue
        now = snapshot.capacity.instance(node, result.driver, result.device)
        if now is None:
            yield f"claim {claim.key.name} has {_taken(result)}, which its driver no longer publishes"
            continue
        for name, amount in result.consumed_capacity.items():
            there = Quantity.of(now.amounts.get(name, 0))
            if there < Quantity.parse(amount):
                yield f"claim {claim.key.name} has {_taken(result)}, which has {there} by now"


def _is_kept(claim: ClaimInfo) -> bool:
    return resource.shape.is_immediate(claim.view)


def _taken(result: Result) -> str:
    amounts = ", ".join(f"{amount} of {name}" for name, amount in result.consumed_capacity.items())
    return f"{amounts or 'nothing'} from {result.device} of driver {result.driver} on node {_node(result)}"


def _node(result: Result) -> str:
    return numeric.limits.node_of(result.pool) or result.pool
