"""How a plugin makes itself known to a kubelet.

The plugin serves this at a socket in the kubelet's registration directory. The kubelet asks who is
there, dials the endpoint that it is told, and says what came of it.
"""

from typing import Annotated, Final

from .channel import Unary
from .message import Message

DRA_PLUGIN: Final = "DRAPlugin"
DEVICE_PLUGIN: Final = "DevicePlugin"


class InfoRequest(Message, frozen=True):
    pass


class PluginInfo(Message, frozen=True):
    type: Annotated[str, 1] = ""
    name: Annotated[str, 2] = ""
    endpoint: Annotated[str, 3] = ""  # where its service listens; empty: at this socket
    supported_versions: Annotated[tuple[str, ...], 4] = ()


class RegistrationStatus(Message, frozen=True):
    plugin_registered: Annotated[bool, 1] = False
    error: Annotated[str, 2] = ""


class RegistrationStatusResponse(Message, frozen=True):
    pass


SERVICE: Final = "pluginregistration.Registration"
GET_INFO: Final = Unary(SERVICE, "GetInfo", InfoRequest, PluginInfo)
NOTIFY: Final = Unary(SERVICE, "NotifyRegistrationStatus", RegistrationStatus, RegistrationStatusResponse)
