"""A node as the scheduler reads it, with what its pods take of it.

A value: whoever places a pod gets another one. What a pod takes is counted from the
moment the scheduler decides, not from the moment the server hears of it.
"""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from allot import allocation
from allot.api import Object, compute, core

from .amounts import Amounts, less, measured, plus
from .compute import Offer
from .pod import PodInfo

NO_PODS: Mapping[str, PodInfo] = {}
Listed = compute.listed.Entries


class NodeInfo(msgspec.Struct, frozen=True, eq=False, gc=False):
    name: str
    place: allocation.Node  # as far as devices care
    taints: tuple[core.Taint, ...]
    unschedulable: bool
    allocatable: Amounts
    used: Amounts
    pods: Mapping[str, PodInfo]  # by uid
    counted: Amounts  # what the Node says itself: amounts,
    said: tuple[Offer, ...] = ()  # and compute resources
    compute: tuple[Offer, ...] = ()

    @classmethod
    def of(cls, object: Object, listed: Listed = ()) -> "NodeInfo":
        """`listed` is what is said of its compute resources beside it."""
        view = object.view(core.Node)
        counted, said = measured(view.status.allocatable), Offer.all_of(view.status.compute_resources)
        place = allocation.Node(object.name, view.metadata.labels, frozenset(view.status.declared_features))
        info = cls(
            name=object.name,
            place=place,
            taints=view.spec.taints,
            unschedulable=view.spec.unschedulable,
            allocatable=_offered(counted, said),
            used={},
            pods=NO_PODS,
            counted=counted,
            said=said,
            compute=said,
        )
        return info.listing(listed) if listed else info

    def listing(self, listed: Listed) -> "NodeInfo":
        """The node once this is said beside it (LISTED1, LISTED2)."""
        if self.said:
            return self
        counted = [name for name, amount in self.counted.items() if amount]
        offers = Offer.all_of(compute.listed.uncounted(listed, counted))
        return replace(self, compute=offers, allocatable=_offered(self.counted, offers))

    @property
    def labels(self) -> Mapping[str, str]:
        return self.place.labels

    def like(self, other: "NodeInfo") -> bool:
        """Whether scheduling could not tell them apart, pods aside. Heartbeats change nothing here."""
        return (
            self.place == other.place
            and self.taints == other.taints
            and self.unschedulable == other.unschedulable
            and self.allocatable == other.allocatable
            and self.compute == other.compute
        )

    def with_pods_of(self, other: "NodeInfo") -> "NodeInfo":
        return replace(self, used=other.used, pods=other.pods)

    def with_pod(self, pod: PodInfo) -> "NodeInfo":
        before = self.pods.get(pod.uid)
        used = less(self.used, before.requests) if before is not None else self.used
        return replace(self, used=plus(used, pod.requests), pods={**self.pods, pod.uid: pod})

    def without_pod(self, uid: str) -> "NodeInfo":
        pod = self.pods.get(uid)
        if pod is None:
            return self
        rest = {other: info for other, info in self.pods.items() if other != uid}
        return replace(self, used=less(self.used, pod.requests), pods=rest)


def _offered(allocatable: Amounts, compute: tuple[Offer, ...]) -> Amounts:
    """What device plugins export with properties they offer all the same, under their raw names: DRA does not
    serve it there (KEP-5004), and no more than that can be had."""
    if not compute:
        return allocatable
    offered = dict(allocatable)
    for one in compute:
        offered[one.raw] = offered.get(one.raw, 0) + one.count
    return offered
