"""What is about to change: who is on the way out, whose room it will be, who is not to be disturbed.

Where it sits
    Part of the snapshot. `intake` tells it what the server said, preemption tells it what
    was decided; preemption asks it, so that nobody is evicted for room that is coming anyway.

Why pods that are gone are remembered
    A pod leaves a moment before its claims give their devices back. Whoever looks in between
    must not take the devices for held, or it would evict a second pod for the room of the first.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from allot.api import age, core
from allot.informers import Key

from .pod import PodInfo

LEFT_MAX = 4096
PATIENCE = timedelta(seconds=60)
"""How long a pod may still take to end and be waited for, and how long it may be late."""

COUNTED_WITHIN = timedelta(seconds=5)
"""How long a pod that was told to go may be missing from the count of its disruption budgets."""

PREEMPTED = ("DisruptionTarget", "PreemptionByScheduler")
NOBODY: Mapping[str, PodInfo] = {}


class Prospects:
    def __init__(self) -> None:
        self.budgets: dict[Key, core.PodDisruptionBudget] = {}
        self._left: OrderedDict[str, None] = OrderedDict()  # pods that ended lately, by uid
        self._returning: OrderedDict[Key, None] = OrderedDict()  # claims that they used
        self._evicted: dict[str, datetime] = {}  # by us, when; until the pod has left
        self._charges: dict[str, tuple[PodInfo, datetime]] = {}  # the same pods; until budgets have heard
        self._nominees: dict[str, dict[str, PodInfo]] = {}  # by node
        self._nominations: dict[str, str] = {}  # node by pod uid

    # -- who goes -------------------------------------------------------------------------------

    def leave(self, uid: str, claims: Iterable[Key] = ()) -> None:
        """A pod has ended, or is gone; its claims are still to give their devices back."""
        self._evicted.pop(uid, None)
        self._left[uid] = None
        self._returning.update(dict.fromkeys(claims))
        for kept in (self._left, self._returning):
            while len(kept) > LEFT_MAX:
                kept.popitem(last=False)

    def returned(self, claim: Key) -> None:
        """A claim holds nothing any more, or is gone."""
        self._returning.pop(claim, None)

    @property
    def returning(self) -> Iterator[Key]:
        """Claims that somebody used who has left."""
        return iter(self._returning)

    def evict(self, pods: Collection[PodInfo], now: datetime) -> None:
        """It was decided that these pods go; the server will hear of it."""
        self._evicted = {uid: when for uid, when in self._evicted.items() if now - when <= PATIENCE}
        self._evicted.update((pod.uid, now) for pod in pods)
        self._charges.update((pod.uid, (pod, now)) for pod in pods)

    def spare(self, uids: Iterable[str]) -> None:
        """It was decided, and could not be done."""
        for uid in uids:
            self._evicted.pop(uid, None)
            self._charges.pop(uid, None)

    def charges(self, now: datetime) -> list[PodInfo]:
        """Pods that we told to go so lately that their budgets may still count them as healthy."""
        self._charges = {
            uid: charge for uid, charge in self._charges.items() if now - charge[1] <= COUNTED_WITHIN
        }
        return [pod for pod, _ in self._charges.values()]

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
        self.unnominate(pod.uid)
        self._nominations[pod.uid] = node
        self._nominees.setdefault(node, {})[pod.uid] = pod

    def unnominate(self, uid: str) -> str | None:
        """Where the pod was nominated until now."""
        node = self._nominations.pop(uid, None)
        if node is not None:
            nominees = self._nominees[node]
            del nominees[uid]
            if not nominees:
                del self._nominees[node]
        return node

    def nomination(self, uid: str) -> str | None:
        return self._nominations.get(uid)

    def nominees(self, node: str) -> Collection[PodInfo]:
        """Those who wait for room on a node, in the order in which they were nominated."""
        return self._nominees.get(node, NOBODY).values()


def _was_preempted(pod: PodInfo) -> bool:
    return any((one.type, one.reason) == PREEMPTED for one in pod.status.conditions)
