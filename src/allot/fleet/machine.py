"""A machine: how much of everything it has, and the Node object that says so."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from allot.api import compute

Fields = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"
_SYSTEM_CPUS, _SYSTEM_MEMORY_GIB = 2, 4  # kept from pods
_ZONES = "abc"
NUMBERS_MAX = 1 << 16  # as many /24 networks as 10.0.0.0/8 has


@dataclass(frozen=True, slots=True)
class Exported:
    """Devices of one raw name with the same properties."""

    resource: str
    properties: Mapping[str, str]
    count: int

    def fields(self, first: int) -> Fields:
        """As `node.status.computeResources` has it; ids are counted from `first`."""
        ids = [f"device-{first + at}" for at in range(self.count)]
        return {
            "name": compute.compute_resource_name(self.resource, self.properties),
            "resourceName": self.resource,
            "properties": dict(self.properties),
            "devices": ids,
            "allocatableDevices": ids,
        }


@dataclass(frozen=True, slots=True)
class Machine:
    type: str
    cpus: int
    memory_gib: int
    disk_gib: int = 1000
    pods: int = 110
    plugins: Mapping[str, int] = field(default_factory=dict)  # what device plugins count
    exported: tuple["Exported", ...] = ()  # and what they export with properties

    def node(self, name: str, number: int, labels: Mapping[str, str]) -> Fields:
        """The Node object of the `number`-th machine, without what only its agent knows."""
        named = {
            HOSTNAME: name,
            INSTANCE_TYPE: self.type,
            ZONE: f"zone-{_ZONES[number % len(_ZONES)]}",
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            **labels,
        }
        network = f"10.{number >> 8}.{number & 255}.0/24"
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": named},
            "spec": {"podCIDR": network, "podCIDRs": [network]},
            "status": {
                "capacity": self._amounts(0, 0),
                "allocatable": self._amounts(*_KEPT),
                **self._compute_resources(),
            },
        }

    def _compute_resources(self) -> Fields:
        found, first = [], 0
        for one in self.exported:
            found.append(one.fields(first))
            first += one.count
        return {"computeResources": found} if found else {}

    def _amounts(self, cpus: int, memory_gib: int) -> dict[str, str]:
        """What there is, less what is kept from pods."""
        return {
            "cpu": str(self.cpus - cpus),
            "memory": f"{self.memory_gib - memory_gib}Gi",
            "ephemeral-storage": f"{self.disk_gib}Gi",
            "pods": str(self.pods),
            **{name: str(count) for name, count in self.plugins.items()},
        }


_KEPT = (_SYSTEM_CPUS, _SYSTEM_MEMORY_GIB)
