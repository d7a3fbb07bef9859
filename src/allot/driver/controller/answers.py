"""What is to be done about a claim, and what a PodScheduling is to say of it. Pure.

    what the claim shows                                         due
    allocated by others, or of another driver's class            NOTHING
    allocated, somebody uses it or nobody wants it back          NOTHING
    allocated, our finalizer is lost, and it is not being deleted  PROTECT
    allocated, unused, and being deleted or asked back           GIVE_BACK
    not allocated, our finalizer, immediate and still wanted     ALLOCATE: it was begun, and is completed
    not allocated, our finalizer, anything else                  ABORT: whoever wants it asks again
    not allocated, immediate, of a class of ours                 ALLOCATE
    not allocated, delayed                                       NOTHING, until a node is selected

What it promises
    ANSWER1  A claim is ours when its class, our finalizer or `status.driverName` says so. Others are let be.
    ANSWER2  A claim in use is never given back, whatever else it shows.
    ANSWER3  An entry is made for every pending claim, also where no node is unsuitable; other drivers'
             entries stay as they are.
    ANSWER4  Where more nodes are unsuitable than an entry takes, the selected one is named first, then
             those that were asked about, then those that were named before.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from allot.allocation import BadNodeSelector, Node, selects
from allot.api import Object, classic, meta

from .values import Allocation, Answers, Ask, NotUsable, Refused
from .views import Pod, ResourceClaim


class Due(Enum):
    NOTHING = "nothing"
    PROTECT = "put the finalizer back"
    ALLOCATE = "allocate it, wherever"
    ABORT = "undo what may have been begun"
    GIVE_BACK = "deallocate it"


finalizer = classic.limits.finalizer_of
SHOWN_MAX: Final = 200
"""Of what an author answered, in a message."""


def due(claim: ResourceClaim, resource_class: classic.ResourceClass | None, driver: str) -> Due:
    status = claim.status
    is_protected = finalizer(driver) in claim.metadata.finalizers
    is_leaving = bool(claim.metadata.deletion_timestamp)
    if claim.is_numeric:
        return Due.ABORT if is_protected and status.allocation is None else Due.NOTHING
    if status.allocation is not None:
        has_our_name = status.driver_name == driver if status.driver_name else is_protected
        if not has_our_name:
            return Due.NOTHING
        if not status.reserved_for and (is_leaving or status.deallocation_requested):
            return Due.GIVE_BACK
        return Due.NOTHING if is_protected or is_leaving else Due.PROTECT
    if claim.spec.is_immediate and is_ours(resource_class, driver) and not is_leaving:
        return Due.ALLOCATE
    return Due.ABORT if is_protected else Due.NOTHING


def is_ours(resource_class: classic.ResourceClass | None, driver: str) -> bool:
    """Whether the class leaves it to the driver to allocate claims, and not to the scheduler."""
    return (
        resource_class is not None
        and resource_class.driver_name == driver
        and not resource_class.numeric_parameters
    )


def is_pending(claim: ResourceClaim, resource_class: classic.ResourceClass | None, driver: str) -> bool:
    """A delayed claim that this driver has to allocate once a node is selected."""
    return (
        is_ours(resource_class, driver)
        and not claim.is_numeric
        and claim.status.allocation is None
        and not claim.spec.is_immediate
        and not claim.metadata.deletion_timestamp
    )


def may_hold(claim: ResourceClaim, driver: str) -> bool:
    """It holds something of the driver's, or an allocation may have been begun for it."""
    if claim.status.allocation is not None and claim.status.driver_name and not claim.is_numeric:
        return claim.status.driver_name == driver
    return finalizer(driver) in claim.metadata.finalizers


# -- an allocation ------------------------------------------------------------------------------


def judged(asks: Sequence[Ask], node: Node | None, answers: Answers) -> dict[str, Allocation | Refused]:
    """What the author answered for each claim; what contradicts the contract is a refusal that says so."""
    if not isinstance(answers, Mapping):
        wrong = Refused(f"the driver answered {_shown(answers)}, and not a mapping from claims' uids")
        return {ask.claim.uid: wrong for ask in asks}
    return {ask.claim.uid: _judged(node, answers.get(ask.claim.uid)) for ask in asks}


def _judged(node: Node | None, answer: object) -> Allocation | Refused:
    """Authors are not held to types: whatever they answer comes here."""
    if answer is None:
        return Refused("the driver gave no answer for this claim")
    if isinstance(answer, Refused):
        return Refused(str(answer.why))
    if not isinstance(answer, Allocation):
        return Refused(f"the driver answered {_shown(answer)}, which is neither Allocation nor Refused")
    if not isinstance(answer.handle, str) or not isinstance(answer.nodes, meta.NodeSelector | None):
        return Refused(
            f"the driver answered {_shown(answer)}: a handle is text, and nodes are a NodeSelector"
        )
    try:
        size = len(answer.handle.encode())
    except UnicodeEncodeError as wrong:
        return Refused(f"the driver's handle is no text: {wrong.reason}")
    if size > classic.limits.RESOURCE_HANDLE_MAX:
        return Refused(
            f"the driver's handle has {size} bytes, and {classic.limits.RESOURCE_HANDLE_MAX} are allowed"
        )
    if node is not None and answer.nodes is not None:
        try:
            reaches = selects(answer.nodes, node)
        except BadNodeSelector as wrong:
            return Refused(f"the driver's node selector cannot be read: {wrong}")
        if not reaches:
            return Refused(f"the driver allocated it where node {node.name} cannot use it")
    return answer


def is_held(answers: object, uid: str) -> bool:
    """Whether something may be held for a claim after such an answer: only a refusal says that nothing is."""
    return not isinstance(answers.get(uid) if isinstance(answers, Mapping) else None, Refused)


def _shown(answer: object) -> str:
    return f"{answer!r}"[:SHOWN_MAX]


def names_nodes_only(selector: meta.NodeSelector) -> bool:
    """Whether a node's name is enough to know if it is selected."""
    return not any(term.match_expressions for term in selector.node_selector_terms)


def allocated(driver: str, allocation: Allocation, pod: Pod | None) -> dict[str, Any]:
    """The status that says so; allocation and reservation in one write (C2)."""
    result: dict[str, Any] = {}
    if allocation.handle:
        result["resourceHandle"] = allocation.handle
    if allocation.nodes is not None:
        result["availableOnNodes"] = _fields(allocation.nodes)
    if allocation.shareable:
        result["shareable"] = True
    status: dict[str, Any] = {"driverName": driver, "allocation": result}
    if pod is not None:
        status["reservedFor"] = [{"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}]
    return status


RETURNED: Final[Mapping[str, None]] = {
    "allocation": None,
    "driverName": None,
    "deallocationRequested": None,
}
"""The status of a claim that holds nothing any more."""


def with_finalizer(claim: Object, driver: str) -> list[str]:
    return [*(claim.metadata.finalizers or ()), finalizer(driver)]


def without_finalizer(claim: Object, driver: str) -> list[str]:
    return [one for one in claim.metadata.finalizers or () if one != finalizer(driver)]


def _fields(selector: meta.NodeSelector) -> dict[str, Any]:
    def each(requirements: Iterable[meta.NodeSelectorRequirement]) -> list[dict[str, Any]]:
        return [
            {"key": one.key, "operator": one.operator, **({"values": [*one.values]} if one.values else {})}
            for one in requirements
        ]

    terms = []
    for term in selector.node_selector_terms:
        parts = {"matchExpressions": each(term.match_expressions), "matchFields": each(term.match_fields)}
        terms.append({name: part for name, part in parts.items() if part})
    return {"nodeSelectorTerms": terms}


# -- a PodScheduling ----------------------------------------------------------------------------


class Pending(NamedTuple):
    """A claim of the pod that this driver is to allocate."""

    entry: str  # its name in the pod's spec
    claim: Object


def asked_about(scheduling: classic.PodScheduling, entries: Collection[str]) -> tuple[str, ...]:
    """The nodes to judge: those proposed, and those that were named unsuitable before."""
    spec = scheduling.spec
    before = [
        node
        for one in scheduling.status.resource_claims
        if one.name in entries
        for node in one.unsuitable_nodes
    ]
    selected = (spec.selected_node,) if spec.selected_node else ()
    return tuple(dict.fromkeys((*selected, *spec.potential_nodes, *before)))


def unsuitable(answer: object, pending: Sequence[Pending]) -> dict[str, set[str]]:
    """The nodes that do not suit, by entry of the pod, from what the author answered by claim. Raises
    NotUsable."""
    if not isinstance(answer, Mapping):
        raise NotUsable(
            f"the driver's unsuitable_nodes answered {_shown(answer)}, and not a mapping from claims' uids"
        )
    found: dict[str, set[str]] = {}
    for entry, claim in pending:
        nodes = answer.get(claim.uid, ())
        if isinstance(nodes, str) or not isinstance(nodes, Collection):
            raise NotUsable(
                f"the driver's unsuitable_nodes answered {_shown(nodes)} for this claim, and no list"
            )
        found[entry] = set(nodes)
    return found


def status_with(
    scheduling: classic.PodScheduling, unsuitable: Mapping[str, Collection[str]]
) -> list[dict[str, Any]] | None:
    """The entries of a PodScheduling with what is said for some of them; None: they say so already."""
    order = asked_about(scheduling, unsuitable.keys())
    before = scheduling.status.resource_claims
    said = {
        name: tuple(node for node in order if node in nodes)[: classic.limits.NODES_MAX]
        for name, nodes in unsuitable.items()
    }
    known = {one.name: one for one in before}
    if all(name in known and set(known[name].unsuitable_nodes) == set(nodes) for name, nodes in said.items()):
        return None
    kept = [one for one in before if one.name not in said]
    new = [
        classic.ResourceClaimSchedulingStatus(name=name, unsuitable_nodes=nodes)
        for name, nodes in said.items()
    ]
    return [{"name": one.name, "unsuitableNodes": [*one.unsuitable_nodes]} for one in (*kept, *new)]
