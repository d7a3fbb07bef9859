"""What the containers of a pod need together: one arithmetic for quota, scheduling and nodes.

Containers run side by side, so their needs add up. Init containers run one after the other
before them, so each of them counts only where it alone needs more; those that keep running
(sidecars) stay beside whatever comes after. What the pod says for itself as a whole replaces
the sum, and the overhead of its runtime comes on top.

A pod is read as its fields (the write path) or as a typed view (whoever decides); both come
together in `_together`, so they cannot count differently.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from .core import PodSpec
from .kind import Fields
from .kinds.amounts import is_extended
from .quantity import Quantity
from .resource.limits import IMPLICIT_EXTENDED_RESOURCE_PREFIX

Amounts = dict[str, Quantity]
"""Resource name -> amount. A name that is absent counts nothing."""

Side = Literal["requests", "limits"]

HUGE_PAGES: Final = "hugepages-"
_POD_LEVEL = ("cpu", "memory")
_SIDECAR = "Always"


# -- a pod as a view ----------------------------------------------------------------------------


def requests(spec: PodSpec) -> Amounts:
    """What a pod requests, by resource."""
    return _together(
        [parse(one.resources.requests) for one in spec.containers],
        [(parse(one.resources.requests), one.is_sidecar) for one in spec.init_containers],
        whole=_pod_level(spec.resources.requests if spec.resources is not None else None),
        overhead=parse(spec.overhead),
    )


def is_extended_resource(name: str) -> bool:
    """Whether devices may stand behind a name: `example.com/gpu`, or the implicit name of a class."""
    return name.startswith(IMPLICIT_EXTENDED_RESOURCE_PREFIX) or is_extended(name)


# -- a pod as its fields ------------------------------------------------------------------------


def pod_needs(spec: Fields, side: Side) -> Amounts:
    """What a pod requests, or is limited to, by resource."""
    return _together(
        [container_needs(one, side) for one in spec.get("containers") or ()],
        [
            (container_needs(one, side), one.get("restartPolicy") == _SIDECAR)
            for one in spec.get("initContainers") or ()
        ],
        whole=pod_level_needs(spec, side),
        overhead=parse(spec.get("overhead")),
        overhead_adds_names=side == "requests",
    )


def container_needs(container: Mapping[str, Any], side: Side) -> Amounts:
    return parse((container.get("resources") or {}).get(side))


def pod_level_needs(spec: Fields, side: Side) -> Amounts:
    """What is said for the pod as a whole."""
    return _pod_level((spec.get("resources") or {}).get(side))


# -- the arithmetic -----------------------------------------------------------------------------


def _together(
    containers: Iterable[Amounts],
    init: Iterable[tuple[Amounts, bool]],
    *,
    whole: Amounts,
    overhead: Amounts,
    overhead_adds_names: bool = True,
) -> Amounts:
    """`init` says of each init container whether it keeps running."""
    running: Amounts = {}
    for own in containers:
        running = added(running, own)
    needs = _with_init(running, init)
    needs.update(whole)
    if not overhead_adds_names:  # overhead limits nothing that has no limit
        overhead = {name: amount for name, amount in overhead.items() if name in needs}
    return added(needs, overhead)


def _with_init(running: Amounts, init: Iterable[tuple[Amounts, bool]]) -> Amounts:
    sidecars: Amounts = {}
    peak: Amounts = {}
    for own, keeps_running in init:
        beside = added(sidecars, own)
        if keeps_running:
            sidecars = beside
        peak = _larger(peak, beside)
    return _larger(added(running, sidecars), peak)


def added(left: Mapping[str, Quantity], right: Mapping[str, Quantity]) -> Amounts:
    total = dict(left)
    for name, amount in right.items():
        total[name] = total[name] + amount if name in total else amount
    return total


def _larger(left: Amounts, right: Amounts) -> Amounts:
    larger = dict(left)
    for name, amount in right.items():
        if name not in larger or amount > larger[name]:
            larger[name] = amount
    return larger


def _pod_level(said: Mapping[str, Any] | None) -> Amounts:
    return {
        name: amount
        for name, amount in parse(said).items()
        if name in _POD_LEVEL or name.startswith(HUGE_PAGES)
    }


def parse(written: Mapping[str, Any] | None) -> Amounts:
    """Amounts as an object writes them."""
    return {name: Quantity.parse(amount) for name, amount in (written or {}).items()}
