"""The kit for drivers: declare devices, write `prepare` and `unprepare`; the rest is done here.

    assembly       Driver, and everything put together; read this first
    devices        pools and devices as values
    claims         a claim as the author sees it, and what `prepare` answers
    configs        opaque configuration, decoded into the author's classes
    plugin         prepare and unprepare as a kubelet asks for them: repeated, crashed, together
    operations     what both kinds of calls have in common: to their end, alone, counted
    state          what was prepared, on disk; putting_away: when a machine ends its work in order
    injecting      CDI specs for what was prepared; metadata: what programs may read of it
    publishing     which slices the API should show; publish_loop keeps it so
    status_loop    `status.devices` of claims
    health         the health of devices, to every kubelet that listens
    places         where sockets and files lie; registering: how a kubelet finds the driver
    main           a driver as a program

For classic claims (KEP-3063) a driver has two halves, `controller` and a `NodePlugin`:

    controller     allocate, deallocate, unsuitable nodes; a package of its own
    node_plugin    NodePlugin, and everything put together; handed: prepare and unprepare by a handle
    deeds          how authors' functions are called

For numeric parameters (KEP-4381) a driver has one half, on the node, and no access to the API:

    numeric_driver NumericDriver, and everything put together; numeric: what it has, and what is reserved

For devices that are only counted (device plugins, v1beta1):

    device_plugin  DevicePlugin, and everything put together

What it promises
    * Prepare and unprepare may be repeated, in any order and after any crash, with the effect of
      once (N3, N5): STATE1 to STATE4, KIT1 to KIT3.
    * What the API shows of the driver's devices is what the driver declared, whoever changes it.
    * A second instance takes over without a call being lost.
"""

from . import controller, numeric
from .assembly import Driver, Node, Running, Surroundings, capitals, running, variable
from .claims import Allocated, Claim, DeviceNode, DeviceStatus, Edits, Given, Hook, Mount, NotUsable, Ready
from .configs import BadConfig, Config
from .device_plugin import Allotted, Choice, Counted, DevicePlugin, Plugged, plugged
from .devices import BadPools, Capacity, Device, Pool, Taint, Version
from .handed import Handed, UnknownResource
from .health import DeviceHealth
from .main import arguments, run
from .node_plugin import NodePlugin, Serving, serving
from .numeric import Instance, Reserved
from .numeric_driver import Ground, NumericDriver, Offering, offering
from .places import Places
from .putting_away import put_away
from .state import BadState, Entry, Held

__all__ = [
    "Allocated",
    "Allotted",
    "BadConfig",
    "BadPools",
    "BadState",
    "Capacity",
    "Choice",
    "Claim",
    "Config",
    "Counted",
    "Device",
    "DeviceHealth",
    "DeviceNode",
    "DevicePlugin",
    "DeviceStatus",
    "Driver",
    "Edits",
    "Entry",
    "Given",
    "Ground",
    "Handed",
    "Held",
    "Hook",
    "Instance",
    "Mount",
    "Node",
    "NodePlugin",
    "NotUsable",
    "NumericDriver",
    "Offering",
    "Places",
    "Plugged",
    "Pool",
    "Ready",
    "Reserved",
    "Running",
    "Serving",
    "Surroundings",
    "Taint",
    "UnknownResource",
    "Version",
    "arguments",
    "capitals",
    "controller",
    "numeric",
    "offering",
    "plugged",
    "put_away",
    "run",
    "running",
    "serving",
    "variable",
]
