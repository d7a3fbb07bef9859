"""The agent of a node: real containers, and devices that drivers prepare.

    told           what drivers were told of each claim: the rules, as values
    checkpoint     the same as a file; sealed: whether a file is whole; keeping keeps it
    preparing      tells the drivers, in the order that a crash cannot spoil; counting counts that
    classic        tells the plugins of classic drivers, one claim a call
    giving         which devices each container gets
    drivers        which drivers are there, and which instance of each is called
    registry_loop  follows the registration directory
    wiping         whose slices have to go
    capacity       what drivers of numeric parameters have, as the API shows it; capacity_loop publishes it
    health         how devices are, as their drivers say; health_loop listens
    deviceplugins  devices that are only counted, from device plugins
    podresources   which container has which devices, for monitoring agents
    life           what is to start and to end of a pod's containers
    starting       what a runtime is asked for: environment has its variables (fields: what a pod says of
                   itself), mounting its volumes (volumes: what is in them, volume_files: how that gets on
                   disk), limits what it may use, logins whom its image is pulled as
    probes         how a probe stands; probing asks (checks: once, http_get and grpc_health: over the wire)
    stopping       ends containers, step by step (ending: which), hooks runs their hooks
    messages       what containers left to be read (termination)
    telling        what is said about containers, in events
    errands        work that takes as long as a container likes
    runtimes       what containers are made of
    pods           what is known of each pod, in memory and on disk
    machine        what `node` asks of a machine, out of these
    logs           what containers have printed
    streams        connections into pods: exec, attach, port-forward
    using          what the machine and its containers use
    answering      what the API server asks of a node; serving is where it asks
    registering    the Node that stands for this machine
    loop           the agent, from its first word to the last
    views          what is read of a pod

How a pod lives on a node is written in `node`, and what that promises holds here.
"""

from . import runtimes
from .loop import Agent, HollowNode, Looking, Process, Settings
from .registering import Measured
from .runtimes import (
    Addresses,
    Attempt,
    CannotStart,
    ContainerSpec,
    Executed,
    ProcessRuntime,
    Report,
    Runtime,
    SandboxSpec,
    Streams,
    UnfitRuntime,
    Usage,
    unheard,
)
from .sealed import BadCheckpoint

__all__ = [
    "Addresses",
    "Agent",
    "Attempt",
    "BadCheckpoint",
    "CannotStart",
    "ContainerSpec",
    "Executed",
    "HollowNode",
    "Looking",
    "Measured",
    "Process",
    "ProcessRuntime",
    "Report",
    "Runtime",
    "SandboxSpec",
    "Settings",
    "Streams",
    "UnfitRuntime",
    "Usage",
    "runtimes",
    "unheard",
]
