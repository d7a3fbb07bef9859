"""NVIDIA's GPUs, whole or in partitions (MIG): what `allot driver nvidia` runs.

inventory    what a machine has, as one value; recorded and replayed as JSON
nvml         the same, read from a machine; driverfiles: the driver's files and commands there
backend      the port between the two; GPUs of a recording
published    what the API is told of GPUs
containers   what a container gets with one
sharing      how containers of a claim share one
troubles     what is wrong with which; rehearsal: what people say is wrong
making       the driver, put together
"""

from .backend import Backend, NotThere, Recorded
from .inventory import BadRecording, Inventory, decoded, encoded
from .making import driver
from .nvml import Nvml
from .published import DRIVER
from .rehearsal import Rehearsal

__all__ = [
    "DRIVER",
    "Backend",
    "BadRecording",
    "Inventory",
    "NotThere",
    "Nvml",
    "Recorded",
    "Rehearsal",
    "decoded",
    "driver",
    "encoded",
]
