"""CDI, the container device interface: files that say what a container gets with a device.

A driver writes specs; a container runtime is told names (`vendor.com/class=name`), looks them up in
its directories, and edits the container as the specs say. Both sides are here.

    spec       a spec as values, and its JSON: every field of 0.3 to 1.0
    names      what vendors, classes and devices may be called
    checks     what is wrong with a spec, with the place of each fault; which version it needs
    edits      the edits of several devices as one, merged as container runtimes do
    files      specs in a directory: written whole or not at all
    catalogue  what the files of some directories offer, and the edits for names
"""

from .catalogue import Catalogue, Unresolvable, catalogue
from .checks import InvalidSpec, check, minimum_version, with_minimum_version
from .edits import merged
from .files import SpecDirectory, read_spec, spec_file_name
from .names import device_name, qualified_name
from .spec import ContainerEdits, Device, DeviceNode, Hook, IntelRdt, Mount, Spec, decode, encode

__all__ = [
    "Catalogue",
    "ContainerEdits",
    "Device",
    "DeviceNode",
    "Hook",
    "IntelRdt",
    "InvalidSpec",
    "Mount",
    "Spec",
    "SpecDirectory",
    "Unresolvable",
    "catalogue",
    "check",
    "decode",
    "device_name",
    "encode",
    "merged",
    "minimum_version",
    "qualified_name",
    "read_spec",
    "spec_file_name",
    "with_minimum_version",
]
