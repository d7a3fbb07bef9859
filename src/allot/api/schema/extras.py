"""What we serve beyond the generated table: whole types of our own, and members added to Kubernetes' types.

Written like the table, and read together with it by `builtin`: short names, and a letter or a reference for
each field (tools/schemas.py explains them).

A classic claim (KEP-3063) is stored as a claim of v1 with members of its own beside. They stand in the type
of every version, so that every client is shown them and none is warned of them; v1alpha1 alone may write them
(`api.classic.shapes`). For the same reason v1alpha1 has the members of structured claims.

Resource classes (KEP-14) are a group of our own; what nodes have and containers were given of compute
resources are members of Kubernetes' types.
"""

from collections.abc import Mapping

Members = Mapping[str, str]

_OBJECT: Members = {"apiVersion": "s", "kind": "s", "metadata": "#meta_v1.ObjectMeta"}

_SPEC: Members = {
    "allocationMode": "s",
    "parametersRef": "#resource_v1alpha1.ResourceClaimParametersReference",
    "resourceClassName": "s",
}
_STATUS: Members = {"deallocationRequested": "b", "driverName": "s"}
_ALLOCATION: Members = {"resourceHandle": "s", "shareable": "b"}

_CLASSIC_MEMBERS: Mapping[str, Members] = {
    f"resource_{version}.{kind}": members
    for version in ("v1", "v1beta2", "v1beta1")
    for kind, members in (
        ("ResourceClaimSpec", _SPEC),
        ("ResourceClaimStatus", _STATUS),
        ("AllocationResult", _ALLOCATION),
    )
}

FIELDS: Mapping[str, Members] = {
    **_CLASSIC_MEMBERS,
    "core_v1.NodeStatus": {"computeResources": "[#core_v1.ComputeResource"},
    "core_v1.Container": {"allocatedComputeResources": "{[#core_v1.AllocatedResource"},
}
"""Type of the table -> members that it gets."""


def _with_list(kind: str, members: Members) -> Mapping[str, Members]:
    listed = {"items": f"![#{kind}", "apiVersion": "s", "kind": "s", "metadata": "#meta_v1.ListMeta"}
    return {kind: {**_OBJECT, **members}, f"{kind}List": listed}


TYPES: Mapping[str, Members] = {
    **_with_list(
        "resource_v1alpha1.ResourceClass",
        {
            "driverName": "!s",
            "parametersRef": "#resource_v1alpha1.ResourceClassParametersReference",
            "suitableNodes": "#core_v1.NodeSelector",
            "numericParameters": "[#resource_v1alpha1.NumericParameterType",
        },
    ),
    "resource_v1alpha1.NumericParameterType": {
        "kind": "!s",
        "celTemplate": "!s",
        "apiVersion": "s",
        "shareable": "b",
    },
    **_with_list(
        "resource_v1alpha1.NodeResourceCapacity",
        {
            "nodeName": "!s",
            "driverName": "!s",
            "instances": "![#resource_v1alpha1.NodeResourceInstance",
        },
    ),
    "resource_v1alpha1.NodeResourceInstance": {"id": "!s", "apiVersion": "!s", "kind": "!s", "data": "!*"},
    "resource_v1alpha1.ResourceClassParametersReference": {
        "kind": "!s",
        "name": "!s",
        "apiGroup": "s",
        "namespace": "s",
    },
    **_with_list(
        "resource_v1alpha1.ResourceClaim",
        {
            "spec": "#resource_v1alpha1.ResourceClaimSpec",
            "status": "#resource_v1alpha1.ResourceClaimStatus",
        },
    ),
    "resource_v1alpha1.ResourceClaimSpec": {**_SPEC, "devices": "#resource_v1.DeviceClaim"},
    "resource_v1alpha1.ResourceClaimParametersReference": {"kind": "!s", "name": "!s", "apiGroup": "s"},
    "resource_v1alpha1.ResourceClaimStatus": {
        **_STATUS,
        "allocation": "#resource_v1alpha1.AllocationResult",
        "devices": "[#resource_v1.AllocatedDeviceStatus",
        "reservedFor": "[#resource_v1.ResourceClaimConsumerReference",
    },
    "resource_v1alpha1.AllocationResult": {
        **_ALLOCATION,
        "allocationTimestamp": "t",
        "availableOnNodes": "#core_v1.NodeSelector",
        "devices": "#resource_v1.DeviceAllocationResult",
    },
    **_with_list(
        "resource_v1alpha1.ResourceClaimTemplate", {"spec": "#resource_v1alpha1.ResourceClaimTemplateSpec"}
    ),
    "resource_v1alpha1.ResourceClaimTemplateSpec": {
        "metadata": "#meta_v1.ObjectMeta",
        "spec": "#resource_v1alpha1.ResourceClaimSpec",
    },
    **_with_list(
        "resource_v1alpha1.PodScheduling",
        {
            "spec": "#resource_v1alpha1.PodSchedulingSpec",
            "status": "#resource_v1alpha1.PodSchedulingStatus",
        },
    ),
    "resource_v1alpha1.PodSchedulingSpec": {"potentialNodes": "[s", "selectedNode": "s"},
    "resource_v1alpha1.PodSchedulingStatus": {
        "resourceClaims": "[#resource_v1alpha1.ResourceClaimSchedulingStatus"
    },
    "resource_v1alpha1.ResourceClaimSchedulingStatus": {"name": "!s", "unsuitableNodes": "[s"},
    **_with_list("compute_v1alpha1.ResourceClass", {"spec": "!#compute_v1alpha1.ResourceClassSpec"}),
    "compute_v1alpha1.ResourceClassSpec": {
        "deviceClassName": "s",
        "members": "[#compute_v1alpha1.ResourceGroupMember",
        "priority": "i",
        "resourceName": "s",
        "resourceSelector": "[#compute_v1alpha1.ResourcePropertySelector",
        "sameProperty": "[s",
        "scope": "s",
    },
    "compute_v1alpha1.ResourceGroupMember": {
        "resourceName": "!s",
        "amount": "q",
        "count": "i",
        "resourceSelector": "[#compute_v1alpha1.ResourcePropertySelector",
    },
    "compute_v1alpha1.ResourcePropertySelector": {
        "matchExpressions": "[#compute_v1alpha1.ResourceSelectorRequirement"
    },
    "compute_v1alpha1.ResourceSelectorRequirement": {"key": "!s", "operator": "!s", "values": "[s"},
    "core_v1.ComputeResource": {
        "resourceName": "!s",
        "allocatableDevices": "[s",
        "devices": "[s",
        "name": "s",
        "properties": "{s",
    },
    "core_v1.AllocatedResource": {
        "amount": "q",
        "computeResourceName": "s",
        "count": "i",
        "member": "i",
        "resourceName": "s",
    },
}
"""Types that the table does not have."""
