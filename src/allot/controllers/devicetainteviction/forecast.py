"""What a rule would do if its effect was NoExecute: counted, piece by piece. Pure.

It hears of slices and claims one at a time, so that whoever tells it may pause.
"""

from collections.abc import Callable, Iterator

import msgspec

from allot.allocation import DeviceId
from allot.api import core, resource
from allot.informers import Key

from . import plan
from .status import Prospect
from .views import NO_EXECUTE, device_of, results, selects, users


class Forecast:
    def __init__(self, rule: resource.DeviceTaintRule, pod: Callable[[Key], core.Pod | None]) -> None:
        self._rule = rule
        self._pod = pod
        self._source = plan.Source("rule", rule.metadata.name)
        self._taint = msgspec.structs.replace(rule.spec.taint, effect=NO_EXECUTE)
        self._published: set[DeviceId] = set()
        self._allocated: set[DeviceId] = set()
        self._pods: set[Key] = set()

    def see_slice(self, slice: resource.ResourceSlice) -> None:
        """One of the newest generation of its pool."""
        spec = slice.spec
        devices = (DeviceId(spec.driver, spec.pool.name, one.name) for one in spec.devices)
        self._published.update(one for one in devices if selects(self._rule, one))

    def see_claim(self, claim: resource.ResourceClaim) -> None:
        devices = (device_of(result) for result in results(claim))
        self._allocated.update(one for one in devices if selects(self._rule, one))
        for key in users(claim):
            pod = self._pod(key)
            if pod is not None and plan.eviction(pod, (claim,), self._taints) is not None:
                self._pods.add(key)

    def prospect(self) -> Prospect:
        namespaces = {pod.namespace for pod in self._pods}
        return Prospect(len(self._published), len(self._allocated), len(self._pods), len(namespaces))

    def _taints(self, device: DeviceId) -> Iterator[tuple[plan.Source, resource.DeviceTaint]]:
        if selects(self._rule, device):
            yield self._source, self._taint
