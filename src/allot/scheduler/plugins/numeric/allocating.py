"""What is written for a claim on the chosen node.

The driver reads the handle: which instance, how much of it, and class and parameter objects as they were, so
that it needs nothing else even if they are gone. Everybody else reads the results, which count the same
amounts in the node's numeric pool: ledger, hold records, preemption and checkers have no word of their own
for numeric claims.
"""

from allot.api import Quantity, encode, meta, numeric, resource
from allot.base import Ids
from allot.numeric import Choice

from ...framework import Rejection
from .asking import NAME, Asked
from .copies import Copies

REQUEST = "classic"


def allocation(
    asked: Asked, choice: Choice, node: str, ids: Ids, copies: Copies
) -> resource.AllocationResult | Rejection:
    handle = encode(_handle(asked, choice, node, copies))
    if len(handle) > numeric.limits.HANDLE_MAX:
        text = f"the allocation of a claim, with its parameters, has {len(handle)} bytes"
        return Rejection(NAME, f"{text}; {numeric.limits.HANDLE_MAX} are the most there may be")
    result = resource.DeviceRequestAllocationResult(
        request=REQUEST,
        driver=asked.want.driver,
        pool=numeric.limits.pool_of(node),
        device=choice.instance.id,
        share_id=ids.uid(),
        consumed_capacity={name: str(Quantity.of(amount)) for name, amount in choice.takes.items()},
    )
    return resource.AllocationResult(
        devices=resource.DeviceAllocationResult(results=(result,)),
        node_selector=_only(node),
        resource_handle=handle.decode(),
        shareable=asked.shareable,
    )


def _handle(asked: Asked, choice: Choice, node: str, copies: Copies) -> dict[str, object]:
    """In the version of the capacity that it is taken from: its driver knows that one."""
    own = asked.class_parameters
    return {
        "apiVersion": choice.instance.type.api_version,
        "kind": choice.instance.model.types.allocation,
        "metadata": {},
        **choice.instance.model.allocation(choice),
        "nodeName": node,
        "resourceClass": copies.of(asked.class_object),
        "classParameters": copies.of(own) if own is not None else None,
        "claimParameters": copies.of(asked.claim_parameters),
    }


def _only(node: str) -> meta.NodeSelector:
    named = meta.NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    return meta.NodeSelector(node_selector_terms=(meta.NodeSelectorTerm(match_fields=(named,)),))
