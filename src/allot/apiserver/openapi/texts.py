"""What each field of resource.k8s.io means, in a sentence of our own.

By type and field; the versions of the group share their words.
"""

from collections.abc import Mapping

OBJECT = {
    "apiVersion": "The group and version that this object is written in.",
    "kind": "What kind of object this is.",
    "metadata": "Name, labels, owners and everything else that every object has.",
}

LIST = {**OBJECT, "items": "The objects.", "metadata": "The revision of the list, and where it continues."}

_NODES = {
    "nodeName": "Only this node can reach the devices.",
    "nodeSelector": "Only nodes that match can reach the devices.",
    "allNodes": "Every node can reach the devices. Either true or absent.",
}

_REQUEST = {
    "deviceClassName": "The DeviceClass whose selectors and configuration apply to every device of this "
    "request.",
    "selectors": "Expressions that a device must satisfy, all of them, besides those of the class. At "
    "most 32.",
    "allocationMode": "ExactCount (the default) asks for `count` devices, All for every device that matches.",
    "count": "How many devices are wanted; 1 if absent. Only with the mode ExactCount.",
    "tolerations": "Taints of devices that do not keep this request away from them.",
    "capacity": "How much of each capacity is wanted, for devices that serve several claims at once.",
    "derivedAttributes": "Attributes computed from each device, for constraints of the "
    "claim to refer to. At most 32.",
}

_CONDITIONS_TO_BIND = {
    "bindingConditions": "Conditions that must be true in the status of the device before "
    "its pod is bound. At most 4.",
    "bindingFailureConditions": "Conditions any of which, when true, gives up binding and "
    "frees the device. At most 4.",
}

_SKIPPED = (
    "Calls to the driver that the node may leave out: NodePrepareResources, NodeUnprepareResources or *."
)

_DEVICE = {
    **_NODES,
    **_CONDITIONS_TO_BIND,
    "attributes": "What is known about the device: a name, perhaps with a domain, and one value each.",
    "capacity": "How much the device has of something, by name.",
    "consumesCounters": "What the device takes from the shared counters of its pool while it is allocated. "
    "At most 2.",
    "taints": "Reasons to keep away from the device, or to leave it, unless tolerated. At most 16.",
    "bindsToNode": "Allocating the device ties the claim to the node that was chosen, wherever the "
    "device can be reached.",
    "allowMultipleAllocations": "The device may serve several claims at the same time.",
    "nodeAllocatableResources": "Ordinary resources of the node (cpu, memory, hugepages) "
    "that using the device takes.",
}

_DRIVER_POOL_DEVICE = {
    "driver": "The driver that the device belongs to.",
    "pool": "The pool in which the driver published it.",
    "device": "Its name within the pool.",
}

TYPES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "ResourceClaim": (
        "A wish for devices, and what was granted. Pods refer to claims; a claim may serve several pods.",
        {
            **OBJECT,
            "spec": "What is wanted. Cannot be changed once the claim exists.",
            "status": "What was allocated, and who may use it.",
        },
    ),
    "ResourceClaimList": ("Several claims.", LIST),
    "ResourceClaimSpec": (
        "What a claim asks for.",
        {"devices": "The devices that are wanted, and how they belong together."},
    ),
    "ResourceClaimStatus": (
        "What became of a claim.",
        {
            "allocation": "The devices that were chosen. Absent until there are some; never replaced by "
            "others.",
            "devices": "What drivers report about the devices of this claim, one entry for each device.",
            "reservedFor": "Who may use the claim now, usually pods. At most 256; an empty list lets the "
            "devices go.",
        },
    ),
    "ResourceClaimConsumerReference": (
        "One user of a claim.",
        {
            "apiGroup": "The API group of the user; empty for pods.",
            "resource": "The resource of the user, e.g. pods.",
            "name": "The name of the user.",
            "uid": "Exactly which one, for names are used again.",
        },
    ),
    "ResourceClaimTemplate": (
        "From which a claim is made for each pod that refers to it, and goes with that pod.",
        {**OBJECT, "spec": "The claim to make. Cannot be changed; existing claims would not follow."},
    ),
    "ResourceClaimTemplateList": ("Several templates.", LIST),
    "ResourceClaimTemplateSpec": (
        "A claim to be made.",
        {"metadata": "Labels and annotations for the claim; nothing else.", "spec": "The spec of the claim."},
    ),
    "DeviceClass": (
        "A name for a sort of devices, made by whoever runs the cluster: selectors and configuration.",
        {**OBJECT, "spec": "Which devices belong to the class, and how they are set up."},
    ),
    "DeviceClassList": ("Several classes.", LIST),
    "DeviceClassSpec": (
        "Which devices belong to a class.",
        {
            "selectors": "Expressions that every device of the class satisfies. At most 32.",
            "config": "Parameters for the drivers of devices that are claimed through this class. At most "
            "32.",
            "extendedResourceName": "Pods that ask for this resource in their containers get "
            "devices of the class.",
        },
    ),
    "DeviceClassConfiguration": (
        "Parameters that come with a class.",
        {"opaque": "Parameters for one driver."},
    ),
    "DeviceClaim": (
        "A set of devices that are wanted together.",
        {
            "requests": "One entry for each group of devices. At most 32.",
            "constraints": "What must hold across the devices of several requests. At most 32.",
            "config": "Parameters for drivers. At most 32.",
        },
    ),
    "DeviceClaimConfiguration": (
        "Parameters that come with a claim.",
        {"requests": "The requests they are for; all if empty.", "opaque": "Parameters for one driver."},
    ),
    "DeviceRequest": (
        "One group of devices. Either `exactly` or `firstAvailable`.",
        {
            "name": "What constraints, configuration and containers call this request. A DNS label.",
            "exactly": "The devices that are wanted.",
            "firstAvailable": "Alternatives in order of preference: the first that can be had. At most 8.",
            "adminAccess": "Use devices beside their users, to look after them. Needs a label on the "
            "namespace.",
            **_REQUEST,
        },
    ),
    "ExactDeviceRequest": (
        "One group of alike wishes.",
        {
            **_REQUEST,
            "adminAccess": "Use devices beside their users, to look after them. Needs a label on the "
            "namespace.",
        },
    ),
    "DeviceSubRequest": (
        "One of several alternatives.",
        {"name": "What others call this alternative: request/name. A DNS label.", **_REQUEST},
    ),
    "CapacityRequirements": (
        "How much is wanted of devices that can be shared.",
        {"requests": "An amount for each capacity. It is rounded up to what the device hands out."},
    ),
    "DeviceDerivedAttribute": (
        "An attribute that is computed.",
        {
            "name": "What it is called, domain included.",
            "expression": "A CEL expression over one device that gives its value.",
        },
    ),
    "DeviceSelector": ("A condition on devices.", {"cel": "The condition as a CEL expression."}),
    "CELDeviceSelector": (
        "A condition as a CEL expression.",
        {
            "expression": "True for a device that is suitable. `device` has driver, attributes, capacity and "
            "allowMultipleAllocations; an error keeps the node out. At most 10 KiB, and bounded "
            "in cost.",
        },
    ),
    "DeviceConstraint": (
        "Something that must hold across devices. Either `matchAttribute` or `distinctAttribute`.",
        {
            "requests": "The requests (or request/alternative) whose devices are compared; all if empty.",
            "matchAttribute": "All devices have this attribute, with the same value.",
            "distinctAttribute": "All devices have this attribute, each with another value.",
        },
    ),
    "DeviceToleration": (
        "A taint that is put up with.",
        {
            "key": "The key of the taint; empty means any, together with Exists.",
            "operator": "Equal (the default) compares the value, Exists does not.",
            "value": "The value of the taint; empty with Exists.",
            "effect": "NoSchedule, NoExecute or None; empty means every effect.",
            "tolerationSeconds": "For how long NoExecute is put up with; for ever if absent.",
        },
    ),
    "OpaqueDeviceConfiguration": (
        "Parameters that only a driver understands.",
        {"driver": "The driver that they are for.", "parameters": "A JSON object of at most 10 KiB."},
    ),
    "AllocationResult": (
        "What was granted to a claim.",
        {
            "devices": "The devices, with their configuration.",
            "nodeSelector": "The nodes from which all of them can be used; every node if absent.",
            "allocationTimestamp": "When it was granted.",
        },
    ),
    "DeviceAllocationResult": (
        "Devices that were granted.",
        {
            "results": "One entry for each device. At most 32.",
            "config": "Parameters of classes and of the claim. At most 64.",
        },
    ),
    "DeviceRequestAllocationResult": (
        "One device that was granted.",
        {
            **_DRIVER_POOL_DEVICE,
            **_CONDITIONS_TO_BIND,
            "request": "The request it is for; request/name for an alternative.",
            "adminAccess": "It was granted beside its users.",
            "tolerations": "The tolerations of the request when the device was granted.",
            "shareID": "Tells the shares of one device apart. A UUID.",
            "consumedCapacity": "How much of the device this share takes.",
            "skipNodeOperations": _SKIPPED,
        },
    ),
    "DeviceAllocationConfiguration": (
        "Parameters that go with granted devices.",
        {
            "source": "FromClass or FromClaim.",
            "requests": "The requests they are for; all if empty.",
            "opaque": "Parameters for one driver.",
        },
    ),
    "AllocatedDeviceStatus": (
        "What a driver reports about one device of a claim.",
        {
            **_DRIVER_POOL_DEVICE,
            "shareID": "Which share of the device, where it has several.",
            "conditions": "How the device is doing. At most 8.",
            "data": "Whatever else the driver has to say: a JSON object of at most 10 KiB.",
            "networkData": "Where the device is a network interface.",
        },
    ),
    "NetworkDeviceData": (
        "A device as a network interface.",
        {
            "interfaceName": "What the interface is called in the pod.",
            "ips": "Its addresses, each with the length of its prefix. At most 16.",
            "hardwareAddress": "Its hardware address.",
        },
    ),
    "ResourceSlice": (
        "Devices that a driver offers, or counters that they share. A pool is one slice or several.",
        {**OBJECT, "spec": "What is offered, by whom, and from where it can be reached."},
    ),
    "ResourceSliceList": ("Several slices.", LIST),
    "ResourceSliceSpec": (
        "A part of a pool. Exactly one of nodeName, nodeSelector, allNodes and perDeviceNodeSelection.",
        {
            **_NODES,
            "driver": "The driver that publishes the slice. Cannot be changed.",
            "pool": "The pool that it is a part of.",
            "perDeviceNodeSelection": "Each device says for itself which nodes can reach it.",
            "devices": "The devices. At most 128, or 64 if any has taints, counters or lists. Not with "
            "sharedCounters.",
            "sharedCounters": "Sets of counters that devices of the pool draw from. At most 8. Not with "
            "devices.",
            "partitionTypeAttribute": "The attribute that tells the sorts of partitions apart.",
            "skipNodeOperations": _SKIPPED,
        },
    ),
    "ResourcePool": (
        "Which pool a slice is a part of.",
        {
            "name": "The name of the pool, unique for its driver. Cannot be changed.",
            "generation": "Grows when the pool changes; slices of older generations do not count.",
            "resourceSliceCount": "Of how many slices this generation consists. A pool that lacks "
            "some is not used.",
        },
    ),
    "Device": (
        "One device.",
        {
            "name": "Tells the device apart within its pool. A DNS label.",
            "basic": "Everything about the device but its name.",
            **_DEVICE,
        },
    ),
    "BasicDevice": ("What is known about a device.", _DEVICE),
    "DeviceAttribute": (
        "A value: exactly one of these.",
        {
            "int": "A whole number.",
            "bool": "True or false.",
            "string": "A text of at most 64 bytes.",
            "version": "A version by semver.org 2.0.0, of at most 64 bytes.",
            "ints": "Several whole numbers.",
            "bools": "Several truth values.",
            "strings": "Several texts.",
            "versions": "Several versions.",
        },
    ),
    "DeviceCapacity": (
        "How much a device has of something.",
        {
            "value": "The whole amount.",
            "requestPolicy": "In which portions claims get it, where the device can be shared.",
        },
    ),
    "CapacityRequestPolicy": (
        "In which portions a capacity is handed out. At most one of validValues and validRange.",
        {
            "default": "What a claim gets that does not say how much.",
            "validValues": "The portions there are, in ascending order. At most 10.",
            "validRange": "Anything between two bounds, perhaps in steps.",
        },
    ),
    "CapacityRequestPolicyRange": (
        "Portions between two bounds.",
        {
            "min": "The smallest portion.",
            "max": "The largest portion; the whole capacity if absent.",
            "step": "Portions are the smallest plus a multiple of this.",
        },
    ),
    "CounterSet": (
        "Counters that several devices draw from.",
        {
            "name": "Tells the set apart within its pool. A DNS label.",
            "counters": "How much there is of each. At most 32.",
        },
    ),
    "Counter": ("An amount.", {"value": "How much there is, or is taken."}),
    "DeviceCounterConsumption": (
        "What a device takes from one set of counters.",
        {
            "counterSet": "The set.",
            "counters": "How much of each counter. At most 32.",
            "compatibilityGroups": "Devices of the set can be in use together when they have a "
            "group in common. At most 2.",
        },
    ),
    "DeviceTaint": (
        "A reason to keep away from a device.",
        {
            "key": "What the reason is called.",
            "value": "More about it.",
            "effect": "NoSchedule keeps new pods away, NoExecute also ends those that run, None only "
            "informs.",
            "timeAdded": "Since when. Set by the server if absent.",
        },
    ),
    "DeviceTaintRule": (
        "Taints every device that it selects, whoever published it.",
        {**OBJECT, "spec": "Which devices, and the taint.", "status": "What came of it."},
    ),
    "DeviceTaintRuleList": ("Several rules.", LIST),
    "DeviceTaintRuleSpec": (
        "Which devices are tainted, and how.",
        {
            "deviceSelector": "The devices; an empty selector means all, none at all means none.",
            "taint": "The taint.",
        },
    ),
    "DeviceTaintRuleStatus": (
        "What came of a rule.",
        {"conditions": "EvictionInProgress tells how far pods have been ended. At most 8."},
    ),
    "DeviceTaintSelector": (
        "Devices; whatever is given must be the same.",
        {"driver": "The driver.", "pool": "The pool.", "device": "The name of the device."},
    ),
    "NodeAllocatableResource": (
        "What using a device takes from the ordinary resources of the node.",
        {"mapping": "What is proportional to the device.", "overhead": "What comes on top."},
    ),
    "NodeAllocatableMapping": (
        "A proportion.",
        {
            "capacityKey": "The capacity of the device that it is proportional to.",
            "capacityMultiplier": "How much of the resource goes with one unit of that capacity.",
            "deviceMultiplier": "How much of the resource goes with the device as a whole.",
        },
    ),
    "NodeAllocatableOverhead": (
        "What comes on top.",
        {
            "perPod": "Once for each pod that uses the device.",
            "perContainer": "Once for each container that does.",
        },
    ),
}
