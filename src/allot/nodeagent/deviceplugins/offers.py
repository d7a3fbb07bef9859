"""What device plugins offer: the devices of each resource, how they are, whether the plugin is there. Pure.

                 first list                       its stream ends
    unknown ──────────────► there: all count ◄──────────────────────► gone: none can be had
                                                 it is heard again           │ GRACE_S
                                                                             ▼
                                                              given up: counted as zero, and known

What it promises
    OFFER1  Of several plugins that registered for a resource the last one is heard; what the others still say
            changes nothing.
    OFFER2  Only what is healthy, of a plugin that is there, can be had; what is listed counts as capacity
            until its plugin has been gone for the grace.
    OFFER3  A resource that was offered once is counted for ever, with zero at the end: so a scheduler knows
            that the node has none of it, which is not the same as never having said.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from allot.wire import deviceplugin

GRACE_S: Final = 300.0
"""How long the devices of a plugin that is gone count as capacity: it is started again, as a rule."""
HEALTHY, UNHEALTHY, UNKNOWN = "Healthy", "Unhealthy", "Unknown"


Properties = tuple[tuple[str, str], ...]
"""What a device is like, in order of name."""


class Device(NamedTuple):
    id: str
    numa: tuple[int, ...] = ()
    is_healthy: bool = True
    properties: Properties = ()


class Counted(NamedTuple):
    """What a node says of a resource."""

    capacity: int
    allocatable: int


@dataclass(frozen=True, slots=True)
class _Offer:
    turn: int = 0  # which registration of all it was
    devices: Mapping[str, Device] = field(default_factory=dict)
    gone_s: float | None = 0.0  # since when nobody is heard; None: the plugin is there


class Offers:
    def __init__(self, resources: Iterable[str] = (), now_s: float = 0.0, grace_s: float = GRACE_S) -> None:
        """`resources` were offered to an earlier process: their plugins are gone until they are heard."""
        self._grace_s = grace_s
        self._offers = {name: _Offer(gone_s=now_s) for name in resources}
        self._turns = 0

    @property
    def resources(self) -> tuple[str, ...]:
        return tuple(sorted(self._offers))

    def begin(self, resource: str, now_s: float) -> int:
        """A plugin has registered; the turn under which it is heard (OFFER1)."""
        self._turns += 1
        known = self._offers.get(resource, _Offer(gone_s=now_s))
        self._offers[resource] = replace(known, turn=self._turns)
        return self._turns

    def hear(self, resource: str, turn: int, listed: Iterable[deviceplugin.Device]) -> bool:
        """The plugin says what it has, all of it. Whether that is news."""
        known = self._offers.get(resource)
        if known is None or known.turn != turn:
            return False
        new = replace(known, devices={one.id: _read(one) for one in listed if one.id}, gone_s=None)
        self._offers[resource] = new
        return new != known

    def lose(self, resource: str, turn: int, now_s: float) -> bool:
        """The plugin is not heard any more. Whether that is news."""
        known = self._offers.get(resource)
        if known is None or known.turn != turn or known.gone_s is not None:
            return False
        self._offers[resource] = replace(known, gone_s=now_s)
        return True

    def give_up(self, now_s: float) -> None:
        """What has been gone for the grace is forgotten, but for its name (OFFER3)."""
        for name, offer in self._offers.items():
            if offer.devices and self._is_over(offer, now_s):
                self._offers[name] = replace(offer, devices={})

    def is_given_up(self, resource: str, now_s: float) -> bool:
        offer = self._offers.get(resource)
        return offer is None or self._is_over(offer, now_s)

    def has(self, resource: str) -> bool:
        return resource in self._offers

    def can_be_had(self, resource: str) -> frozenset[str]:
        """OFFER2."""
        offer = self._offers.get(resource)
        if offer is None or offer.gone_s is not None:
            return frozenset()
        return frozenset(one.id for one in offer.devices.values() if one.is_healthy)

    def device(self, resource: str, id: str) -> Device:
        """As it was last listed; one that is not listed any more has nothing but its name."""
        offer = self._offers.get(resource)
        return offer.devices.get(id, Device(id, (), False)) if offer is not None else Device(id, (), False)

    def health(self, resource: str, id: str) -> str:
        offer = self._offers.get(resource)
        if offer is None or offer.gone_s is not None:
            return UNKNOWN
        return HEALTHY if self.device(resource, id).is_healthy else UNHEALTHY

    def mark(self, resource: str) -> object:
        """Another one after each change of what is offered."""
        return self._offers.get(resource)

    def listed(self, resource: str) -> tuple[Device, ...]:
        """What counts as capacity (OFFER2), in order of name."""
        offer = self._offers.get(resource)
        return tuple(offer.devices[id] for id in sorted(offer.devices)) if offer is not None else ()

    def ids(self) -> Mapping[str, tuple[str, ...]]:
        """Of what plugins that are there have listed, healthy or not."""
        return {name: tuple(one.devices) for name, one in self._offers.items() if one.gone_s is None}

    def devices(self) -> Mapping[str, tuple[Device, ...]]:
        """What can be had, by resource (OFFER2)."""
        return {
            name: tuple(self.device(name, id) for id in sorted(self.can_be_had(name)))
            for name in self.resources
        }

    def counted(self) -> Mapping[str, Counted]:
        return {
            name: Counted(len(self._offers[name].devices), len(self.can_be_had(name)))
            for name in self.resources
        }

    def _is_over(self, offer: _Offer, now_s: float) -> bool:
        return offer.gone_s is not None and now_s - offer.gone_s >= self._grace_s


def _read(listed: deviceplugin.Device) -> Device:
    nodes = listed.topology.nodes if listed.topology is not None else ()
    is_healthy, properties = listed.health == deviceplugin.HEALTHY, tuple(sorted(listed.properties.items()))
    return Device(listed.id, tuple(one.id for one in nodes), is_healthy, properties)
