"""What containers ask of device plugins, and what they do not."""

import json
from collections.abc import Callable, Sequence

from allot.api import Object, compute, core, encode
from allot.nodeagent.deviceplugins.asking import Unrecorded, Wanted, by_name, wanted
from allot.nodeagent.deviceplugins.compute import name as compute_name
from allot.nodeagent.deviceplugins.loans import Asked, Lent, Loan, Part

GPU, NIC = "example.com/gpu", "example.com/nic"


def container(name: str, **more: object) -> dict[str, object]:
    of = {key: more.pop(key) for key in ("restartPolicy",) if key in more}
    return {"name": name, "resources": {"requests": more.pop("requests", {})}, **of}


def pod(containers: list, init: Sequence = (), **status: object) -> core.Pod:
    spec = {"containers": containers, "initContainers": [*init]}
    fields = {"metadata": {"name": "p", "uid": "u"}, "spec": spec, "status": status}
    return Object(encode(fields)).view(core.Pod)


def asked(it: core.Pod, claims: Sequence[str], is_counted: Callable[[str], bool]) -> tuple[Asked, ...]:
    found = wanted(it, claims, is_counted, lambda resource: False)
    assert not found.unrecorded
    return found.asked


def every(resource: str) -> bool:
    return resource in (GPU, NIC)


def test_containers_ask_in_the_order_in_which_they_start():
    it = pod(
        [container("main", requests={NIC: "1", GPU: "2", "cpu": "1"})],
        [
            container("init", requests={GPU: "1"}),
            container("side", requests={GPU: "1"}, restartPolicy="Always"),
        ],
    )
    assert asked(it, (), every) == (
        Asked("init", GPU, 1, ends=True),
        Asked("side", GPU, 1),
        Asked("main", GPU, 2),
        Asked("main", NIC, 1),
    )


def test_nothing_is_asked_of_resources_that_no_plugin_counts_nor_for_zero():
    it = pod([container("main", requests={"example.com/other": "1", GPU: "0"})])
    assert asked(it, (), every) == ()


def mapped(*pairs: tuple[str, str]) -> dict:
    mappings = [
        {"containerName": name, "resourceName": resource, "requestName": "r"} for name, resource in pairs
    ]
    return {"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": mappings}}


def test_what_a_claim_serves_is_not_asked_of_the_plugin():
    """5004-ACT-01"""
    it = pod([container("main", requests={GPU: "1", NIC: "1"})], **mapped(("main", GPU)))
    assert asked(it, ("c",), every) == (Asked("main", NIC, 1),)


def test_a_claim_that_an_attempt_at_another_node_left_the_name_of_serves_nothing():
    """5004-ACT-02"""
    it = pod([container("main", requests={GPU: "1"})], **mapped(("main", GPU)))
    assert asked(it, (), every) == (Asked("main", GPU, 1),)


GOLD, SILVER = "nvidia.com/gpu-0123456789abcdef", "nvidia.com/gpu-fedcba9876543210"


def recorded(name: str, requests: dict, record: dict[str, dict[str, int]], **more: object) -> dict:
    entries = {
        asked: [{"computeResourceName": one, "count": count} for one, count in chosen.items()]
        for asked, chosen in record.items()
    }
    return {**container(name, requests=requests, **more), "allocatedComputeResources": entries}


def exported(resource: str) -> bool:
    return resource == "nvidia.com/gpu"


def test_what_is_recorded_is_asked_for_to_the_letter():
    """14-AGENT-01, 14-AGENT-02: of several names that one plugin's devices serve, it is asked once."""
    requests = {"gpu-gold": "3", "nvidia.com/gpu": "1", "cpu": "1"}
    it = pod([recorded("main", requests, {"gpu-gold": {GOLD: 2, SILVER: 1}, "nvidia.com/gpu": {SILVER: 1}})])
    found = wanted(it, (), every, exported)
    parts = (Part(GOLD, 2), Part(SILVER, 2))
    assert found == Wanted((Asked("main", "nvidia.com/gpu", 4, False, parts),), ())


def test_an_annotation_of_the_pod_means_the_same():
    """14-BIND-12: where the server has no field for it."""
    record = {"main": {"gpu-gold": [{"computeResourceName": GOLD, "count": 2}]}}
    spec = {"containers": [container("main", requests={"gpu-gold": "2"})]}
    annotations = {"compute.allot.dev/allocated": json.dumps(record)}
    it = Object(encode({"metadata": {"name": "p", "annotations": annotations}, "spec": spec})).view(core.Pod)
    assert wanted(it, (), every, exported).asked == (
        Asked("main", "nvidia.com/gpu", 2, False, (Part(GOLD, 2),)),
    )


def test_an_annotation_gives_nothing_that_the_container_does_not_ask_for():
    """14-BIND-08: it would be given past every quota."""
    record = {"main": {"gpu-gold": [{"computeResourceName": GOLD, "count": 2}]}}
    annotations = {"compute.allot.dev/allocated": json.dumps(record)}
    for requests in ({}, {"gpu-gold": "1"}, {"gpu-silver": "2"}):
        spec = {"containers": [container("main", requests=requests)]}
        fields = {"metadata": {"name": "p", "annotations": annotations}, "spec": spec}
        assert wanted(Object(encode(fields)).view(core.Pod), (), every, exported).asked == ()


def test_what_only_a_record_could_serve_and_has_none_is_told():
    """14-AGENT-05; of nothing nothing is asked, and what a claim serves needs no record (14-MIX-04)."""
    it = pod(
        [container("main", requests={"gpu-gold": "1", "nvidia.com/gpu": "1", "none": "0", "by-claim": "1"})],
        **mapped(("main", "by-claim")),
    )
    assert wanted(it, ("c",), every, exported).unrecorded == (
        Unrecorded("main", "gpu-gold"),
        Unrecorded("main", "nvidia.com/gpu"),
    )


def test_devices_are_shown_under_the_names_by_which_they_were_asked_for():
    """A server takes no other names in a container's status."""
    gold, silver = (("model", "v100"),), (("model", "k80"),)
    devices = (Lent("a", (), gold), Lent("b", (), gold), Lent("c", (), silver))
    loan = Loan("u", "main", "nvidia.com/gpu", devices)
    of = {like: compute_name("nvidia.com/gpu", like) for like in (gold, silver)}
    counts = {"gpu-gold": {of[gold]: 1}, "any": {of[gold]: 1, of[silver]: 1}}
    it = pod([recorded("main", {}, counts)])
    assert by_name(loan, compute.records.given(it)["main"]) == {"any": ("a", "c"), "gpu-gold": ("b",)}
    counted = Loan("u", "main", GPU, (Lent("x"),))
    assert by_name(counted, {}) == {GPU: ("x",)}
