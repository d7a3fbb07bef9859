"""The objects of a made-up world, as people write them, and the resources they are written to."""

from collections.abc import Mapping, Sequence
from typing import Any

from allot.client import Client

FINALIZER = "resource.kubernetes.io/delete-protection"
DRIVER = "gpu.example.com"
CLASS = "gpu"
EXTENDED = "example.com/gpu"
TEMPLATE, SHARED = "one-gpu", "shared"
KEPT = "sim.allot.dev/kept"
"""A label: nobody in this world deletes the object, so it goes only with its owners or its namespace."""

PREPARED = "preparedclaims"
URGENT = "urgent"
"""A priority: pods that have it may take the place of others."""
Fields = dict[str, Any]


class Things:
    """The resources that are written by whoever lives in the world."""

    def __init__(self, client: Client) -> None:
        self.namespaces = client.resource("", "v1", "namespaces", namespaced=False)
        self.nodes = client.resource("", "v1", "nodes", namespaced=False)
        self.pods = client.resource("", "v1", "pods")
        self.configmaps = client.resource("", "v1", "configmaps")
        self.resourcequotas = client.resource("", "v1", "resourcequotas")
        self.resourceclaims = client.resource("resource.k8s.io", "v1", "resourceclaims")
        self.resourceclaimtemplates = client.resource("resource.k8s.io", "v1", "resourceclaimtemplates")
        self.resourceslices = client.resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)
        self.deviceclasses = client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
        self.devicetaintrules = client.resource("resource.k8s.io", "v1", "devicetaintrules", namespaced=False)
        self.priorityclasses = client.resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
        self.deployments = client.resource("apps", "v1", "deployments")
        self.daemonsets = client.resource("apps", "v1", "daemonsets")
        self.statefulsets = client.resource("apps", "v1", "statefulsets")
        self.jobs = client.resource("batch", "v1", "jobs")
        self.cronjobs = client.resource("batch", "v1", "cronjobs")
        self.leases = client.resource("coordination.k8s.io", "v1", "leases")
        self.prepared = client.resource("node.allot.dev", "v1alpha1", PREPARED, namespaced=False)

    def of(self, plural: str) -> Any:
        return getattr(self, plural)


def claim_spec(count: int = 1) -> Fields:
    request: Fields = {"name": "gpu", "exactly": {"deviceClassName": CLASS, "count": count}}
    return {"devices": {"requests": [request]}}


PAIR, PART, PORT = "pair", "part", "port"
CLASSIC_TEMPLATES = ("fabric-own", "board-own")
NUMERIC_TEMPLATES = ("frob-one", "frob-two", "frob-three")
SELECTOR = f'device.attributes["{DRIVER}"].model == "large"'
BOARD = f"{DRIVER}/board"
SHARING = "shared.example.com"
"""The driver of devices that are parts of a card, and of one port that many share."""


def pair_template() -> Fields:
    """Two large devices on one board."""
    selectors = [{"cel": {"expression": SELECTOR}}]
    exactly = {"deviceClassName": CLASS, "count": 2, "selectors": selectors}
    constraint = {"requests": ["gpu"], "matchAttribute": BOARD}
    devices = {"requests": [{"name": "gpu", "exactly": exactly}], "constraints": [constraint]}
    return {"metadata": {"name": PAIR}, "spec": {"spec": {"devices": devices}}}


def sharing_templates() -> list[Fields]:
    """Any part of a card; three tenths of a port."""
    part = {"name": "part", "exactly": {"deviceClassName": PART}}
    bandwidth = {"requests": {"bandwidth": "3"}}
    port = {"name": "port", "exactly": {"deviceClassName": PORT, "capacity": bandwidth}}
    return [
        {"metadata": {"name": request["name"]}, "spec": {"spec": {"devices": {"requests": [request]}}}}
        for request in (part, port)
    ]


def claim(name: str) -> Fields:
    return {"metadata": {"name": name}, "spec": claim_spec()}


def template(edition: int = 1) -> Fields:
    labels = {"edition": str(edition)}
    return {"metadata": {"name": TEMPLATE}, "spec": {"metadata": {"labels": labels}, "spec": claim_spec()}}


def pod(name: str, claims: Sequence[str] = (), *, extended: int = 0) -> Fields:
    """`claims` are "own" and names of templates for claims from templates, else names of claims."""
    return {"metadata": {"name": name}, "spec": pod_spec(claims, extended=extended)}


def node(name: str, conditions: Sequence[Mapping[str, Any]]) -> Fields:
    room = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "40"}
    status = {"conditions": list(conditions), "capacity": room, "allocatable": room}
    return {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "status": status}


def pod_spec(
    claims: Sequence[str], *, image: str = "app:1", restart: str = "Never", extended: int = 0
) -> Fields:
    templates = {
        "own": TEMPLATE,
        **{one: one for one in (PAIR, PART, PORT, *CLASSIC_TEMPLATES, *NUMERIC_TEMPLATES)},
    }
    entries = [
        {"name": one, "resourceClaimTemplateName": templates[one]}
        if one in templates
        else {"name": one, "resourceClaimName": one}
        for one in claims
    ]
    resources: Fields = {"claims": [{"name": one} for one in claims]} if claims else {}
    if extended:
        resources |= {"requests": {EXTENDED: str(extended)}, "limits": {EXTENDED: str(extended)}}
    container = {"name": "main", "image": "app:1", "command": ["app"], "resources": resources}
    spec: Fields = {"restartPolicy": restart, "containers": [container]}
    return {**spec, "resourceClaims": entries} if entries else spec


def helper() -> Fields:
    """A container that asks for none of its pod's devices."""
    return {"name": "helper", "image": "app:1", "command": ["help"]}


def deployment(name: str, replicas: int, claims: Sequence[str], strategy: str) -> Fields:
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "strategy": {"type": strategy},
            **_selecting(name, pod_spec(claims, restart="Always")),
        },
    }


def daemon_set(name: str, claims: Sequence[str]) -> Fields:
    return {"metadata": {"name": name}, "spec": _selecting(name, pod_spec(claims, restart="Always"))}


def stateful_set(name: str, replicas: int, claims: Sequence[str], policy: str) -> Fields:
    selecting = _selecting(name, pod_spec(claims, restart="Always"))
    spec = {"replicas": replicas, "podManagementPolicy": policy, "serviceName": name, **selecting}
    return {"metadata": {"name": name}, "spec": spec}


def cron_job(name: str, minutes: int, policy: str) -> Fields:
    """A job every so many minutes."""
    template = {"spec": {"backoffLimit": 1, "template": {"spec": pod_spec(())}}}
    spec = {"schedule": f"*/{minutes} * * * *", "concurrencyPolicy": policy, "jobTemplate": template}
    return {"metadata": {"name": name}, "spec": spec}


def job(name: str, completions: int, parallelism: int, claims: Sequence[str], mode: str) -> Fields:
    spec: Fields = {
        "completions": completions,
        "parallelism": parallelism,
        "completionMode": mode,
        "backoffLimit": 4,
        "template": {"spec": pod_spec(claims)},
    }
    return {"metadata": {"name": name}, "spec": spec}


def _selecting(name: str, spec: Fields) -> Fields:
    labels = {"app": name}
    return {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": spec},
    }


def configmap(name: str, owners: Sequence[Mapping[str, Any]] = (), *, kept: bool = False) -> Fields:
    metadata: Fields = {"name": name}
    if owners:
        metadata["ownerReferences"] = [dict(one) for one in owners]
    if kept:
        metadata["labels"] = {KEPT: "true"}
    return {"metadata": metadata}


def quota(name: str, hard: Mapping[str, int]) -> Fields:
    return {"metadata": {"name": name}, "spec": {"hard": {key: str(value) for key, value in hard.items()}}}


def device_classes() -> list[Fields]:
    kind = f'device.attributes["{SHARING}"].kind'
    selectors = {
        CLASS: f'device.driver == "{DRIVER}"',
        PART: f'device.driver == "{SHARING}" && {kind} == "part"',
        PORT: f'device.driver == "{SHARING}" && {kind} == "port"',
    }
    classes: list[Fields] = [
        {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": text}}]}}
        for name, text in selectors.items()
    ]
    classes[0]["spec"]["extendedResourceName"] = EXTENDED
    return classes


def taint_rule(name: str, device: Mapping[str, Any], what: str, effect: str) -> Fields:
    """For the device, its pool, or all devices of its driver."""
    parts = ("driver", "pool", "device")
    selector = {part: device[part] for part in parts[: parts.index(what) + 1]}
    taint = {"key": "example.com/unhealthy", "effect": effect}
    return {"metadata": {"name": name}, "spec": {"deviceSelector": selector, "taint": taint}}


def slices_of(node: str, devices: int, generation: int = 1, parts: int = 1) -> list[Fields]:
    """A pool in so many slices; every other device is large, and four are on a board. A driver that
    publishes in parts names its devices anew: whoever has them before the last part came took half
    a pool for the whole."""
    prefix = f"gpu-{generation}" if parts > 1 else "gpu"
    pool = {"name": node, "generation": generation, "resourceSliceCount": parts}
    listed = [
        {
            "name": f"{prefix}-{at}",
            "attributes": {"model": {"string": ("large", "small")[at % 2]}, "board": {"int": at // 4}},
        }
        for at in range(devices)
    ]
    return [
        {
            "metadata": {"name": f"{node}-{part}"},
            "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": listed[part::parts]},
        }
        for part in range(parts)
    ]


def sharing_slices(node: str) -> list[Fields]:
    """A card of four parts that can be had whole, in halves and in quarters, and a port for many."""
    pool = {"name": f"{node}-shared", "generation": 1, "resourceSliceCount": 2}
    sizes = {"whole": 4, "half-0": 2, "half-1": 2, **{f"quarter-{at}": 1 for at in range(4)}}
    devices: list[Fields] = [
        {
            "name": name,
            "attributes": {"kind": {"string": "part"}},
            "consumesCounters": [{"counterSet": "card", "counters": {"parts": {"value": str(size)}}}],
        }
        for name, size in sizes.items()
    ]
    port = {"name": "port", "attributes": {"kind": {"string": "port"}}, "allowMultipleAllocations": True}
    devices.append({**port, "capacity": {"bandwidth": {"value": "10"}}})
    spec = {"driver": SHARING, "nodeName": node, "pool": pool}
    counters = [{"name": "card", "counters": {"parts": {"value": "4"}}}]
    return [
        {"metadata": {"name": f"{node}-counters"}, "spec": {**spec, "sharedCounters": counters}},
        {"metadata": {"name": f"{node}-shared"}, "spec": {**spec, "devices": devices}},
    ]
