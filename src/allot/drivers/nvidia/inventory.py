"""What a machine has of NVIDIA's, as one value: all that the rest of this driver sees of the hardware.

`nvml` reads it from a machine; `--record` writes it to a file and `--replay` reads it back, so that a machine
without a GPU can show what one with GPUs would. Pure.
"""

import re
from typing import Final

import msgspec

FORMAT: Final = "allot.dev/nvidia-inventory/v1"


class _Value(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, rename="camel"):
    """Unknown fields are refused: a misspelt one would be lost without a word."""


class Node(_Value, frozen=True):
    """A device node of the machine."""

    path: str
    major: int
    minor: int


class Placement(_Value, frozen=True):
    """The memory slices of a GPU that a partition takes."""

    start: int
    size: int


class Profile(_Value, frozen=True):
    """A size in which a GPU in MIG mode can be cut."""

    id: int
    name: str  # 1g.18gb
    slices: int  # of compute
    instances: int  # of this profile that a GPU has room for
    memory_mib: int
    multiprocessors: int
    copy_engines: int = 0
    decoders: int = 0
    encoders: int = 0
    jpeg_engines: int = 0
    ofa_engines: int = 0
    placements: tuple[Placement, ...] = ()


class Gpu(_Value, frozen=True):
    index: int
    minor: int
    uuid: str
    product_name: str
    brand: str
    architecture: str
    compute_capability: str  # 9.0
    memory_bytes: int
    pci_bus_id: str  # 0000:c8:00.0
    pcie_root: str = ""  # pci0000:c0; empty: not known
    numa_node: int | None = None
    node: Node | None = None  # /dev/nvidia<minor>; None: the machine has none
    mig: bool = False  # the mode, not whether it could be
    profiles: tuple[Profile, ...] = ()  # where that mode is on

    @property
    def name(self) -> str:
        return f"gpu-{self.minor}"


class Inventory(_Value, frozen=True):
    driver_version: str
    cuda_version: str  # of the driver: 12.8
    gpus: tuple[Gpu, ...]
    control_nodes: tuple[Node, ...] = ()  # which every container with a GPU needs
    libraries: tuple[str, ...] = ()  # of the driver, under the names by which programs load them
    programs: tuple[str, ...] = ()  # nvidia-smi and the like
    capabilities_major: int = 0  # of the device nodes that open MIG partitions; 0: there are none
    format: str = FORMAT


class BadRecording(ValueError):
    """The message says what is wrong with the file."""


def encoded(inventory: Inventory) -> bytes:
    fields = {"format": FORMAT, **msgspec.to_builtins(inventory)}
    return msgspec.json.format(msgspec.json.encode(fields), indent=2) + b"\n"


def decoded(content: bytes, where: str) -> Inventory:
    try:
        found = msgspec.json.decode(content, type=Inventory)
    except msgspec.MsgspecError as wrong:
        raise BadRecording(f"{where} is not a recorded inventory: {wrong}") from None
    if found.format != FORMAT:
        raise BadRecording(f"{where}: its format is {found.format!r}, and this driver reads {FORMAT!r}")
    for name in {gpu.name for gpu in found.gpus}:
        if sum(gpu.name == name for gpu in found.gpus) > 1:
            raise BadRecording(f"{where}: two GPUs are called {name}")
    return found


def semantic(version: str) -> str:
    """NVIDIA's version as a semantic one, which has three numbers without zeros before them:
    535.104.05 is 535.104.5, and 12.8 is 12.8.0."""
    numbers = [str(int(one)) for one in re.findall(r"\d+", version)][:3]
    return ".".join([*numbers, "0", "0", "0"][:3])
