"""Which devices each container of a pod gets. Pure.

A container names claims of its pod, whole or one request of them; what stands for its extended
resources is named by the pod's status. It gets those devices and no others (N4).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from allot.api import core, podclaims

from .told import Device, Entry
from .views import Container

Given = tuple[str, Device]
"""A driver, and a device of it."""


def given(pod: core.Pod, container: Container, entries: Iterable[Entry]) -> tuple[Given, ...]:
    """In the order in which the container asks, each device once."""
    by_name = {entry.claim.name: entry for entry in entries}
    found = [
        device
        for claim, request in _asked(pod, container)
        if claim in by_name
        for device in _devices(by_name[claim], request)
    ]
    return tuple(dict.fromkeys(found))


def cdi_ids(devices: Iterable[Given]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for _, device in devices for one in device.cdi_ids))


def claims_used(pod: core.Pod, container: Container) -> Sequence[tuple[str, str]]:
    """The claims of its pod that a container names itself: their entry in the pod and the claim's name."""
    names = _claim_names(pod)
    return [(use.name, names[use.name]) for use in container.resources.claims if names.get(use.name)]


def _claim_names(pod: core.Pod) -> Mapping[str, str]:
    return {use.entry: use.name for use in podclaims.used(pod) if use.entry}


def _asked(pod: core.Pod, container: Container) -> Iterator[tuple[str, str]]:
    """Claims, and one of their requests or "" for all of them."""
    names = _claim_names(pod)
    for use in container.resources.claims:
        if names.get(use.name):
            yield names[use.name], use.request
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        for one in extended.request_mappings:
            if one.container_name == container.name:
                yield extended.resource_claim_name, one.request_name


def _devices(entry: Entry, request: str) -> Iterator[Given]:
    for driver, part in entry.parts.items():
        for device in part.devices:
            if not request or not device.requests or request in device.requests:
                yield driver, device
