"""The fleets there are, by name: which machines, in which order, with what in them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from allot.api import resource

from . import fabric, offers
from .fabric import accelerators, rack_of
from .gpu import H100, L4, whole_gpus
from .machine import NUMBERS_MAX, Exported, Machine
from .mig import partitionable_gpus
from .nic import nics

Fields = dict[str, Any]

FLEET_LABEL = "hollow.allot.dev/fleet"


class UnknownFleet(ValueError):
    """No fleet of this name is in the catalogue."""


@dataclass(frozen=True, slots=True)
class Build:
    """One kind of machine, with what its drivers publish."""

    name: str
    machine: Machine
    pools: Callable[[str], tuple[resource.pools.Pool, ...]] = lambda node: ()
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Design:
    """Machines in turn: the first of each build, then the second of each, and so on."""

    summary: str
    builds: tuple[Build, ...]
    has_fabric: bool = False


_SERVER = Build(
    "gpu",
    Machine("gpu-h100-8x", cpus=192, memory_gib=2048, disk_gib=7000),
    lambda node: (whole_gpus(node, H100, 8),),
    (offers.GPU,),
)
_NETWORKED_SERVER = Build(
    "gpu",
    _SERVER.machine,
    lambda node: (whole_gpus(node, H100, 8), nics(node, 8)),
    (offers.GPU, offers.NIC),
)
_PARTITIONED = Build(
    "mig",
    Machine("mig-h100-4x", cpus=96, memory_gib=1024, disk_gib=3500),
    lambda node: (partitionable_gpus(node, 4),),
    (offers.GPU, offers.PARTITION),
)
_SHARED_WORKSTATION = Build(
    "mig",
    Machine("mig-h100-2x", cpus=64, memory_gib=512, disk_gib=2000),
    lambda node: (partitionable_gpus(node, 2),),
    (offers.GPU, offers.PARTITION),
)
_SMALL = Build(
    "edge",
    Machine("gpu-l4-1x", cpus=16, memory_gib=64),
    lambda node: (whole_gpus(node, L4, 1),),
    (offers.GPU,),
)
_NETWORK = Build(
    "nic", Machine("nic-400g-4x", cpus=64, memory_gib=256), lambda node: (nics(node, 4),), (offers.NIC,)
)
_FABRIC = Build("rack", Machine("fabric-host", cpus=64, memory_gib=512), classes=(offers.ACCELERATOR,))
_PLUGIN = Build(
    "plugin",
    Machine("plugin-gpu-8x", cpus=128, memory_gib=1024, plugins={offers.EXTENDED_GPU: 8}),
    classes=(offers.GPU,),
)
_OLD_CARDS = Build(
    "old",
    Machine(
        "cards-old-8x",
        cpus=64,
        memory_gib=512,
        exported=(
            Exported(offers.CARD, {"type": "k80", "memory": "12G", "interconnect": "pcie"}, 4),
            Exported(offers.CARD, {"type": "p100", "memory": "16G", "interconnect": "pcie"}, 4),
            Exported(offers.PORT, {"speed": "10Gbps"}, 2),
        ),
    ),
)
_NEW_CARDS = Build(
    "new",
    Machine(
        "cards-new-8x",
        cpus=128,
        memory_gib=1024,
        exported=(
            Exported(
                offers.CARD, {"type": "p100", "memory": "16G", "ecc": "true", "interconnect": "pcie"}, 4
            ),
            Exported(
                offers.CARD, {"type": "v100", "memory": "32G", "interconnect": "nvlink", "link": "0"}, 2
            ),
            Exported(
                offers.CARD, {"type": "v100", "memory": "32G", "interconnect": "nvlink", "link": "1"}, 2
            ),
            Exported(offers.PORT, {"speed": "100Gbps", "rdma": "true"}, 2),
        ),
    ),
)
_PLAIN = Build("plain", Machine("general-32", cpus=32, memory_gib=128))

CATALOGUE: Mapping[str, Design] = {
    "mixed": Design(
        "some of everything: GPU servers with shared NICs, GPUs in parts, device plugins, plain"
        " nodes, accelerators on a fabric",
        (_NETWORKED_SERVER, _SHARED_WORKSTATION, _PLUGIN, _PLAIN),
        has_fabric=True,
    ),
    "gpu": Design("servers with eight GPUs each", (_SERVER,)),
    "mig": Design("four GPUs each, whole or in parts that draw from shared counters", (_PARTITIONED,)),
    "nic": Design("NICs whose bandwidth many claims share", (_NETWORK,)),
    "fabric": Design("accelerators that all nodes of a rack reach", (_FABRIC,), has_fabric=True),
    "plugin": Design("eight GPUs each, counted by a device plugin: no ResourceSlices", (_PLUGIN,)),
    "compute": Design(
        "cards and NICs of two generations, exported with properties for resource classes (KEP-14)",
        (_OLD_CARDS, _NEW_CARDS),
    ),
    "edge": Design("small nodes with one GPU each", (_SMALL,)),
    "plain": Design("nodes without devices", (_PLAIN,)),
}


@dataclass(frozen=True, slots=True)
class Member:
    """A node and the slices that its own drivers publish, as API objects."""

    node: Fields
    slices: tuple[Fields, ...]

    @property
    def name(self) -> str:
        return str(self.node["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Fleet:
    name: str
    design: Design
    size: int

    def members(self) -> Iterator[Member]:
        """Made one by one: thousands of nodes need not be there at once."""
        return (self._member(number) for number in range(self.size))

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._name(number) for number in range(self.size))

    @property
    def shared(self) -> tuple[Fields, ...]:
        """Slices of pools that belong to no single node."""
        if not self.design.has_fabric or not self.size:
            return ()
        racks = dict.fromkeys(rack_of(number) for number in range(self.size))
        return tuple(self._labelled(one) for rack in racks for one in accelerators(rack).slices())

    @property
    def classes(self) -> tuple[Fields, ...]:
        return tuple(offers.device_class(name) for name in self._class_names())

    @property
    def templates(self) -> tuple[Fields, ...]:
        return offers.templates(self._class_names())

    def _member(self, number: int) -> Member:
        build, name = self._build(number), self._name(number)
        labels = self._label()
        if self.design.has_fabric:
            labels[fabric.RACK] = rack_of(number)
        slices = [self._labelled(one) for pool in build.pools(name) for one in pool.slices()]
        return Member(build.machine.node(name, number, labels), tuple(slices))

    def _build(self, number: int) -> Build:
        return self.design.builds[number % len(self.design.builds)]

    def _name(self, number: int) -> str:
        return f"{self._build(number).name}-{number // len(self.design.builds)}"

    def _class_names(self) -> tuple[str, ...]:
        found = [name for build in self.design.builds for name in build.classes]
        if self.design.has_fabric:
            found.append(offers.ACCELERATOR)
        return tuple(dict.fromkeys(found))

    def _labelled(self, slice: Fields) -> Fields:
        return {**slice, "metadata": {**slice["metadata"], "labels": self._label()}}

    def _label(self) -> dict[str, str]:
        return {FLEET_LABEL: self.name}


def fleet(name: str, nodes: int) -> Fleet:
    """The first `nodes` nodes of a fleet of the catalogue."""
    design = CATALOGUE.get(name)
    if design is None:
        raise UnknownFleet(f"no fleet is called {name!r}; there are {', '.join(CATALOGUE)}")
    if not 0 <= nodes <= NUMBERS_MAX:
        raise UnknownFleet(f"a fleet has between 0 and {NUMBERS_MAX} nodes, not {nodes}")
    return Fleet(name, design, nodes)
