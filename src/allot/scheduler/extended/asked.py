"""What the containers of a pod ask for under extended names, read once.

It is the pod's signature as far as extended resources go: pods made from one template have
the same, whatever they are called.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from allot.api import Quantity, core, podresources


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


def read_asked(spec: core.PodSpec) -> Asked:
    """What a pod asks for; amounts of zero ask for nothing."""
    found = []
    for index, container in enumerate((*spec.init_containers, *spec.containers)):
        wishes = tuple(_wishes(container.resources.requests))
        if wishes:
            is_long_lived = index >= len(spec.init_containers) or container.is_sidecar
            found.append(Asking(container.name, index, is_long_lived, wishes))
    if not found:
        return NOTHING
    return Asked(tuple(found), tuple(sorted({wish.resource for one in found for wish in one.wishes})))


def _wishes(requests: Mapping[str, str]) -> Iterator[Wish]:
    if not any("/" in name for name in requests):
        return  # most containers
    for index, name in enumerate(sorted(requests)):
        if "/" in name and podresources.is_extended_resource(name):
            amount = Quantity.parse(requests[name])
            if amount:
                yield Wish(name, index, amount)
