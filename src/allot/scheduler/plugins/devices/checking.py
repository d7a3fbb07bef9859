"""Whether a node has the devices, for all pods of one signature.

An outline is asked of the allocator: does it fit, and how well? What extended resources ask of devices
depends on what the node's device plugins serve themselves, so there is one demand for
each way in which a node may share the work (`Delegation`).
"""

from collections import OrderedDict

from allot.allocation import (
    Answer,
    Demand,
    Outline,
    Outlines,
    Plan,
    Policy,
    Refused,
    allocate,
    read_demand,
)
from allot.api import compute, resource

from ...extended import (
    IN_MEMORY_NAME,
    Choice,
    Delegation,
    DeviceRequests,
    Lacking,
    asks_for,
    device_requests,
    in_memory,
    in_users_words,
    in_words,
)
from ...framework import Rejection
from ...node import NodeInfo
from ...pod import PodInfo
from ...snapshot import Snapshot
from .asking import DeviceAsk

NAME = "DynamicResources"

NOT_AS_ASKED = Rejection(NAME, "resourceclaim not available on the node")
NO_FIT = Rejection(NAME, "cannot allocate all claims", resolvable=True)
UNDECIDED = Rejection(NAME, "could not be decided whether all claims fit", undecided=True)
NOTHING_DELEGATED = Delegation()

PLANS_MAX = 512
"""Plans that are kept for the nodes looked at last: likely the next to be chosen."""


class Asked:
    """The demands of the pods of a signature, by the delegation of a node.

    They are read from the claims of the first such pod. Those of the others have other names
    and the same specs, and names are not part of what is allocated.
    """

    def __init__(self, ask: DeviceAsk, pod: PodInfo, snapshot: Snapshot) -> None:
        self._ask = ask
        self._pod = pod
        self._snapshot = snapshot
        self._choice = Choice(ask.extended, snapshot.extended)
        self._bridged = [(one, own) for one in ask.extended.names if (own := compute.class_of(one))]
        self._demands: dict[Delegation, Demand | Refused] = {}

    def delegation(self, node: NodeInfo) -> Delegation | Lacking:
        if not self._ask.extended.names:
            return NOTHING_DELEGATED
        if not self._bridged or not node.compute:
            return self._choice.on(node.allocatable)
        serves = self._snapshot.compute.serves
        served = {name: 1 for name, class_name in self._bridged if serves(class_name, node.compute)}
        return self._choice.on({**node.allocatable, **served})  # where a plugin exports, the plugin serves

    def devices(self, delegation: Delegation) -> DeviceRequests | Refused | None:
        """What the claim for extended resources asks for; None when there is no need for one."""
        return device_requests(self._ask.extended, delegation) if delegation else None

    def is_served(self, delegation: Delegation) -> bool:
        """Whether the claim of an earlier attempt, if there is one, asks for what would be asked for now."""
        if self._ask.earlier is None:
            return True
        devices = self.devices(delegation)
        return isinstance(devices, DeviceRequests) and asks_for(self._ask.earlier.view, devices)

    def demand(self, delegation: Delegation) -> Demand | Refused:
        demand = self._demands.get(delegation)
        if demand is None:
            demand = self._demands[delegation] = self._read(delegation)
        return demand

    def claims(self, delegation: Delegation) -> tuple[resource.ResourceClaim, ...] | Refused:
        """What must be found at once: the pod's claims in order, then the one for extended resources."""
        claims = tuple(one.view for one in self._ask.pending)
        devices = self.devices(delegation)
        if isinstance(devices, Refused):
            return devices
        if devices is None or self._ask.earlier is not None:
            return claims
        return (*claims, in_memory(self._pod.view, devices))

    def claims_in_users_words(self, delegation: Delegation) -> tuple[resource.ResourceClaim, ...] | Refused:
        """The same as people know it: who wrote `example.com/gpu: 1` has never heard of a claim."""
        claims = self.claims(delegation)
        if isinstance(claims, Refused) or not delegation or self._ask.earlier is not None:
            return claims
        return (*claims[:-1], in_users_words(claims[-1], self._ask.extended))

    def anonymous(self, error: str) -> str:
        """What is wrong, in words that hold for every pod of the signature: their claims have other names."""
        for claim in self._ask.pending:
            error = error.replace(f"claim {claim.key}", "a claim of the pod")
        before = f"claim {self._pod.key.namespace}/{IN_MEMORY_NAME}"
        for request, words in in_words(self._ask.extended).items():
            error = error.replace(f"{before}, request {request}:", f"request {words}:")
        return error.replace(before, "the extended resources")

    def _read(self, delegation: Delegation) -> Demand | Refused:
        claims = self.claims(delegation)
        if isinstance(claims, Refused):
            return claims
        return read_demand(claims, self._snapshot.classes, self._snapshot.features)


class DeviceCheck:
    def __init__(
        self,
        ask: DeviceAsk,
        asked: Asked,
        snapshot: Snapshot,
        policy: Policy,
        budget: int,
    ) -> None:
        self._ask = ask
        self.asked = asked
        self._snapshot = snapshot
        self._policy = policy
        self._budget = budget
        self._outlines: dict[Delegation, Outlines | Rejection | None] = {}
        self.found: dict[str, Outline] = {}
        """How the nodes that passed would serve the claims, by node name; read by the ratings."""
        self.missed: dict[str, Outline] = {}
        """How near the nodes come that have not what it takes, by node name; read by what is told."""
        self._plans: OrderedDict[str, Plan] = OrderedDict()

    def __call__(self, node: NodeInfo) -> Rejection | None:
        delegation = self.asked.delegation(node)
        if isinstance(delegation, Lacking):
            return Rejection(NAME, str(delegation))
        if not self.asked.is_served(delegation):
            return NOT_AS_ASKED
        outlines = self._of(delegation)
        if outlines is None or isinstance(outlines, Rejection):
            return outlines
        outline, plan = outlines.look(node.place)
        self._keep(node.name, plan)
        if outline is None:
            return UNDECIDED
        if isinstance(outline, Refused):
            return Rejection(NAME, self.asked.anonymous(outline.cause))
        if not outline.fits:
            self.missed[node.name] = outline
            return NO_FIT
        self.found[node.name] = outline
        return None

    def answer(self, node: NodeInfo, delegation: Delegation) -> Answer:
        """The full answer for a node that has just been looked at.

        What was worked out then still holds: had anything moved since, the board had looked again.
        """
        plan = self._plans.get(node.name)
        if plan is not None:
            return plan
        outlines = self._of(delegation)
        if isinstance(outlines, Outlines):
            return outlines.plan(node.place)
        demand = self.asked.demand(delegation)
        snapshot = self._snapshot
        return allocate(node.place, snapshot.inventory, snapshot.ledger, demand, self._policy, self._budget)

    def _keep(self, name: str, plan: Plan | None) -> None:
        self._plans.pop(name, None)
        if plan is not None:
            self._plans[name] = plan
            if len(self._plans) > PLANS_MAX:
                self._plans.popitem(last=False)

    def _of(self, delegation: Delegation) -> Outlines | Rejection | None:
        if delegation not in self._outlines:
            self._outlines[delegation] = self._made(delegation)
        return self._outlines[delegation]

    def _made(self, delegation: Delegation) -> Outlines | Rejection | None:
        if not self._ask.pending and (not delegation or self._ask.earlier is not None):
            return None  # device plugins serve all of it, or an earlier attempt has what it takes
        demand = self.asked.demand(delegation)
        if isinstance(demand, Refused):
            return Rejection(NAME, self.asked.anonymous(demand.error))
        snapshot = self._snapshot
        return Outlines(snapshot.inventory, snapshot.ledger, demand, self._policy, self._budget)
