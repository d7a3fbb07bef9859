"""The numbers and well-known strings of compute resources. They may grow in later versions, never shrink."""

from typing import Final

GROUP: Final = "compute.allot.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
GATE: Final = "ComputeResourceClasses"
LISTS: Final = "nodecomputeresources"
LIST_KIND: Final = "NodeComputeResources"
"""What nodes have, where their status cannot say it (`listed`): definitions in examples/real-kubernetes."""

QUALIFIED: Final = "resourceclass.compute.allot.dev/"
"""Before the name of a class, the form in which servers that know no classes take it."""
RECORD_ANNOTATION: Final = "compute.allot.dev/allocated"
"""The choice of compute resources: of a Binding, and of a pod where the server has no field for it."""

CLASS_NAME_MAX: Final = 63
ALTERNATIVES_MAX: Final = 32
EXPRESSIONS_MAX: Final = 32
VALUES_MAX: Final = 64
MEMBERS_MAX: Final = 8
SHARED_MAX: Final = 4
"""Properties that the members of a group share."""

PROPERTIES_MAX: Final = 64
PROPERTY_VALUE_MAX: Final = 256  # bytes
RESOURCES_MAX: Final = 512
"""Compute resources of a node."""
DEVICES_MAX: Final = 8192
"""Of a node, in all its compute resources."""
DEVICE_ID_MAX: Final = 128  # bytes

NODE_SCOPE: Final = "Node"
CLUSTER_SCOPE: Final = "Cluster"
