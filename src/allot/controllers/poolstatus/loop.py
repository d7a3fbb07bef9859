"""Looks at pools, writes the answer, and deletes it when its time is up."""

from collections.abc import Sequence

from allot.api import Object, age, errors, resource
from allot.informers import Again, Change, Deleted, Key, Reconciler, ResourceId

from ..controller import Loop, World
from . import plan
from .plan import Answer, Delete, Keep, Request
from .survey import DeviceName, Pool, survey, taken_devices

GROUP = resource.limits.GROUP
REQUESTS = ResourceId(GROUP, "v1alpha3", "resourcepoolstatusrequests", namespaced=False)
SLICES = ResourceId(GROUP, "v1", "resourceslices", namespaced=False)
CLAIMS = ResourceId(GROUP, "v1", "resourceclaims")
RULES = ResourceId(GROUP, "v1", "devicetaintrules", namespaced=False)

LOOK_AGAIN_S = 1.0
"""Before the first look again at incomplete pools; each further wait is twice as long."""

_METRICS = "resourcepoolstatusrequest_controller"


def make(world: World) -> Sequence[Loop]:
    return [Answering(world).loop] if world.gates["DRAResourcePoolStatus"] else []


class Answering:
    def __init__(self, world: World) -> None:
        self._world = world
        self._requests, slices, claims, self._rules = map(world.informer, (REQUESTS, SLICES, CLAIMS, RULES))
        self._of_driver = slices.cache.index("driver", _driver)
        self._takers = claims.cache.index("devices", _devices)
        self._looks: dict[str, int] = {}  # by uid
        self._write = world.client.of(resource.RESOURCE_POOL_STATUS_REQUEST)
        counter, histogram = world.metrics.counter, world.metrics.histogram
        self._processed = counter(f"{_METRICS}_requests_processed_total", "Requests answered.")
        self._errors = counter(f"{_METRICS}_request_processing_errors_total", "Attempts that failed.")
        self._took = histogram(f"{_METRICS}_request_processing_duration_seconds", "Time for an answer.")
        self.loop: Reconciler[Key] = Reconciler(
            "resourcepoolstatusrequest", self.reconcile, world.clock, world.telemetry
        )
        world.on(self._requests, self._changed)

    def _changed(self, change: Change) -> None:
        if isinstance(change, Deleted):
            self._looks.pop(change.object.uid, None)
        else:
            self.loop.add(Key.of(change.object))

    async def reconcile(self, key: Key) -> Again | None:
        found = self._requests.cache.get(key.name)
        if found is None or found.metadata.deletion_timestamp is not None:
            return None
        try:
            return await self._advance(found, found.view(Request))
        except errors.NotFound:
            return None
        except errors.ApiError:
            self._errors.add(1)
            raise

    async def _advance(self, found: Object, request: Request) -> Again | None:
        match plan.step(request, self._world.clock.now()):
            case Keep(for_s):
                return Again(for_s)
            case Delete():
                await self._write.delete(found.name, uid=found.uid)
                return None
            case Answer(within_s):
                return await self._answer(found, request, within_s)

    async def _answer(self, found: Object, request: Request, within_s: float) -> Again | None:
        began_s = self._world.clock.monotonic_s()
        pools = plan.asked_for(request, self._survey(request.spec.driver))
        looks = self._looks.get(found.uid, 0)
        if any(one.problem for one in pools) and looks < plan.LOOKS:
            self._looks[found.uid] = looks + 1
            return Again(min(within_s, LOOK_AGAIN_S * 2.0**looks))
        status = plan.status(request, pools, age.timestamp(self._world.clock.now()))
        await self._write.update_status({**found.fields, "status": status})
        self._looks.pop(found.uid, None)
        self._processed.add(1)
        self._took.observe(self._world.clock.monotonic_s() - began_s)
        return None  # the answer will be heard of, and its end counted from it

    def _survey(self, driver: str) -> list[Pool]:
        slices = [one.view(resource.ResourceSlice) for one in self._of_driver[driver]]
        rules = [one.view(resource.DeviceTaintRule) for one in self._rules.cache]
        names: list[DeviceName] = [
            (driver, one.spec.pool.name, device.name) for one in slices for device in one.spec.devices
        ]
        return survey(slices, {name: None for name in names if _joined(name) in self._takers}, rules)


def _driver(object: Object) -> tuple[str, ...]:
    return (object.view(resource.ResourceSlice).spec.driver,)


def _devices(object: Object) -> tuple[str, ...]:
    return tuple(map(_joined, taken_devices(object.view(resource.ResourceClaim))))


def _joined(name: DeviceName) -> str:
    return "\n".join(name)
