"""What containers ask of device plugins, and what they do not."""

from collections.abc import Sequence

from allot.api import Object, core, encode
from allot.nodeagent.deviceplugins.asking import asked
from allot.nodeagent.deviceplugins.loans import Asked

GPU, NIC = "example.com/gpu", "example.com/nic"


def container(name: str, **more: object) -> dict[str, object]:
    of = {key: more.pop(key) for key in ("restartPolicy",) if key in more}
    return {"name": name, "resources": {"requests": more.pop("requests", {})}, **of}


def pod(containers: list, init: Sequence = (), **status: object) -> core.Pod:
    spec = {"containers": containers, "initContainers": [*init]}
    fields = {"metadata": {"name": "p", "uid": "u"}, "spec": spec, "status": status}
    return Object(encode(fields)).view(core.Pod)


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
