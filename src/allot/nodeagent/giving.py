"""Which devices each container of a pod gets. Pure.

A container names claims of its pod, whole or one request of them; what stands for its extended
resources is named by the pod's status. It gets those devices and no others (N4).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

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
        for asked in _asked(pod, container)
        if asked.claim in by_name
        for device in _devices(by_name[asked.claim], asked.request)
    ]
    return tuple(dict.fromkeys(found))


def cdi_ids(devices: Iterable[Given]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for _, device in devices for one in device.cdi_ids))


def used(pod: core.Pod, container: Container) -> frozenset[str]:
    """The names of the claims that a container has something of."""
    return frozenset(asked.claim for asked in _asked(pod, container))


def by_ask(
    pod: core.Pod, container: Container, entries: Iterable[Entry]
) -> Sequence[tuple[str, tuple[Given, ...]]]:
    """What the container asks for, as a pod's status calls it, and the devices that it gets for that."""
    by_name = {entry.claim.name: entry for entry in entries}
    found: dict[str, list[Given]] = {}
    for asked in _asked(pod, container):
        if asked.claim in by_name:
            found.setdefault(asked.shown, []).extend(_devices(by_name[asked.claim], asked.request))
    return [(name, tuple(dict.fromkeys(devices))) for name, devices in found.items()]


def _claim_names(pod: core.Pod) -> Mapping[str, str]:
    return {use.entry: use.name for use in podclaims.used(pod) if use.entry}


class _Asked(NamedTuple):
    claim: str
    request: str  # "": all of them
    shown: str  # in a pod's status


def _asked(pod: core.Pod, container: Container) -> Iterator[_Asked]:
    names = _claim_names(pod)
    for use in container.resources.claims:
        if names.get(use.name):
            which = f"{use.name}/{use.request}" if use.request else use.name
            yield _Asked(names[use.name], use.request, f"claim:{which}")
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        for one in extended.request_mappings:
            if one.container_name == container.name:
                claim, request = extended.resource_claim_name, one.request_name
                yield _Asked(claim, request, f"claim:{claim}/{request}")


def _devices(entry: Entry, request: str) -> Iterator[Given]:
    for driver, part in entry.parts.items():
        for device in part.devices:
            if not request or not device.requests or request in device.requests:
                yield driver, device
