"""The objects of a made-up world with classic claims, as people and drivers write them."""

from typing import Any

from allot.api import Object
from allot.client import Client

from .things import CLASSIC_TEMPLATES, Fields

GROUP, VERSION = "resource.k8s.io", "v1alpha1"
DRIVERS = ("fabric.example.com", "board.example.com")
"""Each has so many devices on every node, and a class of its own."""
CLASSES = {"fabric": DRIVERS[0], "board": DRIVERS[1]}
DEVICES_PER_NODE = 2
TEMPLATES = dict(zip(CLASSIC_TEMPLATES, CLASSES, strict=True))
"""Of claims for one pod, by the class that they are of."""
TWINS = ("twin-a", "twin-b")
"""Claims of which only one pod at a time may have both."""
COMMON, INSTANT = "common", "instant"
"""One that pods share, and one that its driver allocates at once."""
CLAIMS = {**dict.fromkeys(TWINS, "fabric"), COMMON: "board", INSTANT: "board"}
FORGETFUL = "forgetful-scheduler"


class ClassicThings:
    def __init__(self, client: Client) -> None:
        self.resourceclasses = client.resource(GROUP, VERSION, "resourceclasses", namespaced=False)
        self.resourceclaims = client.resource(GROUP, VERSION, "resourceclaims")
        self.resourceclaimtemplates = client.resource(GROUP, VERSION, "resourceclaimtemplates")
        self.noderesourcecapacities = client.resource(
            GROUP, VERSION, "noderesourcecapacities", namespaced=False
        )
        self.podschedulings = client.resource(GROUP, VERSION, "podschedulings")


def resource_class(name: str) -> Fields:
    return {"metadata": {"name": name}, "driverName": CLASSES[name]}


def claim(name: str) -> Fields:
    mode = "Immediate" if name == INSTANT else "WaitForFirstConsumer"
    return {"metadata": {"name": name}, "spec": {"resourceClassName": CLAIMS[name], "allocationMode": mode}}


def template(name: str) -> Fields:
    return {"metadata": {"name": name}, "spec": {"spec": {"resourceClassName": TEMPLATES[name]}}}


def is_left_by_ours(pod: Object) -> bool:
    """Whether our scheduler has bound it, with classic claims."""
    spec = pod.fields["spec"]
    names = {one["name"] for one in spec.get("resourceClaims") or ()}
    is_ours = spec.get("schedulerName", "default-scheduler") == "default-scheduler"
    return bool(spec.get("nodeName")) and is_ours and bool(names & {*TEMPLATES, *CLAIMS})


def left_behind(pod: Object) -> Fields:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
    node = pod.fields["spec"]["nodeName"]
    spec = {"selectedNode": node, "potentialNodes": [node]}
    return {"metadata": {"name": pod.name, "ownerReferences": [owner]}, "spec": spec}


def finalizer_of(driver: str) -> str:
    return f"{driver}/deletion-protection"


def consumer(name: str, uid: str) -> Fields:
    return {"resource": "pods", "name": name, "uid": uid}


def only_on(node: str) -> Fields:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def node_of(allocation: Any) -> str:
    """For which an allocation was made, in either version; "" for every node."""
    selector = allocation.get("availableOnNodes") or allocation.get("nodeSelector") or {}
    for term in selector.get("nodeSelectorTerms") or ():
        for one in term.get("matchFields") or ():
            return str(one["values"][0])
    return ""
