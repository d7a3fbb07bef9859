"""What each field of compute resources and their classes means (compute.allot.dev/v1alpha1), in our words.

`TYPES` are types of our own; `MEMBERS` are the members that types of the core group get.
"""

from collections.abc import Mapping

from .texts import LIST, OBJECT

_SELECTOR = "What devices must be like. One of the alternatives suffices; without any, every device does."

MEMBERS: Mapping[str, Mapping[str, str]] = {
    "io.k8s.api.core.v1.NodeStatus": {
        "computeResources": "Devices that device plugins export with properties: an entry for each set of "
        "properties. They are not in capacity and allocatable as well. Absent, the list stays as it is.",
    },
    "io.k8s.api.core.v1.Container": {
        "allocatedComputeResources": "By the name that the container asks for, the compute resources of the "
        "node that serve it. Written with the binding; it does not change.",
    },
}

TYPES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "io.k8s.api.core.v1.ComputeResource": (
        "Devices of one raw name with the same properties.",
        {
            "name": "The raw name, a dash, and a hash of all properties. Filled in where it is missing.",
            "resourceName": "The raw name that the device plugin registered, e.g. example.com/gpu.",
            "properties": "What the device plugin says of the devices. At most 64.",
            "devices": "The ids of all devices with just these properties.",
            "allocatableDevices": "Those of them that may be handed out.",
        },
    ),
    "io.k8s.api.core.v1.AllocatedResource": (
        "Devices of one compute resource; of a group, also which member they are.",
        {
            "computeResourceName": "The name of a compute resource of the pod's node.",
            "count": "How many of its devices.",
            "member": "Of a group: which of its members this is, counted from 0.",
            "resourceName": "Of a group: a native resource, in place of devices.",
            "amount": "Of a group: how much of the native resource.",
        },
    ),
    "dev.allot.compute.v1alpha1.ResourceClass": (
        "Devices of a raw name with certain properties, under a name that containers ask for in their limits "
        "and that quotas count. Made by administrators.",
        {**OBJECT, "spec": "Which devices."},
    ),
    "dev.allot.compute.v1alpha1.ResourceClassList": ("Several classes.", LIST),
    "dev.allot.compute.v1alpha1.ResourceClassSpec": (
        "Which devices a class stands for.",
        {
            "resourceName": "The raw name that the class draws on, e.g. example.com/gpu.",
            "resourceSelector": _SELECTOR,
            "priority": "Devices that belong to no class of higher priority are given first. 0 if absent. It "
            "orders choices; it refuses nobody and evicts nobody.",
            "scope": "Node (the default): nodes have the devices. Cluster: a controller provides them, and "
            "nodes are not asked.",
            "deviceClassName": "A DeviceClass that serves the name on nodes without such compute resources.",
            "members": "Of a group: what is given together, for each one that is asked for. At most 8.",
            "sameProperty": "Of a group: properties whose values all its devices share.",
        },
    ),
    "dev.allot.compute.v1alpha1.ResourceGroupMember": (
        "Devices, or an amount of something native, that are part of a group.",
        {
            "resourceName": "The raw name of devices, or cpu, memory and the like.",
            "resourceSelector": _SELECTOR,
            "count": "How many devices. 1 if absent.",
            "amount": "How much of a native resource.",
        },
    ),
    "dev.allot.compute.v1alpha1.ResourcePropertySelector": (
        "One alternative.",
        {"matchExpressions": "What must hold, all of it. At least one."},
    ),
    "dev.allot.compute.v1alpha1.ResourceSelectorRequirement": (
        "What must hold for one property.",
        {
            "key": "The name of the property.",
            "operator": "In, NotIn, Exists, DoesNotExist, Gt or Lt. NotIn and DoesNotExist hold where there "
            "is no such property.",
            "values": "Texts to compare with. Gt and Lt take one number, with a unit if need be: 15G.",
        },
    ),
}
