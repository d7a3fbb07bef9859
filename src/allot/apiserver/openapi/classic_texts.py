"""What each field of classic claims means (resource.k8s.io/v1alpha1), in a sentence of our own.

`TYPES` are types that v1alpha1 alone has; `MEMBERS` are the members that it brings to types of every version.
"""

from collections.abc import Mapping

from .texts import LIST, OBJECT

_REFERENCE = {
    "apiGroup": "The API group of the object; empty for the core group, as of a ConfigMap.",
    "kind": "The kind of the object, as it says itself.",
    "name": "The name of the object.",
}

MEMBERS: Mapping[str, Mapping[str, str]] = {
    "ResourceClaimSpec": {
        "resourceClassName": "The ResourceClass of a classic claim: its driver allocates it, not the "
        "scheduler. Written in v1alpha1 only.",
        "parametersRef": "An object of any kind, in the namespace of the claim: parameters for the driver.",
        "allocationMode": "When a classic claim is allocated: WaitForFirstConsumer (the default) when a pod "
        "wants it, Immediate at once.",
    },
    "ResourceClaimStatus": {
        "driverName": "The driver that allocated a classic claim, whatever becomes of the class.",
        "deallocationRequested": "The driver shall deallocate the claim. Nobody may reserve it meanwhile.",
    },
    "AllocationResult": {
        "resourceHandle": "What the driver wants to be handed on the node. At most 16 KiB, for nobody else "
        "to understand.",
        "shareable": "Whether several consumers may use the claim at a time.",
        "availableOnNodes": "The nodes on which the claim can be used; every node if absent. Other versions "
        "call it nodeSelector.",
    },
}

TYPES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "ResourceClass": (
        "A driver, with parameters for it, under a name that claims refer to. Made by administrators.",
        {
            **OBJECT,
            "driverName": "The driver that allocates claims of the class, e.g. gpu.example.com.",
            "parametersRef": "An object of any kind with parameters for the driver.",
            "suitableNodes": "The nodes that claims of the class may be allocated for; every node if absent.",
            "numericParameters": "If there are any, the scheduler allocates claims of the class from what "
            "nodes publish (KEP-4381), and these are the kinds of objects that claims may refer to.",
        },
    ),
    "NumericParameterType": (
        "A kind of objects with parameters of claims, and how they become parameters of a numeric model.",
        {
            "apiVersion": "Group and version of the object; v1 of the core group if empty.",
            "kind": "The kind of the object, as it says itself.",
            "celTemplate": "YAML or JSON with {{ CEL expressions }} over `object`, which becomes the "
            "parameters. At most 10 KiB.",
            "shareable": "Whether several consumers may use a claim that is allocated this way.",
        },
    ),
    "NodeResourceCapacity": (
        "What a driver has on a node, or a part of it. Written by the node. The name means nothing.",
        {
            **OBJECT,
            "nodeName": "The node that has the capacity. A field selector.",
            "driverName": "The driver that offers it. A field selector.",
            "instances": "The discrete resources. At most 128 an object; one node and driver may have "
            "several objects.",
        },
    ),
    "NodeResourceCapacityList": ("Several of them.", LIST),
    "NodeResourceInstance": (
        "One discrete resource, described for a numeric model.",
        {
            "id": "Chosen by the driver, unique for the node and the driver.",
            "apiVersion": "Group and version of the capacity type in data.",
            "kind": "The kind of the capacity type in data.",
            "data": "Amounts and attributes, for the numeric model of this type to understand. At most "
            "32 KiB.",
        },
    ),
    "ResourceClassList": ("Several classes.", LIST),
    "ResourceClassParametersReference": (
        "An object with parameters of a class.",
        {**_REFERENCE, "namespace": "The namespace of the object; empty for a kind that has none."},
    ),
    "ResourceClaimParametersReference": (
        "An object with parameters of a claim, in the namespace of the claim.",
        _REFERENCE,
    ),
    "PodScheduling": (
        "What scheduler and drivers tell each other while a pod with classic claims is scheduled. It has the "
        "name of the pod, and goes with it.",
        {
            **OBJECT,
            "spec": "Where the scheduler wants claims to be allocated.",
            "status": "Where drivers can allocate them.",
        },
    ),
    "PodSchedulingList": ("Several of them.", LIST),
    "PodSchedulingSpec": (
        "What the scheduler asks.",
        {
            "selectedNode": "The node for which drivers shall allocate the waiting claims of the pod.",
            "potentialNodes": "Nodes on which the pod might run, for drivers to judge. At most 256.",
        },
    ),
    "PodSchedulingStatus": (
        "What drivers answer.",
        {"resourceClaims": "One entry for each claim of the pod that waits for it, by its driver."},
    ),
    "ResourceClaimSchedulingStatus": (
        "What a driver says of one claim. That there is an entry says that it has answered.",
        {
            "name": "The name of the entry in spec.resourceClaims of the pod.",
            "unsuitableNodes": "Nodes for which the claim cannot be allocated. At most 256.",
        },
    ),
}
