"""Selectors of a waiting pod's claims that ask for names which no device publishes.

Such a selector compiles and never matches, and the scheduler can only say that no device did. For a
person the names are looked at: most are mistyped, and the one that was meant is near.
"""

from collections.abc import Iterator

from allot import scheduler
from allot.api import podclaims, resource
from allot.cel import InventoryNames, lint

Ask = resource.ExactDeviceRequest | resource.DeviceSubRequest
Selectors = tuple[resource.DeviceSelector, ...]


def notes(pod: scheduler.PodInfo, snapshot: scheduler.Snapshot) -> tuple[str, ...]:
    """Nothing while no device is published at all: then every name is unknown."""
    if pod.spec.node_name:
        return ()
    expressions = dict.fromkeys(_expressions(pod, snapshot))
    kinds = {device.kind for shelf in snapshot.inventory.slices() for device in shelf.devices}
    if not expressions or not kinds:
        return ()
    published = InventoryNames.of(kind.cel for kind in kinds)
    said = (f"{where}: {one}" for where, text in expressions for one in lint(text, published))
    return tuple(dict.fromkeys(said))


def _expressions(pod: scheduler.PodInfo, snapshot: scheduler.Snapshot) -> Iterator[tuple[str, str]]:
    """Where each stands, and its text."""
    for name in podclaims.names(pod.view):
        claim = snapshot.claim(pod.key._replace(name=name))
        if claim is None or claim.allocation is not None:
            continue
        for request in resource.shape.requests_of(claim.view):
            asks: tuple[Ask, ...] = (request.exactly,) if request.exactly else request.first_available
            for asked in asks:
                yield from _texts(f"claim {name}, request {request.name}", asked.selectors)
                device_class = snapshot.classes.get(asked.device_class_name)
                if device_class is not None:
                    where = f"device class {asked.device_class_name}"
                    yield from _texts(where, device_class.spec.selectors)


def _texts(where: str, selectors: Selectors) -> Iterator[tuple[str, str]]:
    return ((where, one.cel.expression) for one in selectors if one.cel is not None)
