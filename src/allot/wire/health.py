"""What a driver tells a kubelet about the health of its devices: a stream of whole reports.

Both versions have the same messages; only the service's name differs, and it is the name in the
registration too.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Final

from .channel import Handler, Streaming
from .message import Message

MESSAGE_LENGTH_MAX: Final = 1024
TIMEOUT_S: Final = 30
"""How long a report holds where it does not say."""


class Health(IntEnum):
    UNKNOWN = 0
    HEALTHY = 1
    UNHEALTHY = 2


class DeviceIdentifier(Message, frozen=True):
    pool_name: Annotated[str, 1] = ""
    device_name: Annotated[str, 2] = ""


class DeviceHealth(Message, frozen=True):
    device: Annotated[DeviceIdentifier | None, 1] = None
    health: Annotated[Health, 2] = Health.UNKNOWN
    last_updated_time: Annotated[int, 3] = 0  # seconds of Unix time
    health_check_timeout_seconds: Annotated[int, 4] = 0
    message: Annotated[str, 5] = ""


class NodeWatchResourcesRequest(Message, frozen=True):
    pass


class NodeWatchResourcesResponse(Message, frozen=True):
    devices: Annotated[tuple[DeviceHealth, ...], 1] = ()


@dataclass(frozen=True, slots=True)
class Version:
    name: str  # of the service, and in a registration

    @property
    def watch(self) -> Streaming[NodeWatchResourcesRequest, NodeWatchResourcesResponse]:
        return Streaming(
            self.name, "NodeWatchResources", NodeWatchResourcesRequest, NodeWatchResourcesResponse
        )


V1: Final = Version("v1.DRAResourceHealth")
V1ALPHA1: Final = Version("v1alpha1.DRAResourceHealth")
VERSIONS: Final = (V1, V1ALPHA1)

Watch = Callable[[NodeWatchResourcesRequest], AsyncIterator[NodeWatchResourcesResponse]]


def served(watch: Watch, versions: Sequence[Version] = VERSIONS) -> tuple[Handler, ...]:
    return tuple(version.watch.by(watch) for version in versions)


def bounded(message: str) -> str:
    """As long as a pod's status may show it."""
    if len(message) <= MESSAGE_LENGTH_MAX:
        return message
    return message[: MESSAGE_LENGTH_MAX - 3] + "..."
