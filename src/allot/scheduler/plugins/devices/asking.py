"""What a pod wants of devices: for its claims that have none, and for its extended resources."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import msgspec

from ...claim import ClaimInfo
from ...extended import NOTHING, Asked, read_asked
from ...pod import PodInfo
from ...snapshot import Snapshot
from ..claims import PodClaims


@dataclass(frozen=True, slots=True)
class DeviceAsk:
    pending: tuple[ClaimInfo, ...] = ()
    extended: Asked = NOTHING
    earlier: ClaimInfo | None = None  # it has devices for the extended resources since an earlier attempt

    @property
    def wants_devices(self) -> bool:
        return bool(self.pending or self.extended.names)

    @property
    def signature(self) -> Hashable:
        """Pods of one template have claims of different names and the same specs."""
        earlier = (self.earlier,) if self.earlier is not None else ()
        specs = tuple(msgspec.json.encode(one.view.spec) for one in (*earlier, *self.pending))
        return bool(earlier), specs, self.extended

    @property
    def names(self) -> Iterator[str]:
        """The classes that it is about, and the extended resources behind which there are some."""
        for claim in self.pending:
            for request in claim.view.spec.devices.requests:
                for one in (request.exactly, *request.first_available):
                    if one is not None:
                        yield one.device_class_name
        yield from self.extended.names


NO_DEVICES = DeviceAsk()


def read_ask(pod: PodInfo, claims: PodClaims, snapshot: Snapshot) -> DeviceAsk:
    asked = read_asked(pod.spec, lambda name: snapshot.extended.class_for(name) is not None)
    if asked.names and not any(snapshot.extended.class_for(name) for name in asked.names):
        asked = NOTHING
    if not claims.pending and not asked.names and claims.earlier is None:
        return NO_DEVICES
    return DeviceAsk(claims.pending, asked, claims.earlier)
