"""The device requests that stand for a pod's extended resources, and which container gets which.

One request for each container and resource, called `container-<i>-request-<j>`: i counts init
containers and containers, j the sorted names of all that the container requests. Containers
that stay (ordinary ones and sidecars) have devices of their own. An init container that ends
before they start uses theirs first, and only what is still missing is asked for in addition.
Such init containers run one after the other, so one additional request, the largest, does
for all of them; it carries the name of the container that needs it most.

What it promises
    EXTREQ1  Every container is mapped to requests that hold at least what it asks for.
    EXTREQ2  No two containers that run at the same time are mapped to one request.
    EXTREQ3  The devices of all requests are as many as the pod needs at its peak, and no more.

A pod has one such claim and a claim holds so many devices at most, so a pod may ask for more
than DRA can ever give it; likewise for a part of a device. Both are answered with the reason,
worded to follow a count of nodes, as conditions say it.
A device plugin on another node may do better, so the refusal speaks for the delegation only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from allot.allocation import Refused
from allot.api import core, resource

from .asked import Asked, Asking, Wish
from .choice import Delegation

RESULTS_MAX = resource.limits.ALLOCATION_RESULTS_MAX


@dataclass(frozen=True, slots=True)
class DeviceRequests:
    """What the claim asks for, sorted by name, and whose it is."""

    requests: tuple[resource.DeviceRequest, ...]
    mappings: tuple[core.RequestMapping, ...]

    def written_mappings(self) -> tuple[Mapping[str, str], ...]:
        """As the pod's status writes them."""
        return tuple(
            {
                "containerName": one.container_name,
                "resourceName": one.resource_name,
                "requestName": one.request_name,
            }
            for one in self.mappings
        )


@lru_cache(maxsize=1024)
def device_requests(asked: Asked, delegation: Delegation) -> DeviceRequests | Refused:
    """The requests for what is delegated. Kept, because pods of one template ask the same."""
    requests: list[resource.DeviceRequest] = []
    mappings: list[core.RequestMapping] = []
    counts: dict[str, int] = {}
    for name, class_name in delegation.classes:
        broken = _broken(asked, name)
        if broken is not None:
            return Refused(broken, node_only=True)
        served = _serve([_Ask.of(container, wish) for container, wish in asked.of(name)])
        counts[name] = sum(served.counts.values())
        requests += [_request(request, class_name, count) for request, count in served.counts.items()]
        mappings += [
            core.RequestMapping(container_name=container, resource_name=name, request_name=request)
            for container, request in served.uses
        ]
    if sum(counts.values()) > RESULTS_MAX:
        return Refused(_too_many(counts), node_only=True)
    return DeviceRequests(tuple(sorted(requests, key=lambda one: one.name)), tuple(mappings))


def in_words(asked: Asked) -> dict[str, str]:
    """What people wrote, by the name of the request that stands for it."""
    return {
        _name(container, wish): f"{wish.resource} of container {container.name}"
        for container in asked.containers
        for wish in container.wishes
    }


def _name(container: Asking, wish: Wish) -> str:
    return f"container-{container.index}-request-{wish.index}"


def _broken(asked: Asked, name: str) -> str | None:
    """Explicit names are whole by validation; implicit ones may be asked for in parts."""
    for container, wish in asked.of(name):
        if not wish.amount.is_integer:
            served = f"{wish.amount} of {name} to container {container.name}"
            return f"node(s) cannot serve {served} by devices: they are given out whole"
    return None


def _too_many(counts: Mapping[str, int]) -> str:
    listed = ", ".join(f"{count} of {name}" for name, count in counts.items())
    return f"node(s) cannot serve {listed} by devices: one claim holds {RESULTS_MAX} at most"


def _request(name: str, class_name: str, count: int) -> resource.DeviceRequest:
    exactly = resource.ExactDeviceRequest(
        device_class_name=class_name, allocation_mode="ExactCount", count=count
    )
    return resource.DeviceRequest(name=name, exactly=exactly)


# -- one resource -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ask:
    """What one container asks of the resource."""

    container: str
    index: int
    is_long_lived: bool
    request: str  # the name of a request of its own
    count: int

    @classmethod
    def of(cls, container: Asking, wish: Wish) -> "_Ask":
        request, count = _name(container, wish), wish.amount.as_int()
        return cls(container.name, container.index, container.is_long_lived, request, count)


class _Served(NamedTuple):
    counts: Mapping[str, int]  # devices by request
    uses: Sequence[tuple[str, str]]  # container and request


def _serve(asks: Sequence[_Ask]) -> _Served:
    staying = [one for one in asks if one.is_long_lived]
    counts = {one.request: one.count for one in staying}
    uses = [(one.container, one.request) for one in staying]
    leaving = [(one, *_reused(one, staying)) for one in asks if not one.is_long_lived]
    most, _, additional = max(leaving, key=lambda one: one[2], default=(None, [], 0))
    if most is not None and additional:
        counts[most.request] = additional
    for one, reused, missing in leaving:
        uses += [(one.container, request) for request in reused]
        if missing and most is not None:
            uses.append((one.container, most.request))
    return _Served(counts, uses)


def _reused(ask: _Ask, staying: Sequence[_Ask]) -> tuple[list[str], int]:
    """The requests of later containers that an init container uses first, and what it still lacks."""
    requests: list[str] = []
    missing = ask.count
    for later in staying:
        if missing > 0 and later.index > ask.index:
            requests.append(later.request)
            missing -= later.count
    return requests, max(missing, 0)
