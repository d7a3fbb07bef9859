"""What containers are made of.

contract   the port: what the agent asks of any runtime
process    processes of this machine, without images and without root
cri        containers of containerd, over its socket
choosing   which of them, by name
"""

from .choosing import attached
from .contract import (
    Addresses,
    Attempt,
    CannotStart,
    ContainerSpec,
    Executed,
    Limits,
    Login,
    Mount,
    Profile,
    Report,
    Runtime,
    SandboxSpec,
    Streams,
    Usage,
    unheard,
)
from .cri import CriRuntime, UnfitRuntime
from .process import ProcessRuntime

__all__ = [
    "Addresses",
    "Attempt",
    "CannotStart",
    "ContainerSpec",
    "CriRuntime",
    "Executed",
    "Limits",
    "Login",
    "Mount",
    "ProcessRuntime",
    "Profile",
    "Report",
    "Runtime",
    "SandboxSpec",
    "Streams",
    "UnfitRuntime",
    "Usage",
    "attached",
    "unheard",
]
