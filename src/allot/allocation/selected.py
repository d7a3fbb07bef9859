"""Which devices a class selects on a node: for whoever counts devices and does not want any."""

from collections.abc import Mapping

from allot.api import resource

from .expression import selector
from .inventory import NodeView
from .kind import PoolId
from .node import BadNodeSelector
from .pool import usable

Selected = Mapping[PoolId, frozenset[str]]
"""Names of devices, by pool."""


def selected(device_class: resource.DeviceClass, view: NodeView) -> Selected:
    """The devices of complete pools that the node may use and that every selector of the class matches.

    Worked out once for a view; a selector that fails on a device does not match it.
    """
    texts = tuple(one.cel.expression for one in device_class.spec.selectors if one.cel is not None)
    key = ("selected", texts)
    found = view.remembered.get(key)
    if found is None:
        found = view.remembered[key] = _selected(texts, view)
    return found  # type: ignore[return-value]


def _selected(texts: tuple[str, ...], view: NodeView) -> Selected:
    expressions = [selector(text, view.features) for text in texts]
    names: dict[PoolId, list[str]] = {}
    for device in view.devices:
        try:
            is_here = usable(device, view.node)
        except BadNodeSelector:
            continue
        if is_here and all(one.on(device.kind) is True for one in expressions):
            names.setdefault(device.id.pool_id, []).append(device.id.name)
    return {pool: frozenset(found) for pool, found in names.items()}
