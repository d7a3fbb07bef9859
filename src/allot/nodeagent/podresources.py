"""What monitoring agents ask a node: which container has which devices. Pure but for `handlers`' callbacks.

Containers and sidecars are listed, other init containers are not. Each claim of a container is listed with
all its devices, and each device with its own CDI names; each device of a device plugin stands for itself,
with the NUMA nodes that it is near to. Who asks too often is told so, as by a kubelet.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from allot.api import Object, core
from allot.base import Clock
from allot.wire import CallFailed, Code, Handler, podresources

from .deviceplugins import Device, Loan
from .giving import used
from .life import is_sidecar
from .told import Entry
from .views import Container, Pod

SOCKET = "pod-resources/kubelet.sock"


class Standing(NamedTuple):
    pod: Object
    entries: tuple[Entry, ...]
    loans: tuple[Loan, ...] = ()


class Allowance:
    """So many calls at one moment, and so many a second in the long run. Handed the time."""

    def __init__(self, at_once: int = 10, per_s: float = 100.0) -> None:
        self._at_once, self._per_s = at_once, per_s
        self._left, self._as_of_s = float(at_once), 0.0

    def take(self, now_s: float) -> bool:
        """Whether one more call is allowed now; then it counts."""
        grown = self._left + self._per_s * (now_s - self._as_of_s)
        self._left, self._as_of_s = min(grown, float(self._at_once)), now_s
        if self._left < 1:
            return False
        self._left -= 1
        return True


def handlers(
    standing: Callable[[], Iterable[Standing]],
    offered: Callable[[], Mapping[str, Sequence[Device]]],
    clock: Clock,
) -> list[Handler]:
    """`offered` are the devices of device plugins that can be had, by resource."""
    allowance = Allowance()

    async def list_all(asked: podresources.ListPodResourcesRequest) -> podresources.ListPodResourcesResponse:
        return podresources.ListPodResourcesResponse(tuple(map(shown, standing())))

    async def list_old(
        asked: podresources.ListPodResourcesRequest,
    ) -> podresources.OldListPodResourcesResponse:
        return podresources.as_v1alpha1(await list_all(asked))

    async def get(asked: podresources.GetPodResourcesRequest) -> podresources.GetPodResourcesResponse:
        for one in standing():
            if (one.pod.name, one.pod.namespace) == (asked.pod_name, asked.pod_namespace):
                return podresources.GetPodResourcesResponse(shown(one))
        name = f"{asked.pod_namespace}/{asked.pod_name}"
        raise CallFailed(Code.NOT_FOUND, f"pod {name} is not on this node")

    async def allocatable(
        asked: podresources.AllocatableResourcesRequest,
    ) -> podresources.AllocatableResourcesResponse:
        return podresources.AllocatableResourcesResponse(
            tuple(_device(name, one.id, one.numa) for name, every in offered().items() for one in every)
        )

    return [
        _within(allowance, clock, handler)
        for handler in (
            podresources.LIST.by(list_all),
            podresources.LIST_V1ALPHA1.by(list_old),
            podresources.GET.by(get),
            podresources.GET_ALLOCATABLE.by(allocatable),
        )
    ]


def _within(allowance: Allowance, clock: Clock, handler: Handler) -> Handler:
    answer = handler.answer
    assert answer is not None

    async def within(data: bytes) -> bytes:
        if not allowance.take(clock.monotonic_s()):
            raise CallFailed(Code.RESOURCE_EXHAUSTED, "rejected by rate limit")
        return await answer(data)

    return Handler(handler.path, answer=within)


def shown(standing: Standing) -> podresources.PodResources:
    spec = standing.pod.view(Pod).spec
    containers = (*filter(is_sidecar, spec.init_containers), *spec.containers)
    return podresources.PodResources(
        standing.pod.name,
        standing.pod.namespace,
        tuple(_container(standing, one) for one in containers),
    )


def _container(standing: Standing, container: Container) -> podresources.ContainerResources:
    names = used(standing.pod.view(core.Pod), container)
    entries = (entry for entry in standing.entries if entry.claim.name in names)
    devices = (
        _device(loan.resource, one.id, one.numa)
        for loan in standing.loans
        if loan.container == container.name
        for one in loan.devices
    )
    return podresources.ContainerResources(
        container.name, tuple(devices), dynamic_resources=tuple(map(_claim, entries))
    )


def _device(resource: str, id: str, numa: Iterable[int]) -> podresources.ContainerDevices:
    nodes = tuple(map(podresources.NumaNode, numa))
    near = podresources.TopologyInfo(nodes) if nodes else None
    return podresources.ContainerDevices(resource, (id,), near)


def _claim(entry: Entry) -> podresources.DynamicResource:
    devices = tuple(
        podresources.ClaimResource(
            tuple(map(podresources.CdiDevice, device.cdi_ids)),
            driver,
            device.pool,
            device.name,
            device.share_id or None,
        )
        for driver, part in entry.parts.items()
        for device in part.devices
    )
    return podresources.DynamicResource(entry.claim.name, entry.claim.namespace, devices)
