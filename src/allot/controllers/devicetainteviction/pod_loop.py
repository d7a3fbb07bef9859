"""Deletes pods when their time has come."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from allot.allocation import DeviceId
from allot.api import Object, errors, resource
from allot.informers import NORMAL, Again, Index, Informer, Key

from ..controller import World
from ..workloads import disrupt, later
from . import plan
from .agenda import Agenda
from .plan import Cause, Eviction, Source
from .pools import Pools, evicting
from .views import (
    RULE_INDEX,
    claim_names,
    claim_of,
    evicting_selection,
    pod_of,
    rule_of,
    selects,
    slice_of,
    spellings,
)

REASON, EVENT = "DeletionByDeviceTaintManager", "DeviceTaintManagerEviction"

CACHE_BEHIND_S = 30.0
"""The server says otherwise than the cache, which will hear of it. This is for what no watch tells."""

_LATENCY_S = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0)


class PodLoop:
    def __init__(
        self,
        world: World,
        pods: Informer,
        claims: Informer,
        rules: Informer | None,  # None: rules do not count
        pools: Pools,
        agenda: Agenda,
        progressed: Callable[[str], None],  # hears of rules that have come further
    ) -> None:
        self._world = world
        self._pods, self._claims = pods, claims
        self._rules: Index | None = (
            rules.cache.index(RULE_INDEX, evicting_selection) if rules is not None else None
        )
        self._pools = pools
        self._agenda = agenda
        self._progressed = progressed
        self._gone: set[str] = set()  # uids: told to go, and the cache may not show it yet
        self._write_pods = world.client.resource("", "v1", "pods")
        self._ask_claims = world.client.of(resource.RESOURCE_CLAIM)
        self._ask = {
            "rule": world.client.of(resource.DEVICE_TAINT_RULE),
            "slice": world.client.of(resource.RESOURCE_SLICE),
        }
        self._deletions = world.metrics.counter(
            "device_taint_eviction_controller_pod_deletions_total", "Pods deleted for taints of devices."
        )
        self._latency = world.metrics.histogram(
            "device_taint_eviction_controller_pod_deletion_duration_seconds",
            "From the moment when a pod had to leave to its deletion.",
            bounds=_LATENCY_S,
        )

    def look(self, key: Key) -> Eviction | None:
        """When the pod must leave, as the caches have it; noted in the agenda."""
        pod = self._pods.cache.get(key.name, key.namespace)
        found = None
        if pod is not None and pod.uid not in self._gone:
            found = plan.eviction(pod_of(pod), tuple(self._claims_of(pod)), self._taints)
        self._tell(self._agenda.put(key, found))
        return found

    def ended(self, pod: Object) -> None:
        self._gone.discard(pod.uid)

    async def reconcile(self, key: Key) -> Again | None:
        eviction = self.look(key)
        pod = self._pods.cache.get(key.name, key.namespace)
        if eviction is None or pod is None:
            return None
        left_s = (eviction.due - self._world.clock.now()).total_seconds()
        if left_s > 0:
            return later(left_s)
        if not await self._is_confirmed(pod, eviction.causes[0]):
            return Again(CACHE_BEHIND_S)
        await self._evict(pod, eviction)
        return None

    # -- looking --------------------------------------------------------------------------------

    def _claims_of(self, pod: Object) -> Iterator[resource.ResourceClaim]:
        for name in claim_names(pod_of(pod)):
            claim = self._claims.cache.get(name, pod.namespace)
            if claim is not None:
                yield claim_of(claim)

    def _taints(self, device: DeviceId) -> Iterator[tuple[Source, resource.DeviceTaint]]:
        for slice, taint in self._pools.taints(device):
            yield Source("slice", slice), taint
        if self._rules is None:
            return
        for spelled in spellings(device):
            for rule in self._rules[spelled]:
                yield Source("rule", rule.name), rule_of(rule).spec.taint

    def _tell(self, rules: Iterable[str]) -> None:
        for rule in rules:
            self._progressed(rule)

    # -- acting ---------------------------------------------------------------------------------

    async def _is_confirmed(self, pod: Object, cause: Cause) -> bool:
        """Is it so for the server too: the device is still the pod's, and still tainted?"""
        try:
            claim = claim_of(await self._ask_claims.get(cause.claim, pod.namespace))
            source = await self._ask[cause.source.kind].get(cause.source.name)
        except errors.NotFound:
            return False
        live = plan.eviction(pod_of(pod), (claim,), lambda device: _taints_by(source, cause.source, device))
        return live is not None and live.due <= self._world.clock.now()

    async def _evict(self, pod: Object, eviction: Eviction) -> None:
        why = str(eviction.causes[0])
        self._world.events.record(pod, NORMAL, EVENT, f"Deleting the pod: {why}")
        clock = self._world.clock
        if not await disrupt(self._write_pods, pod, clock, REASON, why):
            return
        now: datetime = clock.now()
        self._gone.add(pod.uid)
        self._deletions.add()
        self._latency.observe(max(0.0, (now - eviction.due).total_seconds()))
        self._tell(self._agenda.evicted(Key.of(pod), now))


def _taints_by(
    object: Object, source: Source, device: DeviceId
) -> Iterator[tuple[Source, resource.DeviceTaint]]:
    """The taints that one rule or slice puts on a device."""
    if source.kind == "rule":
        rule = rule_of(object)
        if selects(rule, device):
            yield source, rule.spec.taint
        return
    spec = slice_of(object).spec
    if (spec.driver, spec.pool.name) == device.pool_id:
        for one in spec.devices:
            if one.name == device.name:
                yield from ((source, taint) for taint in evicting(one))
