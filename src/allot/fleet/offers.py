"""What an administrator adds to hardware: device classes, and claim templates to begin with.

`gpu.example.com` also answers to the extended resource `example.com/gpu` (KEP-5004), which
nodes with a device plugin count in their capacity; so the same pod fits on both.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from . import fabric, gpu, nic

Fields = dict[str, Any]

EXTENDED_GPU = "example.com/gpu"
CARD, PORT = "nvidia.com/gpu", "sfc.com/nic"
"""Raw names of what device plugins export with properties."""
GPU, PARTITION, NIC, ACCELERATOR = (
    "gpu.example.com",
    "mig.example.com",
    "nic.example.com",
    "accelerator.example.com",
)

_SELECTORS: Mapping[str, str] = {
    GPU: f'device.driver == "{gpu.DRIVER}" && device.attributes["{gpu.DRIVER}"].type == "gpu"',
    PARTITION: f'device.driver == "{gpu.DRIVER}" && device.attributes["{gpu.DRIVER}"].type == "mig"',
    NIC: f'device.driver == "{nic.DRIVER}"',
    ACCELERATOR: f'device.driver == "{fabric.DRIVER}"',
}


def device_class(name: str) -> Fields:
    spec: Fields = {"selectors": [{"cel": {"expression": _SELECTORS[name]}}]}
    if name == GPU:
        spec["extendedResourceName"] = EXTENDED_GPU
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": spec,
    }


def _one(name: str, device_class: str, **more: Any) -> Fields:
    return {"name": name, "exactly": {"deviceClassName": device_class, **more}}


def _profile(name: str) -> list[Fields]:
    return [{"cel": {"expression": f'device.attributes["{gpu.DRIVER}"].profile == "{name}"'}}]


def _same_root(*requests: str) -> list[Fields]:
    return [{"requests": [*requests], "matchAttribute": gpu.PCIE_ROOT}]


_BANDWIDTH_100G = {"requests": {"bandwidth": "100G"}}

_CLAIMS: Mapping[str, Fields] = {
    "one-gpu": {"requests": [_one("gpu", GPU)]},
    "two-gpus": {
        "requests": [_one("gpus", GPU, count=2)],
        "constraints": _same_root("gpus"),
    },
    "half-gpu": {"requests": [_one("part", PARTITION, selectors=_profile("3g.40gb"))]},
    "small-gpu": {
        "requests": [
            {
                "name": "gpu",
                "firstAvailable": [
                    {"name": "smallest", "deviceClassName": PARTITION, "selectors": _profile("1g.10gb")},
                    {"name": "small", "deviceClassName": PARTITION, "selectors": _profile("2g.20gb")},
                    {"name": "whole", "deviceClassName": GPU},
                ],
            }
        ]
    },
    "network-100g": {"requests": [_one("nic", NIC, capacity=_BANDWIDTH_100G)]},
    "gpu-and-network": {
        "requests": [_one("gpu", GPU), _one("nic", NIC, capacity=_BANDWIDTH_100G)],
        "constraints": _same_root("gpu", "nic"),
    },
    "accelerator": {"requests": [_one("accelerator", ACCELERATOR)]},
}


def templates(classes: Iterable[str], namespace: str = "default") -> tuple[Fields, ...]:
    """The examples that these classes can serve."""
    offered = frozenset(classes)
    return tuple(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"spec": {"devices": devices}},
        }
        for name, devices in _CLAIMS.items()
        if _classes_of(devices) <= offered
    )


def _classes_of(devices: Fields) -> set[str]:
    asked = set()
    for request in devices["requests"]:
        for wanted in (request.get("exactly"), *request.get("firstAvailable", ())):
            if wanted:
                asked.add(wanted["deviceClassName"])
    return asked
