"""resource.k8s.io as typed views, in the shape of v1.

Everything that v1 has a name for is here, fields behind alpha gates too. Amounts
stay the strings that were published (`Quantity.parse` reads them), and times
stay RFC 3339 strings, so a view costs no more than its JSON.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from ..meta import Condition, NodeSelector, ObjectMeta, View

Amount = str
"""A quantity as published, e.g. "80Gi"."""


# What drivers publish: ResourceSlice


class DeviceAttribute(View, frozen=True):
    """Exactly one of these is set."""

    int_: int | None = None
    bool_: bool | None = None
    string: str | None = None
    version: str | None = None
    ints: tuple[int, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None


class CapacityRequestPolicyRange(View, frozen=True):
    min: Amount | None = None
    max: Amount | None = None
    step: Amount | None = None


class CapacityRequestPolicy(View, frozen=True):
    default: Amount | None = None
    valid_values: tuple[Amount, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(View, frozen=True):
    value: Amount = "0"
    request_policy: CapacityRequestPolicy | None = None


class Counter(View, frozen=True):
    value: Amount = "0"


class CounterSet(View, frozen=True):
    name: str = ""
    counters: Mapping[str, Counter] = {}


class DeviceCounterConsumption(View, frozen=True):
    counter_set: str = ""
    counters: Mapping[str, Counter] = {}
    compatibility_groups: tuple[str, ...] = ()


class DeviceTaint(View, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""  # None, NoSchedule, NoExecute
    time_added: str = ""


class NodeAllocatableMapping(View, frozen=True):
    capacity_key: str | None = None
    capacity_multiplier: Amount | None = None
    device_multiplier: Amount | None = None


class NodeAllocatableOverhead(View, frozen=True):
    per_pod: Amount | None = None
    per_container: Amount | None = None


class NodeAllocatableResource(View, frozen=True):
    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class Device(View, frozen=True):
    name: str = ""
    attributes: Mapping[str, DeviceAttribute] = {}
    capacity: Mapping[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: Mapping[str, NodeAllocatableResource] = {}


class ResourcePool(View, frozen=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(View, frozen=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()


class ResourceSlice(View, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()


# What administrators offer: DeviceClass, DeviceTaintRule


class CELDeviceSelector(View, frozen=True):
    expression: str = ""


class DeviceSelector(View, frozen=True):
    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(View, frozen=True):
    driver: str = ""
    parameters: Mapping[str, Any] | None = None  # an empty object is one, and is kept


class DeviceClassConfiguration(View, frozen=True):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(View, frozen=True):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(View, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceTaintSelector(View, frozen=True):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(View, frozen=True):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRuleStatus(View, frozen=True):
    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(View, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()


# What users ask for: ResourceClaim, ResourceClaimTemplate


class DeviceToleration(View, frozen=True):
    key: str = ""
    operator: str = "Equal"  # Exists, Equal
    value: str = ""
    effect: str = ""  # "" is every effect
    toleration_seconds: int | None = None

    def lets_stay_with(self, taint: DeviceTaint) -> bool:
        """May whoever has it stay where a device gets this taint?

        Without an effect it only lets pods come.
        """
        if self.effect != "NoExecute" or self.key not in ("", taint.key):
            return False
        if self.operator == "Exists":
            return True
        return self.operator in ("", "Equal") and self.value == taint.value


class CapacityRequirements(View, frozen=True):
    requests: Mapping[str, Amount] = {}


class DeviceDerivedAttribute(View, frozen=True):
    name: str = ""
    expression: str = ""


class ExactDeviceRequest(View, frozen=True):
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"  # ExactCount, All
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceSubRequest(View, frozen=True):
    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceRequest(View, frozen=True):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(View, frozen=True):
    requests: tuple[str, ...] = ()  # empty: every request
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(View, frozen=True):
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(View, frozen=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimParametersReference(View, frozen=True):
    """Of a classic claim, an object in its namespace."""

    api_group: str = ""
    kind: str = ""
    name: str = ""


class ResourceClaimSpec(View, frozen=True):
    """Classic claims (KEP-3063) name a class of their own and have no requests (`shape.requests_of`)."""

    devices: DeviceClaim = DeviceClaim()
    resource_class_name: str = ""  # of classic claims, and of no others
    parameters_ref: ResourceClaimParametersReference | None = None
    allocation_mode: str = ""  # of classic claims: WaitForFirstConsumer, Immediate


class DeviceRequestAllocationResult(View, frozen=True):
    request: str = ""  # "request" or "request/subrequest"
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: Mapping[str, Amount] = {}
    skip_node_operations: tuple[str, ...] = ()


class DeviceAllocationConfiguration(View, frozen=True):
    source: str = ""  # FromClass, FromClaim
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(View, frozen=True):
    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(View, frozen=True):
    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None  # v1alpha1 calls it availableOnNodes
    allocation_timestamp: str = ""
    resource_handle: str = ""  # of classic claims: what their driver wants to be handed on the node
    shareable: bool = False  # of classic claims: several may use it at a time


class ResourceClaimConsumerReference(View, frozen=True):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class NetworkDeviceData(View, frozen=True):
    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""


class AllocatedDeviceStatus(View, frozen=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()
    data: Mapping[str, Any] = {}
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(View, frozen=True):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()
    driver_name: str = ""  # of classic claims: who allocated it
    deallocation_requested: bool = False  # of classic claims


class ResourceClaim(View, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(View, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(View, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
