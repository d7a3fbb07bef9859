"""Which files of NVIDIA's driver a container needs, and where this machine has them.

Libraries are mounted at the path that the machine has them at, under the names by which programs load them
(`libcuda.so.1`): the loader of an image of the same family of distributions looks there by itself, so that no
cache has to be written and no variable set. Containers that are processes of the machine see them anyway.
What only NVIDIA's own command can do is done with it here too.
"""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

FOLDERS: Final = tuple(
    map(
        Path,
        (
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib/aarch64-linux-gnu",
            "/usr/lib64",
            "/usr/lib",
            "/usr/local/nvidia/lib64",
            "/usr/local/cuda/compat",
            "/usr/lib/wsl/lib",
        ),
    )
)
PROGRAM_FOLDERS: Final = (Path("/usr/bin"), Path("/usr/local/nvidia/bin"))
PROGRAMS: Final = ("nvidia-smi", "nvidia-debugdump", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server")
_LIBRARY: Final = re.compile(
    r"lib(cuda|cudadebugger|nvcuvid|nvoptix"
    r"|nvidia-(ml|cfg|ptxjitcompiler|nvvm|nvvm70|gpucomp|opencl|allocator|encode|opticalflow|fbc|pkcs11\S*))"
    r"\.so(\.\d+)+"
)
_LISTED: Final = re.compile(r"\s*(?P<name>\S+) \((?P<kind>[^)]*)\) => (?P<path>\S+)")
_COMMAND_S: Final = 20.0


def libraries() -> tuple[str, ...]:
    """By what the loader knows; where it knows nothing, by where they usually are."""
    return in_cache(_cache()) or in_folders(FOLDERS)


def in_cache(listed: str) -> tuple[str, ...]:
    """From what `ldconfig -p` prints: those for 64 bits."""
    found = {
        match["path"]: None
        for line in listed.splitlines()
        if (match := _LISTED.match(line)) and _LIBRARY.fullmatch(match["name"]) and "64" in match["kind"]
    }
    return tuple(found)


def in_folders(folders: Iterable[Path]) -> tuple[str, ...]:
    """Each under its shortest name with a version, which is the one that programs ask for."""
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.glob("lib*.so.*"), key=lambda one: len(one.name)):
            if _LIBRARY.fullmatch(path.name):
                found.setdefault(path.name.partition(".so.")[0], path)
    return tuple(map(str, found.values()))


def programs() -> tuple[str, ...]:
    places = (
        next((one / name for one in PROGRAM_FOLDERS if (one / name).exists()), None) for name in PROGRAMS
    )
    return tuple(str(place) for place in places if place is not None)


def slice_time(program: str, uuid: str, interval: int) -> None:
    """Raises OSError."""
    command = [program, "compute-policy", "-i", uuid, f"--set-timeslice={interval}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_S)
    except subprocess.TimeoutExpired:
        raise OSError(f"{' '.join(command)} did not end within {_COMMAND_S:g} s") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-500:]
        raise OSError(f"{' '.join(command)} ended with status {done.returncode}: {said}")


def _cache() -> str:
    for program in ("/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"):
        try:
            done = subprocess.run([program, "-p"], capture_output=True, text=True, timeout=_COMMAND_S)
        except (OSError, subprocess.SubprocessError):
            continue
        if done.returncode == 0:
            return done.stdout
    return ""
