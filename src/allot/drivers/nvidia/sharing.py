"""How containers of one claim share its GPU, as a claim or a class may say:

    kind: GpuConfig
    sharing:
      strategy: TimeSlicing
      timeSlicingConfig: {interval: Long}

Every GPU slices time; the interval says how long one process goes before the next has its turn. NVIDIA's
other strategy, MPS, needs a server beside each claim, and is refused by name. Pure.
"""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from allot.driver import Config, NotUsable

Interval = Literal["Default", "Short", "Medium", "Long"]
INTERVALS: Final[tuple[Interval, ...]] = ("Default", "Short", "Medium", "Long")
"""In the order of the numbers that the driver gives them."""
VARIABLE: Final = "GPU_TIME_SLICE"


class _Part(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True): ...


class TimeSlicing(_Part, frozen=True):
    interval: Interval = "Default"


class Sharing(_Part, frozen=True):
    strategy: str = "TimeSlicing"
    time_slicing_config: TimeSlicing = TimeSlicing()


class GpuConfig(Config, frozen=True):
    sharing: Sharing | None = None


def interval(configs: Iterable[Config], device: str, is_whole: bool) -> Interval | None:
    """What was asked for last: the claim's own word counts more than its class's. None: nothing was.
    Raises NotUsable."""
    asked = [one.sharing for one in configs if isinstance(one, GpuConfig) and one.sharing is not None]
    if not asked:
        return None
    if asked[-1].strategy != "TimeSlicing":
        raise NotUsable(
            f"GpuConfig for {device}: sharing.strategy is {asked[-1].strategy!r}, and this driver has "
            "TimeSlicing alone"
        )
    if not is_whole:
        raise NotUsable(
            f"GpuConfig for {device}: time is sliced on whole GPUs, and this is a partition of one"
        )
    return asked[-1].time_slicing_config.interval
