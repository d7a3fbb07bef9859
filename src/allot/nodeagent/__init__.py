"""The agent of a node: real containers, and devices that drivers prepare.

    told           what drivers were told of each claim: the rules, as values
    checkpoint     the same as a file; keeping keeps it
    preparing      tells the drivers, in the order that a crash cannot spoil
    giving         which devices each container gets
    drivers        which drivers are there, and which instance of each is called
    registry_loop  follows the registration directory
    wiping         whose slices have to go
    health         how devices are, as their drivers say; health_loop listens
    podresources   which container has which devices, for monitoring agents
    life           what is to start and to end of a pod's containers
    environment    the variables of a container
    runtimes       what containers are made of
    machine        what `node` asks of a machine, out of these
    logs           what containers have printed; serving shows it to the API server
    registering    the Node that stands for this machine
    loop           the agent, from its first word to the last
    views          what is read of a pod

How a pod lives on a node is written in `node`, and what that promises holds here.
"""

from .checkpoint import BadCheckpoint
from .loop import Agent, HollowNode, Process, Settings
from .runtimes import ProcessRuntime

__all__ = ["Agent", "BadCheckpoint", "HollowNode", "Process", "ProcessRuntime", "Settings"]
