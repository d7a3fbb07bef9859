"""The kit for drivers: declare devices, write `prepare` and `unprepare`; the rest is done here.

    assembly       Driver, and everything put together; read this first
    devices        pools and devices as values
    claims         a claim as the author sees it, and what `prepare` answers
    configs        opaque configuration, decoded into the author's classes
    plugin         prepare and unprepare as a kubelet asks for them: repeated, crashed, together
    state          what was prepared, on disk
    injecting      CDI specs for what was prepared
    publishing     which slices the API should show; publish_loop keeps it so
    status_loop    `status.devices` of claims
    health         the health of devices, to every kubelet that listens
    places         where sockets and files lie; registering: how a kubelet finds the driver
    main           a driver as a program

What it promises
    * Prepare and unprepare may be repeated, in any order and after any crash, with the effect of
      once (N3, N5): STATE1 to STATE4, KIT1 to KIT3.
    * What the API shows of the driver's devices is what the driver declared, whoever changes it.
    * A second instance takes over without a call being lost.
"""

from .assembly import Driver, Node, Running, Surroundings, running, variable
from .claims import Allocated, Claim, DeviceNode, DeviceStatus, Edits, Given, Mount, NotUsable, Ready
from .configs import BadConfig, Config
from .devices import BadPools, Capacity, Device, Pool, Taint, Version
from .health import DeviceHealth
from .main import arguments, run
from .places import Places
from .state import BadState, Entry, Held

__all__ = [
    "Allocated",
    "BadConfig",
    "BadPools",
    "BadState",
    "Capacity",
    "Claim",
    "Config",
    "Device",
    "DeviceHealth",
    "DeviceNode",
    "DeviceStatus",
    "Driver",
    "Edits",
    "Entry",
    "Given",
    "Held",
    "Mount",
    "Node",
    "NotUsable",
    "Places",
    "Pool",
    "Ready",
    "Running",
    "Surroundings",
    "Taint",
    "Version",
    "arguments",
    "run",
    "running",
    "variable",
]
