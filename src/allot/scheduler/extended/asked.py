"""What the containers of a pod ask for under extended names, read once.

It is the pod's signature as far as extended resources go: pods made from one template have
the same, whatever they are called.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from allot.api import Quantity, compute, core, podresources

_NATIVE = frozenset({"cpu", "memory", "ephemeral-storage"})


@dataclass(frozen=True, slots=True)
class Wish:
    """How much of one resource a container asks for."""

    resource: str
    index: int  # among all that the container requests, sorted by name
    amount: Quantity


@dataclass(frozen=True, slots=True)
class Asking:
    """A container that asks for extended resources."""

    name: str
    index: int  # among init containers and containers, in this order
    is_long_lived: bool  # it runs beside those that come after it
    wishes: tuple[Wish, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    containers: tuple[Asking, ...] = ()
    names: tuple[str, ...] = ()  # of the resources, sorted

    def of(self, resource: str) -> Iterator[tuple[Asking, Wish]]:
        """Who asks for a resource, in the order of containers."""
        for container in self.containers:
            for wish in container.wishes:
                if wish.resource == resource:
                    yield container, wish


NOTHING = Asked()


Bridged = Callable[[str], bool]
"""Whether the name of a class of compute resources also stands for devices of a device class."""


def read_asked(spec: core.PodSpec, is_bridged: Bridged = lambda name: False) -> Asked:
    """What a pod asks for; amounts of zero ask for nothing."""
    found = []
    for index, container in enumerate((*spec.init_containers, *spec.containers)):
        wishes = tuple(_wishes(container.resources.requests, is_bridged))
        if wishes:
            is_long_lived = index >= len(spec.init_containers) or container.is_sidecar
            found.append(Asking(container.name, index, is_long_lived, wishes))
    if not found:
        return NOTHING
    return Asked(tuple(found), tuple(sorted({wish.resource for one in found for wish in one.wishes})))


def _wishes(requests: Mapping[str, str], is_bridged: Bridged) -> Iterator[Wish]:
    if not requests.keys() - _NATIVE:
        return  # most containers
    for index, name in enumerate(sorted(requests)):
        if is_bridged(name) if compute.class_of(name) else _is_extended(name):
            amount = Quantity.parse(requests[name])
            if amount:
                yield Wish(name, index, amount)


def _is_extended(name: str) -> bool:
    return "/" in name and podresources.is_extended_resource(name)
