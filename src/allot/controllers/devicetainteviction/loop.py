"""From changes to pods and rules.

What a change touches is found through indexes, so a change of one pod, claim or slice
costs the same in a large cluster as in a small one.
"""

from collections.abc import Iterable, Sequence

from allot.allocation import DeviceId
from allot.api import Object
from allot.informers import Change, Deleted, Index, Informer, Key, Reconciler, ResourceId, Updated

from ..controller import Loop, World
from .agenda import Agenda
from .pod_loop import PodLoop
from .pools import Pools
from .rule_loop import STATUS_PERIOD_S, RuleLoop
from .views import CLAIM_INDEX, allocated_spellings, claim_names, claim_of, exactly, pod_of, slice_of, users

PODS = ResourceId("", "v1", "pods")
CLAIMS = ResourceId("resource.k8s.io", "v1", "resourceclaims")
SLICES = ResourceId("resource.k8s.io", "v1", "resourceslices", namespaced=False)
RULES = ResourceId("resource.k8s.io", "v1", "devicetaintrules", namespaced=False)
NEEDS = (PODS, CLAIMS, SLICES, RULES)

NAME = "device-taint-eviction-controller"
WORKERS = 8


def make(world: World, *, status_period_s: float = STATUS_PERIOD_S) -> Sequence[Loop]:
    if not world.gates["DRADeviceTaints"]:
        return []
    return Evictions(world, status_period_s).loops


class Evictions:
    """The two loops, and which key a change adds to them."""

    def __init__(self, world: World, status_period_s: float) -> None:
        self._pods, self._claims, slices = (world.informer(what) for what in (PODS, CLAIMS, SLICES))
        rules = world.informer(RULES) if world.gates["DRADeviceTaintRules"] else None
        self._pools, self._agenda = Pools(), Agenda()
        self._by_device: Index = self._claims.cache.index(CLAIM_INDEX, allocated_spellings)
        self._of_pods = PodLoop(
            world, self._pods, self._claims, rules, self._pools, self._agenda, self._progressed
        )
        self._pod_queue = Reconciler(
            NAME, self._of_pods.reconcile, world.clock, world.telemetry, workers=WORKERS
        )
        self.loops: list[Reconciler[Key] | Reconciler[str]] = [self._pod_queue]
        if rules is not None:
            self._follow_rules(world, slices, rules, status_period_s)
        world.on(slices, self._slice_changed)
        world.on(self._claims, self._claim_changed)
        world.on(self._pods, self._pod_changed)

    def _follow_rules(self, world: World, slices: Informer, rules: Informer, period_s: float) -> None:
        informers = self._pods, self._claims, slices, rules
        of_rules = RuleLoop(world, informers, self._pools, self._agenda, self._touch, period_s=period_s)
        self._rule_queue = Reconciler(
            f"{NAME}_rules", of_rules.reconcile, world.clock, world.telemetry, workers=WORKERS
        )
        self.loops.append(self._rule_queue)
        world.on(rules, lambda change: self._rule_queue.add(change.object.name))

    # -- from changes to keys -------------------------------------------------------------------

    def _pod_changed(self, change: Change) -> None:
        object, key = change.object, Key.of(change.object)
        if isinstance(change, Deleted):
            self._of_pods.ended(object)
        elif isinstance(change, Updated) and _concern(change.old) == _concern(object):
            return
        if claim_names(pod_of(object)) or key in self._agenda:
            self._pod_queue.add(key)

    def _claim_changed(self, change: Change) -> None:
        """A claim that is allocated, reserved or released concerns its pods, old and new."""
        if isinstance(change, Updated):
            if claim_of(change.old).status == claim_of(change.object).status:
                return
            self._look_at_users((change.old,))
        self._look_at_users((change.object,))

    def _slice_changed(self, change: Change) -> None:
        if isinstance(change, Deleted):
            self._devices_changed(self._pools.remove(change.object.name))
        else:
            self._devices_changed(self._pools.put(slice_of(change.object)))

    def _devices_changed(self, devices: Iterable[DeviceId]) -> None:
        for device in devices:
            self._look_at_users(self._by_device[exactly(device)])

    def _look_at_users(self, claims: Iterable[Object]) -> None:
        for claim in claims:
            for pod in users(claim_of(claim)):
                self._pod_queue.add(pod)

    # -- between the loops ----------------------------------------------------------------------

    def _touch(self, pod: Key) -> None:
        """At once into the agenda, so that a rule's first status knows of it; then to the loop."""
        self._of_pods.look(pod)
        self._pod_queue.add(pod)

    def _progressed(self, rule: str) -> None:
        self._rule_queue.add(rule)


def _concern(object: Object) -> object:
    """What of a pod can change whether it must leave."""
    pod = pod_of(object)
    return claim_names(pod), pod.spec.node_name, pod.is_finished, bool(pod.metadata.deletion_timestamp)
