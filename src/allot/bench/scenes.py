"""What nodes publish and pods ask for, one scene a test.

Sizes are those of upstream's scheduler benchmarks: ten devices a node with 13
attributes and 2 capacities each, unless the test is about something else.
"""

from typing import Any

from .objects import DRIVER, device_class, selector
from .shape import Json, Scene

CLASS = "test-class"
EXTENDED = "example.com/gpu"
_IMPLICIT = "deviceclass.resource.kubernetes.io/"
_MATCH = "resource.kubernetes.io/pcieRoot"


def gpu(number: int, **more: Any) -> dict[str, Any]:
    """13 attributes and 2 capacities, as a data-centre GPU publishes them."""
    attributes = {
        "model": {"string": "Example GPU Max 1550"},
        "family": {"string": "Max Series"},
        "productCode": {"string": "0x0bd5"},
        "vendor": {"string": "0x8086"},
        "firmware": {"version": "2.4.1"},
        "driverVersion": {"version": "1.23.27912"},
        "sriov": {"bool": True},
        "health": {"string": "Healthy"},
        "millicores": {"int": 1000},
        "tiles": {"int": 2},
        "interconnect": {"string": "xe-link"},
        "resource.kubernetes.io/numaNode": {"int": number % 2},
        _MATCH: {"string": f"pci0000:0{number % 2}"},
    }
    capacity = {"memory": {"value": "128Gi"}, "cores": {"value": "1024"}}
    return {"name": f"gpu-{number:02d}", "attributes": attributes, "capacity": capacity, **more}


def request(name: str = "gpu", count: int = 1, **more: Any) -> dict[str, Any]:
    exactly = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": count, **more}
    return {"name": name, "exactly": exactly}


def claim(*requests: Json, constraints: tuple[Json, ...] = ()) -> dict[str, Any]:
    devices: dict[str, Any] = {"requests": [*requests]}
    if constraints:
        devices["constraints"] = [*constraints]
    return {"devices": devices}


_CLASSES = (device_class(CLASS),)
_TEN = tuple(gpu(number) for number in range(10))

TEMPLATE = Scene(_CLASSES, _TEN, claim=claim(request()))

SELECTOR = Scene(
    _CLASSES,
    _TEN,
    claim=claim(
        request(
            selectors=[
                selector(
                    f'device.attributes["{DRIVER}"].firmware.isGreaterThan(semver("2.0.0")) && '
                    f'device.capacity["{DRIVER}"].memory.compareTo(quantity("64Gi")) >= 0'
                )
            ]
        )
    ),
)

MATCH = Scene(
    _CLASSES,
    _TEN,
    room=2,
    claim=claim(
        *(request(f"gpu-{number}") for number in range(5)), constraints=({"matchAttribute": _MATCH},)
    ),
)
"""Five of one root. Two claims fill a node."""

SHARED = Scene(_CLASSES, _TEN[:2], claim=claim(request()), pods_per_claim=5)


def extended(classes: int, *, implicit: bool = False) -> Scene:
    """Pods take turns in naming the classes, all of which offer every device."""
    named = [(f"{CLASS}-{number}", f"{EXTENDED}-{number}") for number in range(classes)]
    return Scene(
        tuple(device_class(name, "" if implicit else resource) for name, resource in named),
        _TEN,
        requests=tuple({f"{_IMPLICIT}{name}" if implicit else resource: "1"} for name, resource in named),
    )


def scoring(classes: int) -> Scene:
    """One class is asked for; the others are there to be told apart from it."""
    names = [EXTENDED, *(f"{EXTENDED}-{number}" for number in range(1, classes))]
    offered = tuple(device_class(f"{CLASS}-{number}", name) for number, name in enumerate(names))
    return Scene(offered, _TEN, requests=({"cpu": "100m", "memory": "500Mi", EXTENDED: "1"},))


CONSUMABLE = Scene(
    _CLASSES,
    tuple(
        {
            **gpu(number),
            "name": f"nic-{number}",
            "allowMultipleAllocations": True,
            "attributes": {**gpu(number)["attributes"], "family": {"string": f"port-{number}"}},
            "capacity": {"bandwidth": {"value": "20G", "requestPolicy": {"default": "1G"}}},
        }
        for number in range(2)
    ),
    room=8,
    claim=claim(
        request("nic", 2, capacity={"requests": {"bandwidth": "2500M"}}),
        constraints=({"distinctAttribute": f"{DRIVER}/family"},),
    ),
)
"""A share of each of two ports: eight claims fill a node."""


def _draws(memory: str, *groups: str) -> dict[str, Any]:
    drawn: dict[str, Any] = {"counterSet": "card", "counters": {"memory": {"value": memory}}}
    return {"consumesCounters": [{**drawn, "compatibilityGroups": [*groups]} if groups else drawn]}


def _card(memory: str) -> tuple[Json, ...]:
    return ({"name": "card", "counters": {"memory": {"value": memory}}},)


PARTITIONABLE = Scene(
    _CLASSES,
    (gpu(0, **_draws("80Gi")), *(gpu(number, **_draws("40Gi")) for number in range(1, 5))),
    _card("80Gi"),
    room=1,
    claim=claim(request(count=2)),
)
"""A card whole or in halves: whoever wants two devices gets halves, and the node is full."""

BACKTRACKING = Scene(
    _CLASSES,
    (gpu(0, **_draws("2Gi")), *(gpu(number, **_draws("1Gi")) for number in range(1, 8))),
    _card("7Gi"),
    room=1,
    claim=claim(request(count=7)),
)
"""Seven of eight fit, but never with the first."""

GROUPS = Scene(
    _CLASSES,
    tuple(gpu(number, **_draws("40Gi", f"mode-{number % 2}")) for number in range(4)),
    _card("80Gi"),
    room=1,
    claim=claim(request(count=2)),
)
"""Two halves of one mode; the modes alternate."""

TAINTED = Scene(
    _CLASSES,
    tuple(
        gpu(number, taints=[{"key": "example.com/repair", "value": "soon", "effect": "NoSchedule"}])
        for number in range(10)
    ),
    claim=claim(
        request(tolerations=[{"key": "example.com/repair", "operator": "Exists", "effect": "NoSchedule"}])
    ),
)


def _tiles(count: int) -> Json:
    return selector(f'device.attributes["{DRIVER}"].tiles == {count}')


FIRST_AVAILABLE = Scene(
    _CLASSES,
    _TEN,
    claim=claim(
        {
            "name": "gpu",
            "firstAvailable": [
                {"name": "large", "deviceClassName": CLASS, "selectors": [_tiles(8)]},
                {"name": "medium", "deviceClassName": CLASS, "selectors": [_tiles(4)]},
                {"name": "small", "deviceClassName": CLASS, "selectors": [_tiles(2)]},
            ],
        }
    ),
)
"""The first two wishes come true nowhere."""


def _links(number: int) -> Json:
    """47 values: one that its half of the devices shares, the others shared with a few neighbours."""
    others = [f"link-{(number * 13 + step) % 120:03d}" for step in range(46)]
    return {
        "name": f"nic-{number:02d}",
        "attributes": {"links": {"strings": [f"half-{number % 2}", *others]}, "index": {"int": number}},
    }


LISTS = Scene(
    _CLASSES,
    tuple(_links(number) for number in range(64)),
    room=2,
    claim=claim(
        *(request(f"nic-{number}") for number in range(32)),
        constraints=({"matchAttribute": f"{DRIVER}/links"},),
    ),
)
