"""The plugins, in the order in which they are asked: cheap ones first, eviction last."""

from collections.abc import Callable, Mapping, Sequence

from allot.base import Ids

from ..framework import CycleState, Event, FilterPlugin, Plugin, offering
from ..settings import Settings
from .balanced import NodeResourcesBalancedAllocation
from .claims import ResourceClaims
from .classic import ClassicAsk, ClassicResources
from .compute import ComputeResources
from .devices import DeviceFit, DynamicResources
from .node_affinity import NodeAffinity
from .node_name import NodeName
from .node_resources_fit import NodeResourcesFit
from .node_unschedulable import NodeUnschedulable
from .numeric import NumericResources
from .preemption import DefaultPreemption
from .scheduling_gates import SchedulingGates
from .taint_toleration import TaintToleration
from .unheeded import InterPodAffinity, PodTopologySpread

NUMERIC = NumericResources.name


def default(ids: Ids, settings: Settings) -> tuple[Plugin, ...]:
    decide = deciding(ids, settings)
    return (*decide, DefaultPreemption(decide))


def deciding(ids: Ids, settings: Settings) -> tuple[Plugin, ...]:
    """Those that decide where a pod goes as things are: nobody is evicted for it."""
    return (
        SchedulingGates(),
        InterPodAffinity(),
        PodTopologySpread(),
        NodeUnschedulable(),
        NodeName(),
        TaintToleration(),
        NodeAffinity(),
        NodeResourcesFit(settings.scoring),
        NodeResourcesBalancedAllocation(settings.scoring),
        ComputeResources(),
        ResourceClaims(binding_timeout_s=settings.binding_timeout_s),
        NumericResources(ids),
        ClassicResources(),
        DynamicResources(ids, settings.policy),
        DeviceFit(),
    )


def about_claims(ids: Ids, budget: int) -> tuple[Plugin, ...]:
    """Those that decide where a pod finds the devices of its claims: nothing else counts."""
    return (ResourceClaims(), DynamicResources(ids, budget=budget))


def events(plugins: Sequence[Plugin]) -> Mapping[str, frozenset[Event]]:
    """What may help a pod that a plugin has rejected."""
    return {one.name: one.events for one in offering(plugins, FilterPlugin)}


def classic_ask(state: CycleState) -> ClassicAsk | None:
    """What drivers are to allocate for a signed pod, if anything."""
    ask: ClassicAsk | None = state.read.get(ClassicResources.name)
    return ask


def template_failures(plugins: Sequence[Plugin]) -> Callable[[], int]:
    """How many expansions of numeric templates have failed since these plugins are there."""
    numeric = [one for one in plugins if isinstance(one, NumericResources)]
    return lambda: sum(one.asking.failures for one in numeric)


def known_as(plugin: str) -> str:
    """The name under which people know a plugin, from upstream's profiles and documents."""
    return (
        DynamicResources.name
        if plugin in (ResourceClaims.name, ClassicResources.name, NumericResources.name)
        else plugin
    )
