"""What a kubelet asks a driver of classic claims (KEP-3063): one claim a call, known by its handle.

The driver registers as a `ResourcePlugin`. Before the first container of a pod starts, its kubelet has
each claim prepared; after the last pod that used it on the node has ended, unprepared. Both may be
repeated. What fails is a status other than OK; NOT_FOUND: the driver knows no such resource.
"""

from typing import Annotated, Final

from .channel import Unary
from .message import Message

RESOURCE_PLUGIN: Final = "ResourcePlugin"
VERSION: Final = "v1alpha1.Node"
SERVICE: Final = "v1alpha1.Node"


class NodePrepareResourceRequest(Message, frozen=True):
    namespace: Annotated[str, 1] = ""
    claim_uid: Annotated[str, 2] = ""
    claim_name: Annotated[str, 3] = ""
    resource_handle: Annotated[str, 4] = ""


class NodePrepareResourceResponse(Message, frozen=True):
    cdi_devices: Annotated[tuple[str, ...], 1] = ()  # fully qualified; none is fine


class NodeUnprepareResourceRequest(Message, frozen=True):
    namespace: Annotated[str, 1] = ""
    claim_uid: Annotated[str, 2] = ""
    claim_name: Annotated[str, 3] = ""
    cdi_devices: Annotated[tuple[str, ...], 4] = ()  # what prepare answered


class NodeUnprepareResourceResponse(Message, frozen=True):
    pass


PREPARE: Final = Unary(
    SERVICE, "NodePrepareResource", NodePrepareResourceRequest, NodePrepareResourceResponse
)
UNPREPARE: Final = Unary(
    SERVICE, "NodeUnprepareResource", NodeUnprepareResourceRequest, NodeUnprepareResourceResponse
)
