"""A scheduler's knowledge, as its record tells it: at every decision the same snapshot that it had."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from allot.allocation import Overlap, Taken, taken_by
from allot.api import Gates, Object, resource
from allot.informers import Added, Deleted, ResourceId, Updated
from allot.scheduler import (
    CLAIMS,
    NOTHING_KNOWN,
    KindTold,
    Known,
    LeftOff,
    Mirror,
    News,
    ParameterKind,
    PodInfo,
    PodTold,
    Snapshot,
    Standing,
    snapshot_for,
)

from .lines import Decided, Ended, Flight, Gone, Knows, Set, Told, Verdict, Wrote

T = TypeVar("T")


class HeldTwice(msgspec.Struct, frozen=True, order=True):
    """D1 is broken, as far as the record tells."""

    device: str
    claims: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.device} is held by {' and '.join(self.claims)}"


class World:
    def __init__(self, gates: Gates, names: tuple[str, ...]) -> None:
        self.snapshot: Snapshot = snapshot_for(gates)
        self.pods: dict[str, PodInfo] = {}
        """As they were heard of last, by uid; those that are gone too."""
        self.held_twice: set[HeldTwice] = set()
        """Devices that a decision gave away while others held them, or that the server gave to two claims."""
        self._mirror = Mirror(self.snapshot, self, names, self.pods.get)
        self._held: dict[str, tuple[str, ...]] = {}  # claims, by the pod that they were decided for
        self._known = NOTHING_KNOWN

    # -- what was heard -------------------------------------------------------------------------

    def hear(self, line: Set | Gone | Told | Wrote) -> None:
        match line:
            case Set(what, value, parameters):
                self._hear(News(what, Added(Object(bytes(value))), parameters))
            case Gone(what, value, parameters):
                self._hear(News(what, Deleted(Object(bytes(value))), parameters))
            case Wrote(value, instead_of):
                claim = Object(bytes(value))
                if instead_of:
                    self.snapshot.rename_flight(instead_of, claim.uid)
                    self._held = {
                        pod: tuple(claim.uid if one == instead_of else one for one in held)
                        for pod, held in self._held.items()
                    }
                self._hear(News(CLAIMS, Updated(claim, claim)))
            case Told():
                self._tell(KindTold(ParameterKind(line.group, line.version, line.kind), _standing(line)))

    def _hear(self, news: News) -> None:
        for one in self._mirror.hear(news):
            if isinstance(one, PodTold):
                self.pods[one.pod.uid] = one.pod

    def _tell(self, told: KindTold) -> None:
        if told.standing is None:
            self.snapshot.parameters.forget(told.kind)
        else:
            self.snapshot.parameters.stand(told.kind, told.standing)

    def misread(self, what: ResourceId, object: Object, why: Exception) -> None:
        """The scheduler could not read it either."""

    def well(self, what: ResourceId, object: Object) -> None: ...

    # -- what was known and decided ---------------------------------------------------------------

    def know(self, line: Knows) -> None:
        known = self._known
        stops = {uid: LeftOff(*one) if one is not None else None for uid, one in line.left_off.items()}
        self._known = Known(
            _laid(known.nominated, line.nominated),
            _laid(known.evicted, line.evicted),
            _laid(known.charged, line.charged),
            _laid(known.left_off, stops),
            line.looked_at,
        )

    def remember(self) -> None:
        """What the scheduler had in mind when it decided next, whatever was decided here."""
        snapshot, wanted = self.snapshot, self._known.nominated
        for uid, node in snapshot.prospects.known.nominated.items():
            if wanted.get(uid) != node:
                snapshot.unnominate(uid)
        for uid, node in wanted.items():
            if snapshot.prospects.nomination(uid) != node and uid in self.pods:
                snapshot.nominate(self.pods[uid], node)
        snapshot.prospects.know(self._known, self.pods)

    def do(self, decided: Decided) -> None:
        """What was decided then."""
        pod, verdict = self.pods.get(decided.pod), decided.verdict
        if pod is None or not verdict.node:
            return
        for flight in verdict.flights:
            self._tell_of(self.snapshot.ledger.fly(flight.uid, taken_for(flight)))
        self._held[decided.pod] = tuple(one.uid for one in verdict.flights)
        if self.snapshot.place_of(pod.uid) is None:
            self.snapshot.place(_taking(pod, verdict), verdict.node)

    def look(self) -> None:
        """Whether the server has given a device to two claims. What is only in flight for one of them is not
        its yet: of two schedulers that want a device the slower one is refused."""
        ledger = self.snapshot.ledger
        for overlap in ledger.overlaps():
            holds = [ledger.hold(uid) for uid in overlap.claims]
            if sum(one is not None and one.settled for one in holds) > 1:
                self._tell_of([overlap])

    def _tell_of(self, overlaps: Iterable[Overlap]) -> None:
        for one in overlaps:
            claims = sorted({self._name(uid) for uid in one.claims})
            self.held_twice.add(HeldTwice(str(one.device), tuple(claims)))

    def _name(self, uid: str) -> str:
        claim = self.snapshot.claim_with(uid)
        return str(claim.key) if claim is not None else uid

    def end(self, line: Ended) -> None:
        """Of a binding. What failed is given back."""
        held = self._held.pop(line.pod, ())
        if line.bound:
            return
        for uid in held:
            self.snapshot.ledger.cancel(uid)
        placed = self.snapshot.pod(line.pod)
        if placed is not None and not placed.spec.node_name:
            self.snapshot.remove(line.pod)


def taken_for(flight: Flight) -> tuple[Taken, ...]:
    results = resource.DeviceAllocationResult(results=flight.devices)
    return taken_by(resource.AllocationResult(devices=results))


def _taking(pod: PodInfo, verdict: Verdict) -> PodInfo:
    return pod.taking(verdict.compute) if verdict.compute else pod


def _standing(line: Told) -> Standing | None:
    return Standing(line.what, line.why_not) if line.wanted else None


def _laid(before: Mapping[str, T], changes: Mapping[str, T | None]) -> dict[str, T]:
    both = {**before, **changes}
    return {uid: one for uid, one in both.items() if one is not None}
