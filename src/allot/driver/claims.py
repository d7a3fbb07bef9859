"""A claim as the author of a driver sees it: this driver's devices, with what was asked of each. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from allot.api import Object, resource
from allot.wire import cdi

from .configs import BadConfig, Config, decoded
from .devices import Attribute

Edits = cdi.ContainerEdits
DeviceNode = cdi.DeviceNode
Hook = cdi.Hook
Mount = cdi.Mount
_NOTHING = Edits()


@dataclass(frozen=True, slots=True)
class Allocated:
    """One device that a claim has."""

    request: str  # "gpu", or "gpu/big" where the claim gave alternatives
    pool: str
    device: str
    share_id: str | None = None  # one of several shares of the device
    admin_access: bool = False
    consumed: Mapping[str, str] = field(default_factory=dict, hash=False)  # capacity, by name
    configs: tuple[Config, ...] = field(default=(), hash=False)  # the class's before the claim's own


@dataclass(frozen=True, slots=True)
class Claim:
    driver: str
    namespace: str
    name: str
    uid: str
    devices: tuple[Allocated, ...]
    pod_claim: str = ""  # of one that was made for a pod: what the pod calls it

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class DeviceStatus:
    """What the claim's status shows of a device: `status.devices`."""

    conditions: tuple[Mapping[str, Any], ...] = ()
    data: Mapping[str, Any] | None = None
    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""

    def fields(self) -> dict[str, Any]:
        network = {
            "interfaceName": self.interface_name,
            "ips": [*self.ips],
            "hardwareAddress": self.hardware_address,
        }
        parts = {
            "conditions": [*self.conditions],
            "data": self.data,
            "networkData": {name: value for name, value in network.items() if value},
        }
        return {name: part for name, part in parts.items() if part}


@dataclass(frozen=True, slots=True)
class Ready:
    """What a container gets with a device: edits of ours, or CDI devices that are there already."""

    edits: Edits = _NOTHING
    cdi_devices: tuple[str, ...] = ()
    status: DeviceStatus | None = None
    attributes: Mapping[str, Attribute] | None = None  # what programs may read of it in a file (KEP-5304)


Given = Mapping[Allocated, Edits | Ready]
"""What `prepare` answers. A device that is not named needs nothing."""


class NotUsable(Exception):
    """The claim cannot be prepared as it is. The message says why."""


def read(claim: Object, uid: str, driver: str, configs: Iterable[type[Config]]) -> Claim:
    """Raises NotUsable."""
    name = f"{claim.namespace}/{claim.name}"
    if claim.uid != uid:
        raise NotUsable(f"claim {name} has the uid {claim.uid} and not {uid}: it was made anew")
    allocation = claim.view(resource.ResourceClaim).status.allocation
    if allocation is None:
        raise NotUsable(f"claim {name} is not allocated")
    results = [one for one in allocation.devices.results if one.driver == driver]
    if not results:
        raise NotUsable(f"claim {name} has no device of {driver}")
    classes = tuple(configs)
    try:
        devices = tuple(
            Allocated(
                one.request,
                one.pool,
                one.device,
                one.share_id,
                bool(one.admin_access),
                one.consumed_capacity,
                tuple(_configs(allocation.devices.config, one.request, driver, classes)),
            )
            for one in results
        )
    except BadConfig as wrong:
        raise NotUsable(f"claim {name}: {wrong}") from None
    made_for = (claim.metadata.annotations or {}).get(resource.limits.POD_CLAIM_NAME_ANNOTATION, "")
    return Claim(driver, claim.namespace, claim.name, claim.uid, devices, made_for)


def _configs(
    given: Iterable[resource.DeviceAllocationConfiguration],
    request: str,
    driver: str,
    classes: tuple[type[Config], ...],
) -> Iterator[Config]:
    for at, one in enumerate(given):
        if one.opaque is None or one.opaque.driver != driver:
            continue
        if one.requests and request not in one.requests and request.partition("/")[0] not in one.requests:
            continue
        try:
            yield decoded(one.opaque.parameters, classes)
        except BadConfig as wrong:
            source = "its class" if one.source == "FromClass" else "the claim"
            where = f"config[{at}].opaque.parameters"
            raise BadConfig(f"{where} for request {request!r}, from {source}: {wrong}") from None
