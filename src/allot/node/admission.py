"""Who fits on a node: what its pods ask for together, and who is refused. Pure.

A scheduler puts on a node what it believes to be free there. Two of them may believe it of the
same cpu, or of the same device that a plugin counts, and a person who writes `nodeName` asks
nobody. The node is the first to see all of its pods, so it has the last word, as a kubelet has.

What it promises
    ADMIT1  Who is counted stays so until it has ended: room that is given is not taken back.
    ADMIT2  Who is admitted fits beside everybody who is counted, in all that it asks for.
    ADMIT3  What is used is the sum over those who are counted. A pod costs the names in its
            requests, however many others there are.

What a claim stands behind is not counted here: no device is in two claims (D1). Nor is what compute resources
serve (KEP-14): which of them was recorded, and the record is checked where their devices are known.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from allot.api import Quantity, compute, core, podresources

Amounts = podresources.Amounts

PODS = "pods"
_FIRST = (PODS, "cpu", "memory", "ephemeral-storage")  # named before others, as a kubelet does
_NOTHING = Quantity.of(0)


@dataclass(frozen=True, slots=True)
class Refusal:
    """In the words of a kubelet, which other programs look for."""

    resource: str
    requested: Quantity
    used: Quantity
    capacity: Quantity

    @property
    def reason(self) -> str:
        return f"OutOf{self.resource}"

    @property
    def message(self) -> str:
        return f"Pod was rejected: {self.shortage}"

    @property
    def shortage(self) -> str:
        requested, used, capacity = map(self._number, (self.requested, self.used, self.capacity))
        return (
            f"Node didn't have enough resource: {self.resource}, "
            f"requested: {requested}, used: {used}, capacity: {capacity}"
        )

    def _number(self, amount: Quantity) -> int:
        return amount.milli() if self.resource == "cpu" else amount.as_int()


class Admission:
    def __init__(self) -> None:
        self._counted: dict[str, dict[str, Amounts]] = {}  # node -> pod -> what it asks for
        self._used: dict[str, Amounts] = {}  # node -> their sum

    def count(self, pod: core.Pod, offered: Mapping[str, str]) -> None:
        """The pod is there, whether it fits or not: it ran before this process began."""
        if not self._is_counted(pod):
            self._add(pod, needs(pod, podresources.parse(offered)))

    def admit(self, pod: core.Pod, offered: Mapping[str, str]) -> Refusal | None:
        """Count the pod, if it fits (ADMIT2). `offered` is what the node has for pods.

        A node that says nothing about itself takes everybody.
        """
        if self._is_counted(pod):
            return None  # ADMIT1
        capacity = podresources.parse(offered)
        wanted = needs(pod, capacity)
        used = self._used.get(pod.spec.node_name, {})
        refusal = _lacking(used, wanted, capacity) if capacity else None
        if refusal is None:
            self._add(pod, wanted)
        return refusal

    def would_fit(self, pod: core.Pod, offered: Mapping[str, str], leaving: Iterable[core.Pod]) -> bool:
        """Whether there is room for the pod once those who are `leaving` have left. Nobody is counted."""
        node, capacity = pod.spec.node_name, podresources.parse(offered)
        counted, used = self._counted.get(node, {}), self._used.get(node, {})
        for one in leaving:
            used = _without(used, counted.get(one.metadata.uid, {}))
        return _lacking(used, needs(pod, capacity), capacity) is None

    def release(self, pod: core.Pod) -> None:
        """The pod has ended, or is gone."""
        node = pod.spec.node_name
        counted = self._counted.get(node, {})
        wanted = counted.pop(pod.metadata.uid, None)
        if not counted:
            self.forget(node)
        elif wanted is not None:
            self._used[node] = _without(self._used[node], wanted)

    def forget(self, node: str) -> None:
        """The node is gone, or empty."""
        self._counted.pop(node, None)
        self._used.pop(node, None)

    def used(self, node: str) -> Amounts:
        """ADMIT3. What somebody asked for once may be there with nothing."""
        return dict(self._used.get(node, {}))

    def _is_counted(self, pod: core.Pod) -> bool:
        return pod.metadata.uid in self._counted.get(pod.spec.node_name, {})

    def _add(self, pod: core.Pod, wanted: Amounts) -> None:
        node = pod.spec.node_name
        self._counted.setdefault(node, {})[pod.metadata.uid] = wanted
        self._used[node] = podresources.added(self._used.get(node, {}), wanted)


def _without(used: Amounts, left: Amounts) -> Amounts:
    return podresources.added(used, {name: -amount for name, amount in left.items()})


def _lacking(used: Amounts, wanted: Amounts, capacity: Amounts) -> Refusal | None:
    """The first resource of which there is not enough."""
    for name in (*_FIRST, *sorted(wanted.keys() - set(_FIRST))):
        there, taken = capacity.get(name, _NOTHING), used.get(name, _NOTHING)
        if name in wanted and wanted[name] > there - taken:
            return Refusal(name, wanted[name], taken, there)
    return None


def needs(pod: core.Pod, capacity: Amounts) -> Amounts:
    """What a pod takes of a node with that capacity: itself, and what no claim gives it.

    Where the node counts a resource by itself its device plugin serves the pod, also if an
    attempt at another node left a claim's name behind.
    """
    records = compute.records.given(pod)
    recorded = {name for record in records.values() for name in record}
    wanted = {
        name: amount
        for name, amount in podresources.requests(pod.spec).items()
        if amount and name not in recorded and not compute.class_of(name)
    }
    extended = pod.status.extended_resource_claim_status
    for one in extended.request_mappings if extended is not None else ():
        if not capacity.get(one.resource_name):
            wanted.pop(one.resource_name, None)
    wanted = podresources.added(wanted, _in_groups(pod, records)) if records else wanted
    return {**wanted, PODS: Quantity.of(1)}


def _in_groups(pod: core.Pod, records: Mapping[str, compute.records.Given]) -> Amounts:
    """What the groups that a pod asks for have of the node's own, beside devices (KEP-14)."""

    def milli(container: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for one in (entry for entries in records.get(container, {}).values() for entry in entries):
            if one.amount:
                found[one.resource_name] = (
                    found.get(one.resource_name, 0) + Quantity.parse(one.amount).milli()
                )
        return found

    most = compute.records.peak(
        [(milli(one.name), one.is_sidecar) for one in pod.spec.init_containers],
        [milli(one.name) for one in pod.spec.containers],
    )
    return {name: Quantity.parse(f"{amount}m") for name, amount in most.items()}
