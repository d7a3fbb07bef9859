"""What a controller is, and what it is handed."""

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from allot.api import Gates
from allot.base import Clock, Ids, Metrics
from allot.client import Client
from allot.informers import Events, Handler, Informer, Informers, ResourceId, Telemetry


class Loop(Protocol):
    """Something that runs until it is cancelled: a Reconciler, most often."""

    def run(self) -> Awaitable[None]: ...


@dataclass(frozen=True, slots=True)
class World:
    """All that a controller may touch, for one term of leadership."""

    client: Client  # acts with the controller's own rights
    informers: Informers  # shared by the whole process, with the process's rights
    clock: Clock
    rng: random.Random
    ids: Ids
    metrics: Metrics
    telemetry: Telemetry
    events: Events
    gates: Gates = field(default_factory=Gates)
    authorities: str = ""  # who signs the server's certificate, as PEM; "" if nobody told
    _used: list[Informer] = field(default_factory=list)
    _stops: list[Callable[[], None]] = field(default_factory=list)

    def informer(self, what: ResourceId) -> Informer:
        """Follow a resource until the term ends."""
        informer = self.informers.use(what)
        self._used.append(informer)
        return informer

    def on(self, informer: Informer, handler: Handler) -> None:
        """Hear of changes until the term ends; first of everything that is there."""
        self._stops.append(informer.handle(handler))

    def at_end(self, stop: Callable[[], None]) -> None:
        """Called when the term ends."""
        self._stops.append(stop)

    @property
    def used(self) -> Sequence[Informer]:
        return self._used

    def end(self) -> None:
        """Let go of everything that was asked for."""
        for stop in self._stops:
            stop()
        for informer in self._used:
            self.informers.leave(informer)
        self._stops.clear()
        self._used.clear()


@dataclass(frozen=True, slots=True)
class Controller:
    name: str  # in events, user agents and logs: upstream's name
    account: str  # the service account in kube-system whose rights it acts with
    needs: tuple[ResourceId, ...]  # kept warm while this copy does not lead
    make: Callable[[World], Sequence[Loop]]
