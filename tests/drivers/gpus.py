"""GPUs for tests: a recorded machine with one H200, and the same with that GPU in MIG mode."""

from pathlib import Path

from msgspec.structs import replace

from allot.drivers.nvidia import Inventory, decoded
from allot.drivers.nvidia.inventory import Placement, Profile

RECORDING = Path(__file__).parent / "h200.json"

PROFILES = (
    Profile(19, "1g.18gb", 1, 7, 16384, 16, 1, 1, 0, 1, 0, tuple(Placement(start, 1) for start in range(7))),
    Profile(
        20, "1g.18gb+me", 1, 1, 16384, 16, 1, 1, 0, 1, 1, tuple(Placement(start, 1) for start in range(7))
    ),
    Profile(9, "3g.71gb", 3, 2, 71424, 60, 3, 3, 0, 3, 0, (Placement(0, 4), Placement(4, 4))),
    Profile(0, "7g.141gb", 7, 1, 143384, 132, 8, 7, 0, 7, 1, (Placement(0, 8),)),
)


def h200() -> Inventory:
    return decoded(RECORDING.read_bytes(), str(RECORDING))


def in_mig_mode() -> Inventory:
    whole = h200()
    gpus = tuple(replace(gpu, mig=True, profiles=PROFILES) for gpu in whole.gpus)
    return replace(whole, gpus=gpus, capabilities_major=236)
