"""The numbers and well-known strings of resource.k8s.io."""

from typing import Final

GROUP: Final = "resource.k8s.io"

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
EXTENDED_RESOURCE_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
POD_CLAIM_NAME_ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"
ADMIN_ACCESS_LABEL: Final = "resource.kubernetes.io/admin-access"
IMPLICIT_EXTENDED_RESOURCE_PREFIX: Final = "deviceclass.resource.kubernetes.io/"

# Permissions that exist only to be checked on status writes.
BINDING_SUBRESOURCE: Final = "binding"
DRIVER_SUBRESOURCE: Final = "driver"
ASSOCIATED_NODE: Final = "associated-node:"
ARBITRARY_NODE: Final = "arbitrary-node:"

DRIVER_NAME_MAX: Final = 63  # bytes; also the domain of an attribute
IDENTIFIER_MAX: Final = 32
POOL_NAME_MAX: Final = 253

SLICE_DEVICES_MAX: Final = 128
SLICE_ADVANCED_DEVICES_MAX: Final = 64  # once a device has taints, counters or list attributes
DEVICE_ATTRIBUTES_AND_CAPACITIES_MAX: Final = 32
DEVICE_ATTRIBUTE_VALUES_MAX: Final = 48
ATTRIBUTE_VALUE_MAX: Final = 64  # bytes
DEVICE_TAINTS_MAX: Final = 16
COUNTER_SETS_MAX: Final = 8
COUNTERS_MAX: Final = 32
DEVICE_COUNTER_CONSUMPTIONS_MAX: Final = 2
COMPATIBILITY_GROUPS_MAX: Final = 2
BINDING_CONDITIONS_MAX: Final = 4
VALID_VALUES_MAX: Final = 10

REQUESTS_MAX: Final = 32
FIRST_AVAILABLE_MAX: Final = 8
SELECTORS_MAX: Final = 32
CONSTRAINTS_MAX: Final = 32
CONFIG_MAX: Final = 32
DERIVED_ATTRIBUTES_MAX: Final = 32
EXPRESSION_MAX: Final = 10 * 1024  # bytes
DERIVED_ATTRIBUTES_COST_MAX: Final = 1_000_000  # of all expressions of one claim
OPAQUE_MAX: Final = 10 * 1024  # bytes of JSON

ALLOCATION_RESULTS_MAX: Final = 32
ALLOCATION_CONFIG_MAX: Final = 2 * CONFIG_MAX  # from the class and from the claim
RESERVED_FOR_MAX: Final = 256
DEVICE_CONDITIONS_MAX: Final = 8
DEVICE_IPS_MAX: Final = 16
INTERFACE_NAME_MAX: Final = 256  # bytes
HARDWARE_ADDRESS_MAX: Final = 128  # bytes
RULE_CONDITIONS_MAX: Final = 8
POOL_STATUS_LIMIT: Final = 100  # pools in an answer, unless asked otherwise
POOL_STATUS_POOLS_MAX: Final = 1000
POOL_STATUS_CONDITIONS_MAX: Final = 10
POOL_STATUS_ERROR_MAX: Final = 256  # bytes

ALLOCATION_MODES: Final = ("All", "ExactCount")
TAINT_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
TOLERATION_OPERATORS: Final = ("Equal", "Exists")
CONFIG_SOURCES: Final = ("FromClaim", "FromClass")
SKIPPABLE_NODE_OPERATIONS: Final = ("*", "NodePrepareResources", "NodeUnprepareResources")
