"""Which parts of the allocation rules are on.

The names are those the conformance cases use; `from_gates` maps the gates of a
running server to them. Everything is off unless named, so a rule that forgets to
ask its gate shows up in the first case without features.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields

from allot.api import Gates


@dataclass(frozen=True, slots=True)
class Features:
    admin_access: bool = False
    prioritized_list: bool = False
    partitionable_devices: bool = False
    device_taints: bool = False
    device_binding_and_status: bool = False
    consumable_capacity: bool = False
    fractional_capacity_range: bool = False
    list_type_attributes: bool = False
    optional_node_operations: bool = False
    derived_attributes: bool = False
    compatibility_groups: bool = False

    @classmethod
    def of(cls, names: Iterable[str]) -> "Features":
        """From names like "AdminAccess". Raises ValueError on one that does not exist."""
        chosen = {}
        for name in names:
            if name not in FIELD_BY_NAME:
                raise ValueError(f"unknown feature {name!r}; known are {', '.join(FIELD_BY_NAME)}")
            chosen[FIELD_BY_NAME[name]] = True
        return cls(**chosen)

    @classmethod
    def from_gates(cls, gates: Gates) -> "Features":
        return cls(**{FIELD_BY_NAME[name]: gates[gate] for name, gate in GATE_BY_NAME.items()})

    @property
    def knows_distinct(self) -> bool:
        """distinctAttribute came with consumable capacity. Upstream's oldest allocator, which serves
        while nothing newer is on, takes such a constraint for an empty one and refuses the claim."""
        return (
            self.consumable_capacity
            or self.fractional_capacity_range
            or self.device_binding_and_status
            or self.newest_rules
        )

    @property
    def newest_rules(self) -> bool:
        """Upstream has its newest rules in a second allocator, used once one of these is on.

        Only that one looks at `skipNodeOperations`; with all four off the field is
        neither an obstacle nor copied into the result.
        """
        return (
            self.list_type_attributes
            or self.optional_node_operations
            or self.derived_attributes
            or self.compatibility_groups
        )


FIELD_BY_NAME = {
    "".join(part.capitalize() for part in field.name.split("_")): field.name for field in fields(Features)
}

GATE_BY_NAME = {name: f"DRA{name}" for name in FIELD_BY_NAME} | {
    "DeviceBindingAndStatus": "DRADeviceBindingConditions",
    "CompatibilityGroups": "DRADeviceCompatibilityGroups",
}
