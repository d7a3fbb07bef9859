"""The author's functions, called as the author may rely on.

    CALLING1  At most as many run at once as the author allows; one, unless told otherwise. So a driver
              that keeps its state in memory needs no locks.
    CALLING2  A call that was begun comes to its end, also when this process stops leading or ends.

Plain functions may take their time: they run in a thread. Coroutine functions run in the loop.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from allot.api import Object
from allot.base import Clock, Metrics
from allot.informers import ResourceId

from ..deeds import done
from ..places import check_name
from .parameters import Kinds
from .values import (
    Allocate,
    Answers,
    Ask,
    Claim,
    Deallocate,
    NotUsable,
    Unsuitable,
    UnsuitableNodes,
)

log = logging.getLogger(__name__)

T = TypeVar("T")
REFRESH_S = 30.0
LONG_S = 60.0
"""A call that takes longer is told to whoever reads the log: others wait for it, pods among them."""


def everywhere_suitable(asks: Sequence[Ask], nodes: Sequence[str]) -> Unsuitable:
    """For a driver whose devices reach every node, and that has enough of them."""
    return {}


def nothing_held(claims: Sequence[Claim]) -> None:
    """For a driver that keeps no records of its own."""


@dataclass(frozen=True, slots=True)
class Controller:
    """A driver's half in the control plane, as its author declares it."""

    name: str
    allocate: Allocate
    deallocate: Deallocate
    unsuitable_nodes: UnsuitableNodes = everywhere_suitable
    begin: Callable[[Sequence[Claim]], Any] = nothing_held
    """Called first, whenever this process begins to lead: these claims hold something or may do so. Whatever
    else the driver's own records have is unneeded."""
    follows: dict[ResourceId, Callable[[Sequence[Object]], Any]] = field(default_factory=dict)
    """The driver's own objects, such as its inventory: called with all of them, now and after changes."""
    snapshot: Callable[[], Any] | None = None
    """For autoscalers: the driver's state as it is now, to be asked about nodes that may not exist
    (`extender.Snapshot`)."""
    node_ready: Callable[[str], bool] | None = None
    """For autoscalers: whether the driver can answer for a node that has just come."""
    class_kinds: Kinds = None  # of parameters that a class may refer to
    claim_kinds: Kinds = None
    at_once: int = 1  # calls
    refresh_s: float = REFRESH_S

    def __post_init__(self) -> None:
        check_name(self.name)

    def main(self, argv: Sequence[str] | None = None) -> int:
        """As a program: reads flags, runs until interrupted, returns the exit status."""
        from .run import main

        return main(self, argv)


class Calls:
    def __init__(self, controller: Controller, clock: Clock, metrics: Metrics) -> None:
        self._driver = controller
        self._clock = clock
        self._free = asyncio.Semaphore(controller.at_once)
        self._took = metrics.histogram(
            "allot_driver_controller_call_seconds", "How long a function of the driver took.", "function"
        )
        self._failed = metrics.counter(
            "allot_driver_controller_call_errors_total", "Calls that raised.", "function"
        )

    async def allocate(self, asks: Sequence[Ask], node: str | None) -> Answers:
        return await self._call("allocate", self._driver.allocate, asks, node) or {}

    async def deallocate(self, claim: Claim) -> None:
        await self._call("deallocate", self._driver.deallocate, claim)

    async def unsuitable_nodes(self, asks: Sequence[Ask], nodes: Sequence[str]) -> Unsuitable:
        return await self._call("unsuitable_nodes", self._driver.unsuitable_nodes, asks, nodes) or {}

    async def begin(self, claims: Sequence[Claim]) -> None:
        await self._call("begin", self._driver.begin, claims)

    async def follow(self, what: ResourceId, objects: Sequence[Object]) -> None:
        await self._call("follow", self._driver.follows[what], objects)

    async def snapshot(self) -> Any:
        """Taken while no other function runs."""
        return await self._call("snapshot", self._driver.snapshot)

    async def _call(self, name: str, deed: Any, *about: Any) -> Any:
        async with self._free:
            began_s = self._clock.monotonic_s()
            running = asyncio.ensure_future(done(deed, *about))
            alarm = asyncio.get_running_loop().call_later(LONG_S, _tell_of_long, name)
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                await asyncio.wait((running,))  # CALLING2
                raise
            except NotUsable:
                raise
            except Exception:
                self._failed.add(1, name)
                raise
            finally:
                alarm.cancel()
                self._took.observe(self._clock.monotonic_s() - began_s, name)


def _tell_of_long(name: str) -> None:
    log.warning("the driver's %s has not returned for %.0f s: it is waited for", name, LONG_S)
