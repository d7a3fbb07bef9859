"""What containers are made of.

contract   the port: what the agent asks of any runtime
process    processes of this machine, without images and without root
"""

from .contract import Attempt, CannotStart, ContainerSpec, Runtime
from .process import ProcessRuntime

__all__ = ["Attempt", "CannotStart", "ContainerSpec", "ProcessRuntime", "Runtime"]
