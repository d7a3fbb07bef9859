"""One step of a script, and the world that it is written for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .lots import Lots

HOUR_S = 3600.0
PODS = 50
NODES = 5
SHARE_WITH_AGENTS = 0.5
SHARE_WITH_CLASSIC = 0.5
SHARE_WITH_COMPUTE = 0.5
SHARE_WITH_NUMERIC = 0.5
SHARE_WITH_AUTOSCALER = 0.5
CLASSIC_DRIVERS = ("classic driver a", "classic driver b")
FORGETFUL = "scheduler d"
AUTOSCALERS = ("autoscaler a", "autoscaler b")


def name_of(number: int) -> str:
    return f"node-{number % NODES}"


@dataclass(frozen=True, slots=True)
class Step:
    at_s: float
    line: str  # of the story
    deed: str
    of: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        told = " ".join(f"{name}={value}" for name, value in self.of.items())
        return f"{self.deed} {told}".strip()


@dataclass(frozen=True, slots=True)
class Scope:
    """How large a world is, and what may happen in it."""

    seconds: float = HOUR_S
    pods: int = PODS
    node_churn: bool = True
    real_scheduler: bool = False
    """Ours, in two copies and one more for some pods, with drivers that publish anew; else a stand-in."""

    agents: float = SHARE_WITH_AGENTS
    """With the real scheduler, in so large a part of the worlds one or two nodes have real agents and
    drivers."""

    def agent_nodes(self, lots: Lots) -> tuple[str, ...]:
        """Which nodes of a seed's world have one."""
        lot = lots.draw("agents")
        if not self.real_scheduler or lot[0] >= self.agents:
            return ()
        return tuple(name_of(NODES - 1 - number) for number in range(1 if lot[1] < 0.5 else 2))

    classic: float = SHARE_WITH_CLASSIC
    """With the real scheduler, in so large a part of the worlds there are classic claims, drivers that are
    not to be relied on, and a scheduler that remembers nothing."""

    def has_classic(self, lots: Lots) -> bool:
        return self.real_scheduler and lots.draw("classic")[0] < self.classic

    compute: float = SHARE_WITH_COMPUTE
    """With the real scheduler, in so large a part of the worlds nodes without agents export compute
    resources,
    and pods ask for classes of them."""

    def has_compute(self, lots: Lots) -> bool:
        return self.real_scheduler and lots.draw("compute")[0] < self.compute

    numeric: float = SHARE_WITH_NUMERIC
    """With the real scheduler, in so large a part of the worlds there are claims with numeric parameters, and
    capacity that shrinks."""

    def has_numeric(self, lots: Lots) -> bool:
        return self.real_scheduler and lots.draw("numeric")[0] < self.numeric

    autoscaler: float = SHARE_WITH_AUTOSCALER
    """With the real scheduler, in so large a part of the worlds there is an autoscaler in two copies, and
    a provider of nodes that is not to be relied on."""

    def has_autoscaler(self, lots: Lots) -> bool:
        return self.real_scheduler and lots.draw("autoscaler")[0] < self.autoscaler

    @property
    def components(self) -> tuple[str, ...]:
        schedulers = ("scheduler a", "scheduler b", "scheduler c") if self.real_scheduler else ("scheduler",)
        return ("controllers a", "controllers b", *schedulers)
