"""One step of a script, and the world that it is written for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HOUR_S = 3600.0
PODS = 50


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

    @property
    def components(self) -> tuple[str, ...]:
        schedulers = ("scheduler a", "scheduler b", "scheduler c") if self.real_scheduler else ("scheduler",)
        return ("controllers a", "controllers b", *schedulers)
