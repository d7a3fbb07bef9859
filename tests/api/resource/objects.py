"""Small valid objects of resource.k8s.io; every argument has a default."""

import copy
from typing import Any

from allot.api import Fields


def claim(*requests: Fields, **devices: Any) -> Fields:
    listed = list(requests) or [request()]
    return {
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"devices": {"requests": listed, **devices}},
    }


def template(*requests: Fields, metadata: Fields | None = None, **devices: Any) -> Fields:
    spec: Fields = {"spec": claim(*requests, **devices)["spec"]}
    if metadata is not None:
        spec["metadata"] = metadata
    return {"metadata": {"name": "t", "namespace": "default"}, "spec": spec}


def request(name: str = "r", **exactly: Any) -> Fields:
    return {"name": name, "exactly": {"deviceClassName": "gpu", **exactly}}


def either(name: str = "r", *alternatives: Fields) -> Fields:
    return {"name": name, "firstAvailable": list(alternatives) or [alternative()]}


def alternative(name: str = "s", **asked: Any) -> Fields:
    return {"name": name, "deviceClassName": "gpu", **asked}


def result(device: str = "gpu-0", request: str = "r", **more: Any) -> Fields:
    return {"request": request, "driver": "d.example.com", "pool": "p", "device": device, **more}


def allocation(*results: Fields, node: str = "", **more: Any) -> Fields:
    found: Fields = {"devices": {"results": list(results) or [result()]}, **more}
    if node:
        found["nodeSelector"] = on_node(node)
    return found


def on_node(name: str) -> Fields:
    chosen = {"key": "metadata.name", "operator": "In", "values": [name]}
    return {"nodeSelectorTerms": [{"matchFields": [chosen]}]}


def pod_reference(uid: str = "u1", name: str = "pod") -> Fields:
    return {"resource": "pods", "name": name, "uid": uid}


def report(device: str = "gpu-0", **more: Any) -> Fields:
    return {"driver": "d.example.com", "pool": "p", "device": device, **more}


def condition(kind: str = "Ready", **more: Any) -> Fields:
    return {
        "type": kind,
        "status": "True",
        "reason": "Fine",
        "message": "",
        "lastTransitionTime": "2026-11-15T08:00:00Z",
        **more,
    }


def slice_(*devices: Fields, **spec: Any) -> Fields:
    made: Fields = {
        "driver": "d.example.com",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n1",
        "devices": list(devices),
        **spec,
    }
    return {
        "metadata": {"name": "s"},
        "spec": {key: value for key, value in made.items() if value is not None},
    }


def device(name: str = "d", **more: Any) -> Fields:
    return {"name": name, **more}


def class_(**spec: Any) -> Fields:
    return {"metadata": {"name": "gpu"}, "spec": spec}


def rule(**taint: Any) -> Fields:
    said = {"key": "example.com/broken", "effect": "NoExecute", **taint}
    return {"metadata": {"name": "r"}, "spec": {"deviceSelector": {}, "taint": said}}


def opaque(**parameters: Any) -> Fields:
    return {"opaque": {"driver": "d.example.com", "parameters": parameters}}


def with_change(fields: Fields, path: str, value: Any) -> Fields:
    """A copy with the member at a dotted path replaced; numbers index lists."""
    changed = copy.deepcopy(fields)
    *way, last = (int(step) if step.isdigit() else step for step in path.split("."))
    holder: Any = changed
    for step in way:
        holder = holder[step]
    holder[last] = value
    return changed
