"""The claim for extended resources: made, told to the pod, and found again. KEP-5004 "Resource Claim API"."""

import pytest

from allot.allocation import Demand, Features, read_demand
from allot.api import Object, encode, names
from allot.scheduler.extended import (
    IN_MEMORY_NAME,
    Delegation,
    body,
    claim_name,
    device_requests,
    generate_name,
    in_memory,
    owner_of,
    pods_of,
    read_asked,
    status_patch,
)
from scheduler.extended.objects import EXTENDED, GPU, container, device_class, pod

POD = pod(container(gpu=2), name="web-7d5", uid="pod-uid")
DEVICES = device_requests(read_asked(POD.spec), Delegation(((EXTENDED, GPU),)))


def test_the_claim_to_create():
    """5004-CLAIM-06."""
    made = body(POD, DEVICES)
    assert made["metadata"].pop("name") == claim_name("web-7d5", "pod-uid")
    assert made == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": "web-7d5-extended-resources-",
            "namespace": "default",
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "web-7d5", "uid": "pod-uid", "controller": True}
            ],
        },
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "container-0-request-0",
                        "exactly": {"deviceClassName": GPU, "allocationMode": "ExactCount", "count": 2},
                    }
                ]
            }
        },
    }


def test_what_the_pod_is_told():
    patch = status_patch("pod-uid", "web-7d5-extended-resources-abcde", DEVICES)
    assert patch["metadata"] == {"uid": "pod-uid"}
    assert patch["status"]["extendedResourceClaimStatus"] == {
        "resourceClaimName": "web-7d5-extended-resources-abcde",
        "requestMappings": [
            {"containerName": "main", "resourceName": EXTENDED, "requestName": "container-0-request-0"}
        ],
    }


def test_in_memory_it_has_a_name_that_no_claim_can_have():
    """5004-CLAIM-16."""
    claim = in_memory(POD, DEVICES)
    assert claim.metadata.name == IN_MEMORY_NAME
    assert names.subdomain(IN_MEMORY_NAME)
    assert claim.metadata.namespace == "default"
    assert claim.metadata.uid != in_memory(pod(name="web-7d5", uid="later"), DEVICES).metadata.uid


def test_the_allocator_reads_it_like_any_claim():
    demand = read_demand([in_memory(POD, DEVICES)], {GPU: device_class()}, Features.of([]))
    assert isinstance(demand, Demand)
    (alternative,) = demand.alternatives()
    assert (alternative.name, alternative.count) == ("container-0-request-0", 2)


@pytest.mark.parametrize("pod_name", ["p", "p" * 230, "p" * 227 + ".q", "p" * 226 + "-q-r", "p" * 253])
def test_the_name_can_be_made_of_any_pods_name(pod_name):
    name = claim_name(pod_name, "pod-uid")
    assert name.startswith(generate_name(pod_name))
    assert name[-6] == "-"
    assert not names.subdomain(name)
    assert not names.subdomain(generate_name(pod_name).removesuffix("-"))


def test_trying_again_makes_the_same_claim_and_a_later_pod_another():
    """C5: nobody may know whether the first create arrived."""
    assert claim_name("p", "one") == claim_name("p", "one") != claim_name("p", "other")


# -- found again --------------------------------------------------------------------------------


def made(annotations=None, **owner):
    fields = body(POD, DEVICES)
    fields["metadata"]["name"] = "c"
    if annotations is not None:
        fields["metadata"]["annotations"] = annotations
    fields["metadata"]["ownerReferences"][0] |= owner
    return Object(encode(fields))


def test_a_leftover_is_found_by_the_pod_that_owns_it():
    assert pods_of(made()) == ("pod-uid",)


@pytest.mark.parametrize(
    "other",
    [
        made(annotations={}),
        made(annotations={"resource.kubernetes.io/extended-resource-claim": "web-7d5"}),
        made(controller=False),
        made(kind="Job", apiVersion="batch/v1"),
        made(kind="Service"),
        made(apiVersion="example.com/v1"),
    ],
    ids=[
        "an ordinary claim",
        "another annotation",
        "an owner that does not manage it",
        "of a job",
        "of a service",
        "of another kind of pod",
    ],
)
def test_other_claims_are_left_alone(other):
    """5004-CLAIM-20."""
    assert pods_of(other) == ()


def test_a_claim_of_an_earlier_pod_of_that_name_is_not_this_pods():
    assert pods_of(made(uid="earlier")) == ("earlier",)


def test_an_ownerless_claim_is_nobodys():
    fields = body(POD, DEVICES)
    del fields["metadata"]["ownerReferences"]
    assert pods_of(Object(encode(fields))) == ()
    assert owner_of(POD.metadata) is None
