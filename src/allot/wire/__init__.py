"""What agents, drivers and monitors of one machine say to each other, and an autoscaler and its provider.

    message        messages as frozen values, and their protobuf bytes
    channel        the port: methods, calls, sockets, and how they fail; read this first
    unixsocket     gRPC on unix sockets: what kubelets and drivers in any language speak
    remote         the same to another machine, with TLS; overgrpc: what both have in common
    local          from task to task in one process, with faults: for simulators and tests

    registration   how a plugin makes itself known to a kubelet
    dra            prepare and unprepare claims: v1 and v1beta1
    classic        prepare and unprepare one classic claim, by its handle: KEP-3063
    health         health of devices, as a stream: v1 and v1alpha1
    capacity       what a driver of numeric parameters has, as a stream: KEP-4381
    podresources   which container has which devices: v1, and v1alpha1's list
    deviceplugin   device plugins: v1beta1
    cri            container runtimes: the CRI, v1
    cloudprovider  who has nodes to give: the cluster autoscaler's external provider

    cdi            files that say what a container gets with a device

Contracts are Kubernetes' own, written from their names and field numbers, but for `capacity`, which is ours.
Import the modules:
`from allot.wire import dra`.
"""

from . import (
    capacity,
    cdi,
    classic,
    cloudprovider,
    cri,
    deviceplugin,
    dra,
    health,
    podresources,
    registration,
    remote,
)
from .channel import CallFailed, Channel, Code, Handler, Server, Sockets, Streaming, Unary
from .local import Fault, Faults, LocalProcess, LocalSockets
from .message import Malformed, Message
from .unixsocket import ADDRESS_BYTES_MAX, UnixSockets

__all__ = [
    "ADDRESS_BYTES_MAX",
    "CallFailed",
    "Channel",
    "Code",
    "Fault",
    "Faults",
    "Handler",
    "LocalProcess",
    "LocalSockets",
    "Malformed",
    "Message",
    "Server",
    "Sockets",
    "Streaming",
    "Unary",
    "UnixSockets",
    "capacity",
    "cdi",
    "classic",
    "cloudprovider",
    "cri",
    "deviceplugin",
    "dra",
    "health",
    "podresources",
    "registration",
    "remote",
]
