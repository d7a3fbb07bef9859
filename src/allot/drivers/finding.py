"""Which drivers find something on this machine, and what: for `allot up --here`.

Each is asked in turn. One that finds nothing says why, since somebody may have expected otherwise: a
plain user has no loop devices, and a machine whose interfaces are all in use has none to give away.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from allot.base import MachineFiles
from allot.driver import Driver, NotUsable

from . import cpu, loop, net, nvidia

Fields = dict[str, Any]


class Found(NamedTuple):
    """A driver, and what it has in words."""

    driver: Driver
    what: str


class Here(NamedTuple):
    found: tuple[Found, ...]
    lacking: tuple[str, ...]  # what was not found, and why

    @property
    def sentence(self) -> str:
        has = ", ".join(one.what for one in self.found) or "no devices"
        return f"{has}; without {'; without '.join(self.lacking)}" if self.lacking else has


def found(node: str, root: Path) -> Here:
    """On this machine, for a node whose agent has that root."""
    there: list[Found] = []
    lacking: list[str] = []
    for name, look in _LOOKS.items():
        try:
            there.append(look(node, root / "plugins"))
        except (NotUsable, OSError) as why:
            lacking.append(f"{name} ({why})")
    return Here(tuple(there), tuple(lacking))


def classes(here: Here) -> Iterator[Fields]:
    """Device classes for what was found. A GPU answers to the name that device plugins gave it too
    (KEP-5004)."""
    for one in here.found:
        for name, selector, extended in _CLASSES[one.driver.name]:
            spec: Fields = {"selectors": [{"cel": {"expression": selector}}]}
            if extended:
                spec["extendedResourceName"] = extended
            yield {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": name},
                "spec": spec,
            }


def _gpus(node: str, plugins: Path) -> Found:
    backend = nvidia.Nvml()
    gpus = backend.inventory().gpus
    products = ", ".join(sorted({gpu.product_name for gpu in gpus}))
    return Found(nvidia.driver(backend, node), f"{_count(len(gpus), 'GPU')} ({products})")


def _loop_devices(node: str, plugins: Path) -> Found:
    files = plugins / loop.DRIVER / "files"
    devices, size = loop.LoopDevices(files), loop.room(files)
    if not size:
        raise NotUsable(f"less than 2Gi is free in {files}")
    return Found(loop.driver(devices, size), f"loop devices of {size // 2**30}Gi together")


def _interfaces(node: str, plugins: Path) -> Found:
    net.require_root()
    names = net.spare()
    if not names:
        raise NotUsable("none is switched off, and so free to be given away")
    interfaces = net.MachineInterfaces(plugins / net.DRIVER / "given")
    return Found(net.driver(interfaces, net.Offered(names)), f"network interfaces {', '.join(names)}")


def _cores(node: str, plugins: Path) -> Found:
    cores, data = cpu.cores(), plugins / cpu.DRIVER
    driver = cpu.driver(cores, cpu.Pins(data / "containers"), data / "claims", MachineFiles())
    return Found(driver, _count(len(cores), "core"))


def _count(many: int, what: str) -> str:
    return f"{many} {what}" if many == 1 else f"{many} {what}s"


_LOOKS: Final[dict[str, Callable[[str, Path], Found]]] = {
    "GPUs": _gpus,
    "loop devices": _loop_devices,
    "network interfaces": _interfaces,
    "cores": _cores,
}


def _of(driver: str, kind: str = "") -> str:
    selector = f'device.driver == "{driver}"'
    return f'{selector} && device.attributes["{driver}"].type == "{kind}"' if kind else selector


_CLASSES: Final = {
    nvidia.DRIVER: (
        (nvidia.DRIVER, _of(nvidia.DRIVER, "gpu"), "nvidia.com/gpu"),
        ("mig.nvidia.com", _of(nvidia.DRIVER, "mig"), ""),
    ),
    loop.DRIVER: ((loop.DRIVER, _of(loop.DRIVER), ""),),
    net.DRIVER: ((net.DRIVER, _of(net.DRIVER), ""),),
    cpu.DRIVER: ((cpu.DRIVER, _of(cpu.DRIVER), ""),),
}
"""Driver -> the name, the selector and the extended resource of each class."""
