"""The driver of network interfaces. Pure, but for the port.

An interface that was named, or one end of a pair, is one device. A container that has it finds it in its
network namespace, with the addresses that the claim asks for; the machine has it again when the claim is
given back. It moves when the first container of the pod begins, and so only into pods that have a
network namespace of their own.
"""

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from allot.driver import (
    Allocated,
    Claim,
    Config,
    Device,
    DeviceStatus,
    Driver,
    Edits,
    Entry,
    Given,
    Hook,
    Node,
    NotUsable,
    Pool,
    Ready,
    capitals,
    variable,
)

DRIVER: Final = "net.allot.dev"
LOOK_S: Final = 2.0
"""Between two looks at which interfaces there are."""


class NetConfig(Config, frozen=True):
    addresses: tuple[str, ...] = ()  # 10.1.0.7/24
    host_addresses: tuple[str, ...] = ()  # of a pair: those of the machine's end


class Interface(NamedTuple):
    name: str
    mac: str
    mtu: int
    speed_mbps: int = 0  # 0: not known
    pci_bus_id: str = ""
    pcie_root: str = ""


class Interfaces(Protocol):
    """The port."""

    def found(self, names: Iterable[str]) -> tuple[Interface, ...]:
        """Those that the machine has now."""

    def hook(
        self,
        interface: str,
        claim: str,
        is_pair: bool,
        addresses: Iterable[str],
        host_addresses: Iterable[str] = (),
    ) -> Hook:
        """What moves the interface into a container, or makes it there."""

    def back(self, interface: str, claim: str, is_pair: bool) -> None:
        """From where it was moved to; nothing is done where it was not. Raises OSError."""

    def is_given(self, interface: str) -> bool:
        """A container may have it."""


class Offered(NamedTuple):
    """What a driver has."""

    interfaces: tuple[str, ...] = ()  # of the machine
    pairs: int = 0  # whose one end is made in the container


def driver(interfaces: Interfaces, offered: Offered) -> Driver:
    one = _Net(interfaces, offered)
    return Driver(DRIVER, one.follow, one.prepare, one.unprepare, configs=(NetConfig,))


class _Net:
    def __init__(self, interfaces: Interfaces, offered: Offered) -> None:
        self._interfaces = interfaces
        self._names = {_device_name(name): name for name in offered.interfaces}
        self._pairs = {f"pair-{at}": f"pair{at}" for at in range(offered.pairs)}
        self._known: dict[str, Interface] = {}

    async def follow(self, node: Node) -> AsyncIterator[Sequence[Pool]]:
        """What is in a container is not here, and is ours all the same."""
        told: Pool | None = None
        while True:
            found = await asyncio.to_thread(self._interfaces.found, tuple(self._names.values()))
            self._known |= {one.name: one for one in found}
            here = {one.name for one in found}
            ours = {
                device: self._known[name]
                for device, name in self._names.items()
                if name in here or (name in self._known and self._interfaces.is_given(name))
            }
            now = Pool(node.name, [*map(_pair, self._pairs), *(_device(*one) for one in ours.items())])
            if now != told:
                yield (now,)
                told = now
            await asyncio.sleep(LOOK_S)

    def prepare(self, claim: Claim) -> Given:
        return {one: self._given(claim, one) for one in claim.devices}

    def unprepare(self, entry: Entry) -> None:
        for held in entry.devices:
            name = self._name(held.device)
            if name:
                self._interfaces.back(name, entry.uid, held.device in self._pairs)

    def _given(self, claim: Claim, one: Allocated) -> Ready:
        name = self._name(one.device)
        if not name:
            known = ", ".join((*self._names, *self._pairs))
            raise NotUsable(f"claim {claim} has {one.device}, and this driver has {known}")
        addresses, host_addresses = _addresses(one, "addresses"), _addresses(one, "host_addresses")
        is_pair = one.device in self._pairs
        if host_addresses and not is_pair:
            raise NotUsable(
                f"NetConfig for {one.device}: hostAddresses are for pairs, and this is an interface"
            )
        hook = self._interfaces.hook(name, claim.uid, is_pair, addresses, host_addresses)
        known_as = self._known.get(name)
        return Ready(
            Edits(env=(variable(claim, one), f"NET_INTERFACE_{capitals(one.request)}={name}"), hooks=(hook,)),
            status=DeviceStatus(
                interface_name=name, ips=addresses, hardware_address=known_as.mac if known_as else ""
            ),
        )

    def _name(self, device: str) -> str:
        return self._names.get(device) or self._pairs.get(device, "")


def _addresses(one: Allocated, field: str) -> tuple[str, ...]:
    """Raises NotUsable."""
    configs = [config for config in one.configs if isinstance(config, NetConfig)]
    asked = [text for config in configs for text in getattr(config, field)]
    for text in asked:
        try:
            ipaddress.ip_interface(text)
        except ValueError:
            wanted = "an address with the length of its prefix, such as 10.1.0.7/24"
            raise NotUsable(f"NetConfig for {one.device}: {text!r} is not {wanted}") from None
    return tuple(dict.fromkeys(asked))


def _device(name: str, one: Interface) -> Device:
    about: dict[str, str | int] = {"type": "interface", "interface": one.name, "mac": one.mac, "mtu": one.mtu}
    if one.pci_bus_id:
        about["resource.kubernetes.io/pciBusID"] = one.pci_bus_id
    if one.pcie_root:
        about["resource.kubernetes.io/pcieRoot"] = one.pcie_root
    return Device(name, about, {"bandwidth": f"{one.speed_mbps}M"} if one.speed_mbps > 0 else {})


def _pair(name: str) -> Device:
    return Device(name, {"type": "pair"})


def _device_name(interface: str) -> str:
    """eth0.100 as the name of a device."""
    return "".join(c if c.isalnum() else "-" for c in interface.lower()).strip("-")
