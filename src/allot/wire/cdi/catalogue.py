"""What the files of some directories offer: what a container runtime looks up.

A directory that is named later comes before those named earlier (by convention `/etc/cdi`, then
`/var/run/cdi`). Two files of one directory that both have a device leave it unresolved, since nobody
knows which is meant. A file with a fault hurts only itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from allot.base import Files, MachineFiles

from .checks import InvalidSpec
from .edits import merged
from .files import read_spec, spec_files
from .names import device_name
from .spec import ContainerEdits, Device, Spec


class Unresolvable(Exception):
    """Names every device that is not there, and what is wrong with files that may have it."""

    def __init__(self, devices: Sequence[str], reasons: Sequence[str]) -> None:
        why = f" ({'; '.join(reasons)})" if reasons else ""
        super().__init__(f"unresolvable CDI devices {', '.join(devices)}{why}")
        self.devices = tuple(devices)


@dataclass(frozen=True, slots=True)
class Offer:
    file: Path
    spec: Spec
    device: Device


@dataclass(frozen=True, slots=True)
class Catalogue:
    offers: Mapping[str, Offer]  # by qualified name
    conflicts: Mapping[str, tuple[Path, ...]]
    faults: Mapping[Path, str]

    def edits(self, devices: Iterable[str]) -> ContainerEdits:
        """For a container that gets these devices, each once. Raises Unresolvable."""
        wanted = tuple(dict.fromkeys(devices))
        missing = [name for name in wanted if name not in self.offers]
        if missing:
            raise Unresolvable(missing, self._reasons(missing))
        several: list[ContainerEdits] = []
        begun: set[Path] = set()
        for offer in (self.offers[name] for name in wanted):
            if offer.file not in begun:
                begun.add(offer.file)
                several.append(offer.spec.container_edits)
            several.append(offer.device.container_edits)
        return merged(several)

    def _reasons(self, missing: Sequence[str]) -> list[str]:
        twice = [
            f"{name} is in {' and '.join(map(str, self.conflicts[name]))}"
            for name in missing
            if name in self.conflicts
        ]
        return [*twice, *self.faults.values()]


def catalogue(directories: Sequence[Path], files: Files | None = None) -> Catalogue:
    files = files if files is not None else MachineFiles()
    offers: dict[str, Offer] = {}
    conflicts: dict[str, tuple[Path, ...]] = {}
    faults: dict[Path, str] = {}
    for directory in directories:
        for path in spec_files(directory, files):
            try:
                spec = read_spec(path, files)
            except InvalidSpec as fault:
                faults[path] = str(fault)
                continue
            if spec is None:
                continue  # it went away under our eyes
            for device in spec.devices:
                name = device_name(spec.kind, device.name)
                known = offers.get(name)
                if known is not None and known.file.parent == directory:
                    conflicts[name] = (*conflicts.get(name, (known.file,)), path)
                else:
                    conflicts.pop(name, None)
                    offers[name] = Offer(path, spec, device)
    clear = {name: offer for name, offer in offers.items() if name not in conflicts}
    return Catalogue(clear, conflicts, faults)
