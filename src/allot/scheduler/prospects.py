"""What is about to change: who is on the way out, whose room it will be, who is not to be disturbed.

Where it sits
    Part of the snapshot. `mirror` tells it what the server said, preemption tells it what
    was decided; preemption asks it, so that nobody is evicted for room that is coming anyway.

Why pods that are gone are remembered
    A pod leaves a moment before its claims give their devices back. Whoever looks in between
    must not take the devices for held, or it would evict a second pod for the room of the first.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from allot.api import age, core
from allot.base import Overlay, Recent
from allot.informers import Key

from .pod import PodInfo

LEFT_MAX = 4096
PATIENCE = timedelta(seconds=60)
"""How long a pod may still take to end and be waited for, and how long it may be late."""

COUNTED_WITHIN = timedelta(seconds=5)
"""How long a pod that was told to go may be missing from the count of its disruption budgets."""

GOES_ON_WITHIN = timedelta(minutes=1)
"""A search that was left off longer ago begins anew."""

PREEMPTED = ("DisruptionTarget", "PreemptionByScheduler")
NOBODY: Mapping[str, PodInfo] = {}


@dataclass(frozen=True, slots=True)
class LeftOff:
    """A search for room for one pod that found nothing and has not seen all nodes yet."""

    at: str  # the node to look at next
    nodes: int  # that are still to be looked at
    when: datetime


@dataclass(frozen=True, slots=True)
class Known:
    """What no news tell: what was decided, and how far a search has come. Pods are named by uid."""

    nominated: Mapping[str, str]  # nodes
    evicted: Mapping[str, datetime]
    charged: Mapping[str, datetime]
    left_off: Mapping[str, LeftOff]
    looked_at: int


NOTHING_KNOWN = Known({}, {}, {}, {}, 0)


class Prospects:
    def __init__(self) -> None:
        self.budgets: Overlay[Key, core.PodDisruptionBudget] = Overlay()
        self._left: Recent[str] = Recent(LEFT_MAX)  # pods that ended lately, by uid
        self._returning: Recent[Key] = Recent(LEFT_MAX)  # claims that they used
        self._evicted: Overlay[str, datetime] = Overlay()  # by us, when; until the pod has left
        self._charges: Overlay[str, tuple[PodInfo, datetime]] = (
            Overlay()
        )  # the same; until budgets have heard
        self._nominees: Overlay[str, Mapping[str, PodInfo]] = Overlay()  # by node
        self._nominations: Overlay[str, str] = Overlay()  # node by pod uid
        self._left_off: dict[str, LeftOff] = {}  # by pod uid
        self.revision = 0  # of what is `known`, but for how many were looked at
        self.looked_at = 0
        """How many nodes were looked at for somebody to evict: where the next search begins."""

    def fork(self) -> "Prospects":
        """A copy that pays for its own changes only. Leave the parent alone while it is used."""
        child = Prospects.__new__(Prospects)
        child.budgets = self.budgets.fork()
        child._left = self._left.fork()
        child._returning = self._returning.fork()
        child._evicted = self._evicted.fork()
        child._charges = self._charges.fork()
        child._nominees = self._nominees.fork()
        child._nominations = self._nominations.fork()
        child._left_off = dict(self._left_off)
        child.revision, child.looked_at = self.revision, self.looked_at
        return child

    # -- who goes -------------------------------------------------------------------------------

    def leave(self, uid: str, claims: Iterable[Key] = ()) -> None:
        """A pod has ended, or is gone; its claims are still to give their devices back."""
        self.revision += 1
        self._evicted.drop(uid)
        self._left.add(uid)
        for claim in claims:
            self._returning.add(claim)

    def returned(self, claim: Key) -> None:
        """A claim holds nothing any more, or is gone."""
        self._returning.forget(claim)

    @property
    def returning(self) -> Iterator[Key]:
        """Claims that somebody used who has left."""
        return iter(self._returning)

    def evict(self, pods: Collection[PodInfo], now: datetime) -> None:
        """It was decided that these pods go; the server will hear of it."""
        self.revision += 1
        for uid in [uid for uid, when in self._evicted.items() if now - when > PATIENCE]:
            self._evicted.drop(uid)
        for uid in [uid for uid, (_, when) in self._charges.items() if now - when > COUNTED_WITHIN]:
            self._charges.drop(uid)
        for pod in pods:
            self._evicted.set(pod.uid, now)
            self._charges.set(pod.uid, (pod, now))

    def spare(self, uids: Iterable[str]) -> None:
        """It was decided, and could not be done."""
        self.revision += 1
        for uid in uids:
            self._evicted.drop(uid)
            self._charges.drop(uid)

    def charges(self, now: datetime) -> list[PodInfo]:
        """Pods that we told to go so lately that their budgets may still count them as healthy."""
        return [pod for _, (pod, when) in self._charges.items() if now - when <= COUNTED_WITHIN]

    def leave_off(self, uid: str, where: LeftOff) -> None:
        """The search for the pod's room goes on there."""
        self.revision += 1
        self._left_off[uid] = where

    def resumed(self, uid: str, now: datetime) -> LeftOff | None:
        """Where the search for this pod stopped, if that was a moment ago. It is asked about once."""
        self.revision += 1
        self._left_off = {
            one: left for one, left in self._left_off.items() if now - left.when <= GOES_ON_WITHIN
        }
        return self._left_off.pop(uid, None)

    def has_left(self, uid: str) -> bool:
        return uid in self._left

    def is_leaving(self, pod: PodInfo, now: datetime) -> bool:
        """Whether its room is worth waiting for: it ends soon, or ends because somebody needs the room."""
        decided = self._evicted.get(pod.uid)
        if decided is not None and now - decided <= PATIENCE:
            return True
        if not pod.is_deleting:
            return False
        end = age.moment(pod.view.metadata.deletion_timestamp) or now
        is_stuck = now > end + PATIENCE
        return not is_stuck and (end <= now + PATIENCE or _was_preempted(pod))

    # -- who comes ------------------------------------------------------------------------------

    def nominate(self, pod: PodInfo, node: str) -> None:
        """Room is made for the pod on a node, or was found to be coming."""
        self.revision += 1
        self.unnominate(pod.uid)
        self._nominations.set(pod.uid, node)
        self._nominees.set(node, {**(self._nominees.get(node) or NOBODY), pod.uid: pod})

    def unnominate(self, uid: str) -> str | None:
        """Where the pod was nominated until now."""
        self.revision += 1
        node = self._nominations.get(uid)
        if node is not None:
            self._nominations.drop(uid)
            rest = {one: pod for one, pod in (self._nominees.get(node) or NOBODY).items() if one != uid}
            self._nominees.set(node, rest) if rest else self._nominees.drop(node)
        return node

    def nomination(self, uid: str) -> str | None:
        return self._nominations.get(uid)

    def nominees(self, node: str) -> Collection[PodInfo]:
        """Those who wait for room on a node, in the order in which they were nominated."""
        return (self._nominees.get(node) or NOBODY).values()

    # -- for records ----------------------------------------------------------------------------

    @property
    def known(self) -> Known:
        return Known(
            dict(self._nominations.items()),
            dict(self._evicted.items()),
            {uid: when for uid, (_, when) in self._charges.items()},
            dict(self._left_off),
            self.looked_at,
        )

    def know(self, known: Known, pods: Mapping[str, PodInfo]) -> None:
        """All of it but the nominations, which move nodes (`Snapshot.nominate`). A pod that nobody has heard
        of is not charged for."""
        for uid in list(self._evicted):
            self._evicted.drop(uid)
        for uid in list(self._charges):
            self._charges.drop(uid)
        for uid, when in known.evicted.items():
            self._evicted.set(uid, when)
        for uid, when in known.charged.items():
            if uid in pods:
                self._charges.set(uid, (pods[uid], when))
        self._left_off = dict(known.left_off)
        self.looked_at = known.looked_at


def _was_preempted(pod: PodInfo) -> bool:
    return any((one.type, one.reason) == PREEMPTED for one in pod.status.conditions)
