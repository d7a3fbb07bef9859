"""How the devices of a pod's containers are, as its status shows it. Pure."""

from collections.abc import Callable, Sequence

from allot.api import Object, core
from allot.node import Container, DeviceHealth, Observed

from . import views
from .giving import Given, by_ask
from .health import Shown, Which
from .told import Entry


def with_health(
    pod: Object, seen: Observed, entries: Sequence[Entry], health_of: Callable[[Which], Shown]
) -> tuple[Container, ...]:
    """The containers of the pod, each with what it asked for and how that is."""
    if not entries:
        return seen.containers
    view, spec = pod.view(core.Pod), {one.name: one for one in pod.view(views.Pod).spec.containers}

    def shown(device: Given) -> DeviceHealth:
        driver, one = device
        found = health_of(Which(driver, one.pool, one.name))
        name = one.cdi_ids[0] if one.cdi_ids else f"{driver}/{one.pool}/{one.name}"
        return DeviceHealth(name, *found)

    return tuple(
        one._replace(
            health=tuple(
                # Two devices may have one name for the runtime; a status lists it once.
                (name, tuple({found.id: found for found in map(shown, devices)}.values()))
                for name, devices in by_ask(view, spec[one.name], entries)
            )
        )
        for one in seen.containers
    )
