"""What a person may choose about a scheduler."""

from dataclasses import dataclass

from allot.allocation import LEAST_WASTE, Policy

from .pod import DEFAULT_SCHEDULER

BINDING_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Settings:
    names: tuple[str, ...] = (DEFAULT_SCHEDULER,)  # the pods that are ours, by spec.schedulerName
    policy: Policy = LEAST_WASTE
    packed: bool = False  # fill nodes up, rather than spread
    binding_timeout_s: float = BINDING_TIMEOUT_S  # for devices that must be made ready first
