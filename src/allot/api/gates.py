"""Feature gates, with upstream's names and its defaults at 1.37.

What is beta or better upstream is on. A locked gate is part of the product: it
has a name so that people can ask for it, and no off switch. Classic claims and
numeric parameters, which upstream has given up, are part of the product too, under
the names that they had; each numeric model of ours has a gate of its own. Resource
classes (KEP-14), which upstream never had, have a gate of ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Gate:
    name: str
    default: bool
    locked: bool = False
    needs: tuple[str, ...] = ()


GATES: Mapping[str, Gate] = {
    gate.name: gate
    for gate in (
        Gate("DynamicResourceAllocation", True, locked=True),
        Gate("DRAAdminAccess", True, locked=True),
        Gate("DRAPrioritizedList", True, locked=True),
        Gate("DRAResourceClaimDeviceStatus", True, locked=True),
        Gate("DRAResourceClaimGranularStatusAuthorization", True),
        Gate("DRAExtendedResource", True),
        Gate("DRADeviceTaints", True),
        Gate("DRADeviceTaintRules", True, needs=("DRADeviceTaints",)),
        Gate("DRAPartitionableDevices", True),
        Gate("DRAConsumableCapacity", True),
        Gate("DRAFractionalCapacityRange", False, needs=("DRAConsumableCapacity",)),
        Gate("DRADeviceBindingConditions", True),
        Gate("DRASchedulerFilterTimeout", True),
        Gate("DRAListTypeAttributes", False),
        Gate("DRANodeAllocatableResources", False),
        Gate("DRAPartitionableDevicesType", False, needs=("DRAPartitionableDevices",)),
        Gate("DRADerivedAttributes", False),
        Gate("DRAResourcePoolStatus", False),
        Gate("DRADeviceCompatibilityGroups", False, needs=("DRAPartitionableDevices",)),
        Gate("DRAOptionalNodeOperations", False),
        Gate("DRAControlPlaneController", True),
        Gate("DRANumericParameters", True),
        Gate("DRANumericModelCounter", True),
        Gate("DRANumericModelPartition", True),
        Gate("DRANumericModelTopology", True),
        Gate("ComputeResourceClasses", True),
        Gate("ResourceHealthStatus", True),
        Gate("ResourceHealthStatusMessage", True, needs=("ResourceHealthStatus",)),
    )
}


class UnknownGate(ValueError):
    """A gate was named that does not exist, is locked, or lacks what it needs."""


@dataclass(frozen=True, slots=True)
class Gates:
    """Which gates are on. Ask with `gates["DRADeviceTaints"]`."""

    changed: Mapping[str, bool] = field(default_factory=dict)
    _on: Mapping[str, bool] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        on = {gate.name: self.changed.get(gate.name, gate.default) for gate in GATES.values()}
        object.__setattr__(self, "_on", on)
        for name, wanted in self.changed.items():
            gate = GATES.get(name)
            if gate is None:
                raise UnknownGate(f"unknown feature gate {name!r}")
            if gate.locked and wanted != gate.default:
                raise UnknownGate(f"feature gate {name} is locked to {gate.default}")
        for gate in GATES.values():
            for need in gate.needs if self[gate.name] else ():
                if not self[need]:
                    raise UnknownGate(f"feature gate {gate.name} needs {need}")

    def __getitem__(self, name: str) -> bool:
        return self._on[name]
