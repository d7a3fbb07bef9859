"""What a driver of numeric parameters (KEP-4381) has on a node, told to its agent: a stream of whole states.

The service stands beside those of `dra` or `classic` on the driver's socket, and its name among the supported
versions of the registration. For authors in other languages the contract is `proto/capacity/capacity.proto`.
"""

from typing import Annotated, Final

from .channel import Streaming
from .message import Message


class Instance(Message, frozen=True):
    """One discrete resource."""

    id: Annotated[str, 1] = ""  # no other instance of the driver on the node has it
    api_version: Annotated[str, 2] = ""  # of the type in `data`
    kind: Annotated[str, 3] = ""
    data: Annotated[bytes, 4] = b""  # a JSON object, which the agent does not interpret


class NodeWatchCapacityRequest(Message, frozen=True):
    pass


class NodeWatchCapacityResponse(Message, frozen=True):
    """All that the driver has; what an earlier message said is over."""

    instances: Annotated[tuple[Instance, ...], 1] = ()


VERSION: Final = "v1alpha1.DRACapacity"
WATCH: Final = Streaming(VERSION, "NodeWatchCapacity", NodeWatchCapacityRequest, NodeWatchCapacityResponse)
