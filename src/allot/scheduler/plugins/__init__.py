"""The plugins, in the order in which they are asked: cheap ones first, eviction last."""

from collections.abc import Mapping, Sequence

from allot.base import Ids

from ..framework import Event, FilterPlugin, Plugin
from ..settings import Settings
from .devices import DeviceFit, DynamicResources


def default(ids: Ids, settings: Settings) -> tuple[Plugin, ...]:
    return (
        DynamicResources(ids, settings.policy, binding_timeout_s=settings.binding_timeout_s),
        DeviceFit(),
    )


def events(plugins: Sequence[Plugin]) -> Mapping[str, frozenset[Event]]:
    """What may help a pod that a plugin has rejected."""
    return {one.name: one.events for one in plugins if isinstance(one, FilterPlugin)}
