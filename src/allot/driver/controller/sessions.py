"""An autoscaler's what-if about one driver's claims: a copy of everything, on which pods are placed. Pure.

A session is begun with the claims and classes as they were then and with a copy of the driver's own state.
Nothing that happens later shows in it, and nothing that is done in it shows anywhere else. It stands in for
all that a scheduler knows of these claims, so it also counts who uses them.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from allot.allocation import Node, selects
from allot.api import classic, meta

from .answers import finalizer, is_ours
from .values import Allocation, Answers, Ask, NotUsable, Refused, Unsuitable
from .views import Pod, ResourceClaim

SESSIONS_MAX: Final = 8


class Snapshot(Protocol):
    """A copy of a driver's state, which what is allocated in it changes, and nothing else.

    Nodes may be imagined: then their labels say what the driver could provide there.
    """

    def unsuitable_nodes(self, asks: Sequence[Ask], nodes: Sequence[Node]) -> Unsuitable: ...
    def allocate(self, asks: Sequence[Ask], node: Node) -> Answers: ...


class Known(NamedTuple):
    """A claim as it was when the session began."""

    claim: ResourceClaim
    resource_class: classic.ResourceClass | None
    ask: Ask | NotUsable  # of one that is to be allocated: what to ask, or why that cannot be said


@dataclass(slots=True)
class _Held:
    """An allocated claim, really or in this session, and who uses it."""

    nodes: meta.NodeSelector | None
    shareable: bool
    users: set[str] = field(default_factory=set)


class _Looked(NamedTuple):
    held: tuple[tuple[str, _Held], ...]
    pending: tuple[Known, ...]


class CannotPlace(Exception):
    """The pod cannot be placed there in this session. The message says why."""


class Session:
    def __init__(self, driver: str, known: Mapping[tuple[str, str], Known], snapshot: Snapshot) -> None:
        self._driver, self._known, self._snapshot = driver, known, snapshot
        self._held: dict[str, _Held] = {}

    def failed(self, pod: Pod, nodes: Sequence[Node]) -> dict[str, str]:
        """Why nodes do not suit the pod, by node; those that are not named do."""
        try:
            looked = self._look(pod)
            pending = [one.claim.metadata.uid for one in looked.pending]
            asks = [_ask(one) for one in looked.pending]
        except (CannotPlace, NotUsable) as why:
            return {node.name: str(why) for node in nodes}
        unsuitable = self._snapshot.unsuitable_nodes(asks, nodes) if asks else {}
        found: dict[str, str] = {}
        for node in nodes:
            reason = self._why_not(looked, node)
            if not reason and any(node.name in unsuitable.get(uid, ()) for uid in pending):
                reason = f"{self._driver} has nothing there for the pod's claims"
            if reason:
                found[node.name] = reason
        return found

    def select(self, pod: Pod, node: Node) -> None:
        """From now on the pod is there. Raises CannotPlace, and then nothing has changed."""
        why = self.failed(pod, [node]).get(node.name)
        if why:
            raise CannotPlace(why)
        looked = self._look(pod)
        asks = [_ask(one) for one in looked.pending]
        given = self._snapshot.allocate(asks, node) if asks else {}
        for ask in asks:
            answer = given.get(ask.claim.uid, Refused("the driver gave no answer"))
            if isinstance(answer, Refused):
                raise CannotPlace(f"claim {ask.claim}: {answer.why}")
        for ask in asks:
            answer = given[ask.claim.uid]
            if isinstance(answer, Allocation):
                self._held[ask.claim.uid] = _Held(answer.nodes, answer.shareable, {pod.metadata.uid})
        for uid, held in looked.held:
            held.users.add(pod.metadata.uid)
            self._held[uid] = held

    def _look(self, pod: Pod) -> _Looked:
        """The pod's claims of this driver. Raises CannotPlace where one can be had nowhere now."""
        held: dict[str, _Held] = {}
        pending: dict[str, Known] = {}
        for entry in pod.spec.resource_claims:
            name = entry.claim_of(pod.metadata.name)
            known = self._known.get((pod.metadata.namespace, name))
            if known is None or (entry.resource_claim_template_name and not known.claim.is_of(pod)):
                continue  # not this driver's, as far as it was known when the session began
            claim, uid = known.claim, known.claim.metadata.uid
            now = self._held_now(claim)
            if now is not None:
                self._admit(name, now, pod.metadata.uid)
                held[uid] = now
            elif claim.metadata.deletion_timestamp:
                raise CannotPlace(f"claim {name} is being deleted")
            elif claim.spec.is_immediate:
                raise CannotPlace(f"claim {name} is not allocated yet, and no pod decides where it will be")
            else:
                pending[uid] = known
        return _Looked(tuple(held.items()), tuple(pending.values()))

    def _held_now(self, claim: ResourceClaim) -> _Held | None:
        held = self._held.get(claim.metadata.uid)
        if held is not None:
            return held
        allocation = claim.status.allocation
        if allocation is None:
            return None
        if claim.metadata.deletion_timestamp or claim.status.deallocation_requested:
            raise CannotPlace(f"claim {claim.metadata.name} is being given back")
        users = {one.uid for one in claim.status.reserved_for}
        return _Held(allocation.available_on_nodes, allocation.shareable, users)

    def _admit(self, name: str, held: _Held, pod: str) -> None:
        others = held.users - {pod}
        if others and not held.shareable:
            raise CannotPlace(f"claim {name} is used by another pod, and cannot be shared")
        if len(others) >= classic.limits.RESERVED_FOR_MAX:
            raise CannotPlace(
                f"claim {name} has {len(others)} users, and {classic.limits.RESERVED_FOR_MAX} is the most"
            )

    def _why_not(self, looked: _Looked, node: Node) -> str:
        if any(one.nodes is not None and not selects(one.nodes, node) for _, one in looked.held):
            return "a claim of the pod is allocated elsewhere"
        for one in looked.pending:
            wanted = one.resource_class.suitable_nodes if one.resource_class is not None else None
            if wanted is not None and not selects(wanted, node):
                return f"class {one.claim.spec.resource_class_name} does not suit the node"
        return ""


def is_known_to(driver: str, claim: ResourceClaim, resource_class: classic.ResourceClass | None) -> bool:
    """Whether the driver answers for the claim."""
    if claim.is_numeric:
        return False
    if claim.status.driver_name:
        return claim.status.driver_name == driver
    return finalizer(driver) in claim.metadata.finalizers or is_ours(resource_class, driver)


def _ask(known: Known) -> Ask:
    if isinstance(known.ask, NotUsable):
        raise known.ask
    return known.ask


T = TypeVar("T")


class Recent(Generic[T]):
    """The last few, by id. There is no other way to end one: whoever asks too late begins anew."""

    def __init__(self, most: int = SESSIONS_MAX) -> None:
        self._most = most
        self._kept: OrderedDict[str, T] = OrderedDict()

    def add(self, id: str, one: T) -> None:
        self._kept[id] = one
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def get(self, id: str) -> T | None:
        found = self._kept.get(id)
        if found is not None:
            self._kept.move_to_end(id)
        return found

    def __len__(self) -> int:
        return len(self._kept)


def filtered(nodes: Iterable[Mapping[str, Any]], failed: Mapping[str, str]) -> dict[str, Any]:
    """An ExtenderFilterResult, with the names that Go gives its members."""
    kept = [node for node in nodes if _name(node) not in failed]
    return {"Nodes": {"items": kept}, "FailedNodes": dict(failed), "Error": ""}


def _name(node: Mapping[str, Any]) -> str:
    return str((node.get("metadata") or {}).get("name") or "")
