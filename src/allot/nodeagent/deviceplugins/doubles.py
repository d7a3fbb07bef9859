"""Devices that a plugin and a DRA driver both offer on one node (KEP-5004 forbids that). Pure.

Nobody could keep such a device from being handed out twice, once by its count and once by its name: it can
only be found and told. A plugin says nothing of a device but its id, so it is taken for one of a slice when

    * an attribute that tells one device from all others (a UUID, a serial number, an address) is its id, or
    * the device is called so, and driver and resource belong to one domain, as `gpu.example.com` and
      `example.com/gpu` do.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from allot.api import Object, resource

_IDENTITIES: Final = frozenset({"uuid", "serial", "serialnumber", "pcibusid", "pciaddress"})


class Double(NamedTuple):
    resource: str
    id: str
    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return (
            f"device {self.id} of the device plugin for {self.resource} is device {self.device} in pool "
            f"{self.pool} of DRA driver {self.driver}"
        )


def doubles(offered: Mapping[str, Iterable[str]], slices: Iterable[Object]) -> tuple[Double, ...]:
    """`offered` are the ids of devices by resource, `slices` those of the same node."""
    ids = {(name, id.lower()): id for name, own in offered.items() for id in own}
    found = set()
    for one in slices:
        spec = one.view(resource.ResourceSlice).spec
        for device in spec.devices:
            identities = _identities(device)
            for name in offered:
                known = identities | ({device.name} if _is_one_domain(name, spec.driver) else frozenset())
                for id in known:
                    if (name, id.lower()) in ids:
                        which = ids[name, id.lower()]
                        found.add(Double(name, which, spec.driver, spec.pool.name, device.name))
    return tuple(sorted(found))


def _identities(device: resource.Device) -> frozenset[str]:
    return frozenset(
        value.string
        for name, value in device.attributes.items()
        if value.string and name.rpartition("/")[2].lower() in _IDENTITIES
    )


def _is_one_domain(name: str, driver: str) -> bool:
    domain = name.partition("/")[0]
    return domain == driver or driver.endswith(f".{domain}") or domain.endswith(f".{driver}")
