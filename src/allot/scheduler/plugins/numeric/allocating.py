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
from .asking import NAME, Asked, stored_copy

REQUEST = "classic"


def allocation(asked: Asked, choice: Choice, node: str, ids: Ids) -> resource.AllocationResult | Rejection:
    handle = encode(_handle(asked, choice, node)).decode()
    size = len(handle.encode())
    if size > numeric.limits.HANDLE_MAX:
        text = f"the allocation of a claim, with its parameters, has {size} bytes"
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
        resource_handle=handle,
        shareable=asked.shareable,
    )


def _handle(asked: Asked, choice: Choice, node: str) -> dict[str, object]:
    """In the version of the capacity that it is taken from: its driver knows that one."""
    own = asked.class_parameters
    return {
        "apiVersion": choice.instance.type.api_version,
        "kind": choice.instance.model.types.allocation,
        "metadata": {},
        **choice.instance.model.allocation(choice),
        "nodeName": node,
        "resourceClass": stored_copy(asked.class_object),
        "classParameters": stored_copy(own) if own is not None else None,
        "claimParameters": stored_copy(asked.claim_parameters),
    }


def _only(node: str) -> meta.NodeSelector:
    named = meta.NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    return meta.NodeSelector(node_selector_terms=(meta.NodeSelectorTerm(match_fields=(named,)),))
