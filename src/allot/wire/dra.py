"""What a kubelet asks a DRA driver: make the devices of these claims ready, and let go of them again.

Two versions have the same messages, but for the share ids that v1beta1 does not know. So a driver
has one pair of functions and serves both (`served`), and a kubelet calls through `prepare` and
`unprepare`, which leave out what the version has not.

The names in a registration (`v1.DRAPlugin`) are not those on the wire
(`k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin`).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import field
from msgspec.structs import replace

from .channel import Channel, Handler, Unary
from .message import Message


class Claim(Message, frozen=True):
    namespace: Annotated[str, 1] = ""
    uid: Annotated[str, 2] = ""
    name: Annotated[str, 3] = ""


class Device(Message, frozen=True):
    request_names: Annotated[tuple[str, ...], 1] = ()  # empty: for every request of the claim
    pool_name: Annotated[str, 2] = ""
    device_name: Annotated[str, 3] = ""
    cdi_device_ids: Annotated[tuple[str, ...], 4] = ()
    share_id: Annotated[str | None, 5] = None  # not in v1beta1


class NodePrepareResourcesRequest(Message, frozen=True):
    claims: Annotated[tuple[Claim, ...], 1] = ()


class NodePrepareResourceResponse(Message, frozen=True):
    devices: Annotated[tuple[Device, ...], 1] = ()
    error: Annotated[str, 2] = ""  # not empty: this claim is not ready


class NodePrepareResourcesResponse(Message, frozen=True):
    claims: Annotated[dict[str, NodePrepareResourceResponse], 1] = field(default_factory=dict)  # by uid


class NodeUnprepareResourcesRequest(Message, frozen=True):
    claims: Annotated[tuple[Claim, ...], 1] = ()


class NodeUnprepareResourceResponse(Message, frozen=True):
    error: Annotated[str, 1] = ""


class NodeUnprepareResourcesResponse(Message, frozen=True):
    claims: Annotated[dict[str, NodeUnprepareResourceResponse], 1] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Version:
    name: str  # as a registration says it
    service: str
    has_shares: bool

    @property
    def prepare(self) -> Unary[NodePrepareResourcesRequest, NodePrepareResourcesResponse]:
        return Unary(
            self.service, "NodePrepareResources", NodePrepareResourcesRequest, NodePrepareResourcesResponse
        )

    @property
    def unprepare(self) -> Unary[NodeUnprepareResourcesRequest, NodeUnprepareResourcesResponse]:
        return Unary(
            self.service,
            "NodeUnprepareResources",
            NodeUnprepareResourcesRequest,
            NodeUnprepareResourcesResponse,
        )


V1: Final = Version("v1.DRAPlugin", "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin", has_shares=True)
V1BETA1: Final = Version(
    "v1beta1.DRAPlugin", "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin", has_shares=False
)
VERSIONS: Final = (V1, V1BETA1)

Prepare = Callable[[NodePrepareResourcesRequest], Awaitable[NodePrepareResourcesResponse]]
Unprepare = Callable[[NodeUnprepareResourcesRequest], Awaitable[NodeUnprepareResourcesResponse]]


def served(
    prepare: Prepare, unprepare: Unprepare, versions: Sequence[Version] = VERSIONS
) -> tuple[Handler, ...]:
    """The two functions, in every version that is named."""

    def in_version(version: Version) -> Prepare:
        async def prepare_in_version(request: NodePrepareResourcesRequest) -> NodePrepareResourcesResponse:
            return _as_known_to(version, await prepare(request))

        return prepare_in_version

    return tuple(
        handler
        for version in versions
        for handler in (version.prepare.by(in_version(version)), version.unprepare.by(unprepare))
    )


async def prepare(
    channel: Channel, version: Version, claims: Sequence[Claim], *, timeout_s: float
) -> dict[str, NodePrepareResourceResponse]:
    """What the driver answered, by claim uid. Raises CallFailed."""
    request = NodePrepareResourcesRequest(tuple(claims))
    answer = await channel.call(version.prepare, request, timeout_s=timeout_s)
    return _as_known_to(version, answer).claims


async def unprepare(
    channel: Channel, version: Version, claims: Sequence[Claim], *, timeout_s: float
) -> dict[str, NodeUnprepareResourceResponse]:
    request = NodeUnprepareResourcesRequest(tuple(claims))
    return (await channel.call(version.unprepare, request, timeout_s=timeout_s)).claims


def _as_known_to(version: Version, answer: NodePrepareResourcesResponse) -> NodePrepareResourcesResponse:
    if version.has_shares:
        return answer
    return NodePrepareResourcesResponse(
        {
            uid: replace(one, devices=tuple(replace(device, share_id=None) for device in one.devices))
            for uid, one in answer.claims.items()
        }
    )
