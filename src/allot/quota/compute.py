"""What the containers of a pod need together.

Containers run side by side, so their needs add up. Init containers run one after the other
before them, so each of them counts only where it alone needs more; those that keep running
(sidecars) stay beside whatever comes after. What the pod says for itself as a whole replaces
the sum, and the overhead of its runtime comes on top.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from allot.api import Fields

from .amounts import Usage, add, parse
from .names import HUGE_PAGES

Side = Literal["requests", "limits"]

_POD_LEVEL = ("cpu", "memory")


def pod_needs(spec: Fields, side: Side) -> Usage:
    """What a pod requests, or is limited to, by resource."""
    running: Usage = {}
    for container in spec.get("containers") or ():
        running = add(running, container_needs(container, side))
    needs = _with_init(running, spec.get("initContainers") or (), side)
    needs.update(pod_level_needs(spec, side))
    overhead = parse(spec.get("overhead"))
    if side == "limits":  # overhead limits nothing that has no limit
        overhead = {name: amount for name, amount in overhead.items() if name in needs}
    return add(needs, overhead)


def container_needs(container: Mapping[str, Any], side: Side) -> Usage:
    return parse((container.get("resources") or {}).get(side))


def pod_level_needs(spec: Fields, side: Side) -> Usage:
    """What is said for the pod as a whole."""
    said = parse((spec.get("resources") or {}).get(side))
    return {
        name: amount for name, amount in said.items() if name in _POD_LEVEL or name.startswith(HUGE_PAGES)
    }


def _with_init(running: Usage, init: Iterable[Mapping[str, Any]], side: Side) -> Usage:
    sidecars: Usage = {}
    peak: Usage = {}
    for container in init:
        own = container_needs(container, side)
        if container.get("restartPolicy") == "Always":
            sidecars = add(sidecars, own)
            peak = _larger(peak, sidecars)
        else:
            peak = _larger(peak, add(sidecars, own))
    return _larger(add(running, sidecars), peak)


def _larger(left: Usage, right: Usage) -> Usage:
    larger = dict(left)
    for name, amount in right.items():
        if name not in larger or amount > larger[name]:
            larger[name] = amount
    return larger
