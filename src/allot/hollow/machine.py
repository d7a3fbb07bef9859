"""A machine that is not there: containers are times, devices are names.

Thousands of nodes share one of these, and nothing in it runs by itself: a pod is looked at when it
changed, and when its next state is due. What it remembers of a pod can be made up again from the
pod's status.
"""

from collections.abc import Callable, Iterable, Sequence

from allot.api import Object, age, core, podclaims
from allot.base import Clock
from allot.informers import Change, Deleted
from allot.node import ClaimRef, Devices, Found, Observed

from . import views
from .addresses import Addresses
from .life import Life, advanced, recalled, stopped
from .settings import Wishes


class HollowMachine:
    def __init__(
        self,
        clock: Clock,
        wishes: Callable[[core.Pod], Wishes],
        pods_on: Callable[[str], Iterable[Object]] = lambda node: (),
        network_of: Callable[[str], str] = lambda node: "",
    ) -> None:
        """`pods_on` are the pods of a node that may have run before this process began."""
        self._clock = clock
        self._wishes = wishes
        self._pods_on = pods_on
        self._network_of = network_of
        self._lives: dict[str, dict[str, Life]] = {}  # node -> uid
        self._addresses = Addresses()

    # -- what a machine does --------------------------------------------------------------------

    async def standing(self, node: str) -> Sequence[Found]:
        return [self._recall(node, pod) for pod in self._pods_on(node) if _runs(pod)]

    async def prepare(self, node: str, pod: Object, claims: Sequence[Object]) -> Devices:
        self._life(node, pod.uid)
        return {claim.uid: () for claim in claims}

    async def run(self, node: str, pod: Object, devices: Devices) -> Observed:
        view, life = pod.view(core.Pod), self._life(node, pod.uid)
        life = advanced(life, view, self._wishes(view), self._clock.monotonic_s(), self._now)
        return self._remember(node, view, life)

    async def stop(self, node: str, pod: Object, grace_s: float) -> Observed:
        view, life = pod.view(core.Pod), self._life(node, pod.uid)
        life = stopped(life, self._wishes(view), grace_s, self._clock.monotonic_s(), self._now)
        return self._remember(node, view, life)

    async def unprepare(self, node: str, pod: Object, claims: Sequence[ClaimRef]) -> None:
        """There is nothing to give back."""

    async def remove(self, node: str, pod_uid: str) -> None:
        lives = self._lives.get(node, {})
        lives.pop(pod_uid, None)
        if not lives:
            self._lives.pop(node, None)
        self._addresses.give_back(node, pod_uid)

    def changed(self, hear: Callable[[str], None]) -> None:
        """Nothing changes but at a moment that was named before."""

    # -- what it is made of ---------------------------------------------------------------------

    def on_node(self, change: Change) -> None:
        if isinstance(change, Deleted):
            self.lose(change.object.name)

    def lose(self, node: str) -> None:
        """Whatever ran there runs no more."""
        self._lives.pop(node, None)
        self._addresses.forget(node)

    def _life(self, node: str, uid: str) -> Life:
        lives = self._lives.setdefault(node, {})
        if uid not in lives:
            lives[uid] = Life(self._clock.monotonic_s())
        return lives[uid]

    def _remember(self, node: str, pod: core.Pod, life: Life) -> Observed:
        observed = life.observed
        uid = pod.metadata.uid
        if observed.runs and not observed.addresses and not pod.spec.host_network:
            address = self._addresses.take(node, self._network_of(node), uid)
            life = Life(life.since_s, life.told_s, observed._replace(addresses=(address,) if address else ()))
        self._lives[node][uid] = life
        return life.observed

    def _recall(self, node: str, pod: Object) -> Found:
        view = pod.view(core.Pod)
        ago_s = self._since(view.status.start_time)
        life = recalled(view, pod.view(views.Pod).status, self._clock.monotonic_s() - ago_s)
        self._lives.setdefault(node, {})[pod.uid] = life
        self._addresses.keep(node, pod.uid, view.status.pod_ip)
        devices: Devices | None = {} if podclaims.names(view) else None
        return Found(pod, (), devices, life.observed, reported=life.observed)

    def _now(self) -> str:
        return age.timestamp(self._clock.now())

    def _since(self, moment: str) -> float:
        began = age.moment(moment)
        return max(0.0, (self._clock.now() - began).total_seconds()) if began is not None else 0.0


def _runs(pod: Object) -> bool:
    return pod.view(core.Pod).status.phase == "Running"
