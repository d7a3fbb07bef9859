"""The claim that stands for a pod's extended resources, from the thought to what is left of it.

It is an ordinary ResourceClaim with an annotation, owned by the pod. Until a node is chosen it
exists only in memory, under a name that no real claim can have; it is created right before the
pod is bound, allocated and reserved like any other, and then the pod's status says which
container uses which of its requests.

A pod has one at most (C5). What an earlier attempt left is found by its owner, never by its
name. Where it has its devices, and they are what is wanted, the next attempt goes on with it:
somebody may be busy making them ready. Otherwise it is removed first.
"""

from hashlib import sha256
from typing import Any

import msgspec

from allot.api import Object, core, meta, resource

from .asked import Asked
from .requests import DeviceRequests, in_words

IN_MEMORY_NAME = "<extended-resources>"
TOLD_NAME = "for extended resources"
ANNOTATION = resource.limits.EXTENDED_RESOURCE_CLAIM_ANNOTATION

_SUFFIX = "-extended-resources-"
_NAME_MAX = 253
_LETTERS = 5
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # what generated names end with: no words come of it


def in_memory(pod: core.Pod, devices: DeviceRequests) -> resource.ResourceClaim:
    """The claim to find devices for. Its uid is good for the ledger until the server has given one."""
    return resource.ResourceClaim(
        metadata=meta.ObjectMeta(
            name=IN_MEMORY_NAME, namespace=pod.metadata.namespace, uid=in_memory_uid(pod.metadata.uid)
        ),
        spec=resource.ResourceClaimSpec(devices=resource.DeviceClaim(requests=devices.requests)),
    )


def in_users_words(claim: resource.ResourceClaim, asked: Asked) -> resource.ResourceClaim:
    """The claim under the names that people gave: for words, and for nothing that is written."""
    words = in_words(asked)
    requests = tuple(
        msgspec.structs.replace(one, name=words.get(one.name, one.name))
        for one in claim.spec.devices.requests
    )
    return resource.ResourceClaim(
        metadata=meta.ObjectMeta(name=TOLD_NAME, uid=claim.metadata.uid),
        spec=resource.ResourceClaimSpec(devices=resource.DeviceClaim(requests=requests)),
    )


def in_memory_uid(pod_uid: str) -> str:
    """One claim a pod, so the pod's uid makes it unique."""
    return f"{pod_uid}/extended-resources"


def body(pod: core.Pod, devices: DeviceRequests) -> dict[str, Any]:
    """What to create."""
    metadata = pod.metadata
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata.name, "uid": metadata.uid}
    return {
        "apiVersion": f"{resource.limits.GROUP}/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": claim_name(metadata.name, metadata.uid),
            "generateName": generate_name(metadata.name),
            "namespace": metadata.namespace,
            "annotations": {ANNOTATION: "true"},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {"devices": {"requests": [_written(one) for one in devices.requests]}},
    }


def generate_name(pod: str) -> str:
    return pod[: _NAME_MAX - len(_SUFFIX) - _LETTERS].rstrip(".-") + _SUFFIX


def claim_name(pod: str, uid: str) -> str:
    """Looks like a generated name and follows from the pod's uid: a create that is tried again,
    because nobody knows whether the first one arrived, cannot make a second claim (C5)."""
    number = int.from_bytes(sha256(uid.encode()).digest()[:8])
    letters = ""
    for _ in range(_LETTERS):
        number, at = divmod(number, len(_ALPHABET))
        letters += _ALPHABET[at]
    return generate_name(pod) + letters


def _written(request: resource.DeviceRequest) -> dict[str, Any]:
    exactly = request.exactly or resource.ExactDeviceRequest()
    return {
        "name": request.name,
        "exactly": {
            "deviceClassName": exactly.device_class_name,
            "allocationMode": exactly.allocation_mode,
            "count": exactly.count,
        },
    }


def status_patch(pod_uid: str, claim_name: str, devices: DeviceRequests) -> dict[str, Any]:
    """A merge patch of pods/status. With the uid, so that a later pod of that name is left alone."""
    status = {"resourceClaimName": claim_name, "requestMappings": list(devices.written_mappings())}
    return {"metadata": {"uid": pod_uid}, "status": {"extendedResourceClaimStatus": status}}


# -- what is there already ------------------------------------------------------------------------


def asks_for(claim: resource.ResourceClaim, devices: DeviceRequests) -> bool:
    """Whether a claim was made for just this."""
    return [_written(one) for one in claim.spec.devices.requests] == [
        _written(one) for one in devices.requests
    ]


def owner_of(metadata: meta.ObjectMeta) -> str | None:
    """The uid of the pod that a claim was made for, if it stands for extended resources."""
    if metadata.annotations.get(ANNOTATION) != "true":
        return None
    owner = metadata.controlling_pod
    return owner.uid if owner is not None else None


def pods_of(object: Object) -> tuple[str, ...]:
    """An index function: the pod that a claim was made for."""
    uid = owner_of(object.view(resource.ResourceClaim).metadata)
    return (uid,) if uid is not None else ()
