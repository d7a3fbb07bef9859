"""What drivers were told of each claim, and what they answered. Pure.

A claim is here from the moment before the first driver is told to prepare it until the last one has
unprepared it. In between pods of the node use it; the last one out ends it.

              begin(pod)                 answered(driver)                leave(pod): the last one
    nothing ────────────► about to be ───────────────────► prepared ──────────────────────────────┐
       ▲                       │ begin again after a failure: told again, with the effect of once  │
       └───────────────────────┴──────────── unprepared(driver), all of them ◄──── leaving ◄──────┘

What it promises
    TOLD1  A driver is told of a claim only while the claim is here (N6): `begin` comes before the
           call, and a claim goes only when each of its drivers has unprepared it.
    TOLD2  A claim is unprepared only when no pod of the node uses it, and while that lasts no pod
           begins to use it.
    TOLD3  One name, one claim: a claim of the same name and another uid waits until the old one is gone.
    TOLD4  All claims of a pod that one driver has to do with are one batch.
    TOLD5  Which claims are prepared is known of this process alone: a new one tells the drivers again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from allot.api import Object, resource
from allot.node import ClaimRef, NotReady

Batches = Mapping[str, tuple[ClaimRef, ...]]
"""For each driver the claims that it is to be told of, in one call (TOLD4)."""

PREPARE, UNPREPARE, EVERYTHING = "NodePrepareResources", "NodeUnprepareResources", "*"


class Device(NamedTuple):
    """One that a driver has prepared."""

    pool: str
    name: str
    requests: tuple[str, ...] = ()  # of the claim; none: it belongs to all of them
    cdi_ids: tuple[str, ...] = ()
    share_id: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A driver's part in a claim."""

    skipped: frozenset[str] = frozenset()  # operations that it does not want to hear of
    devices: tuple[Device, ...] = ()
    handle: str | None = None  # of a classic claim: what its driver wants to be handed

    def hears(self, operation: str) -> bool:
        return self.skipped.isdisjoint((operation, EVERYTHING))


@dataclass(frozen=True, slots=True)
class Entry:
    claim: ClaimRef
    parts: Mapping[str, Part]  # by driver
    pods: frozenset[str] = field(default_factory=frozenset)

    @property
    def is_classic(self) -> bool:
        return any(part.handle is not None for part in self.parts.values())


def wanted(claim: Object) -> Entry:
    """What an allocated claim asks of its drivers.

    An operation is left out only if all devices of the driver do without it.
    """
    view = claim.view(resource.ResourceClaim)
    ref = ClaimRef(claim.uid, claim.namespace, claim.name)
    if resource.shape.is_classic(view):
        handle = view.status.allocation.resource_handle if view.status.allocation is not None else ""
        return Entry(ref, {view.status.driver_name: Part(handle=handle)})
    results = view.status.allocation.devices.results if view.status.allocation is not None else ()
    skipped: dict[str, frozenset[str]] = {}
    for one in results:
        mine = frozenset(one.skip_node_operations)
        if EVERYTHING in mine:
            mine |= {PREPARE, UNPREPARE}
        skipped[one.driver] = skipped.get(one.driver, mine) & mine
    parts = {driver: Part(operations) for driver, operations in sorted(skipped.items())}
    return Entry(ref, parts)


def require_registered(
    entries: Iterable[Entry], registered: Iterable[str], classic: Iterable[str] = ()
) -> None:
    """The first pass, which changes nothing. Raises NotReady.

    Also of what is prepared: a pod starts only where it could be ended.
    """
    structured_ones, classic_ones = frozenset(registered), frozenset(classic)
    for entry in entries:
        for driver, part in entry.parts.items():
            known = structured_ones if part.handle is None else classic_ones
            if driver not in known and (part.hears(PREPARE) or part.hears(UNPREPARE)):
                raise NotReady(
                    f"claim {entry.claim.name}: DRA driver {driver} is not registered on this node"
                )


class Told:
    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        """`entries` are what an earlier process has left."""
        self._entries = {entry.claim.uid: entry for entry in entries}
        self._prepared: set[tuple[str, str]] = set()  # claim, driver (TOLD5)
        self._leaving: set[str] = set()

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(sorted(self._entries.values(), key=lambda entry: entry.claim))

    def part(self, driver: str, claim: str) -> Part:
        """A driver's part in a claim; an empty one where there is none any more."""
        entry = self._entries.get(claim)
        return entry.parts.get(driver, Part()) if entry is not None else Part()

    def claims_of(self, pod: str) -> tuple[ClaimRef, ...]:
        return tuple(entry.claim for entry in self.of(pod))

    def of(self, pod: str) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if pod in entry.pods)

    # -- preparing ------------------------------------------------------------------------------

    def begin(self, pod: str, claims: Sequence[Entry]) -> bool:
        """The pod uses these, all or none. Whether anything is new. Raises NotReady."""
        for claim in (entry.claim for entry in claims):
            self._require_free(claim)
        is_new = False
        for entry in claims:
            known = self._entries.get(entry.claim.uid, entry)
            if pod not in known.pods:
                self._entries[entry.claim.uid] = replace(known, pods=known.pods | {pod})
                is_new = True
        return is_new

    def _require_free(self, claim: ClaimRef) -> None:
        for other in self._entries.values():
            if other.claim[1:] == claim[1:] and other.claim.uid != claim.uid:  # TOLD3
                raise NotReady(
                    f"old ResourceClaim with same name {claim.name} and different UID {other.claim.uid} "
                    "still exists on this node"
                )
        if claim.uid in self._leaving:  # TOLD2
            raise NotReady(f"claim {claim.name} is being unprepared")

    def to_prepare(self, pod: str) -> Batches:
        """What the drivers of this pod's claims have not yet answered (TOLD5)."""
        return _batches(
            (driver, entry.claim)
            for entry in self.of(pod)
            for driver, part in entry.parts.items()
            if part.hears(PREPARE) and (entry.claim.uid, driver) not in self._prepared
        )

    def answered(self, driver: str, claim: str, devices: Iterable[Device]) -> None:
        """The driver has prepared the claim. Of a claim that is gone by now nothing is kept."""
        entry = self._entries.get(claim)
        if entry is None or driver not in entry.parts or claim in self._leaving:
            return
        part = replace(entry.parts[driver], devices=tuple(devices))
        self._entries[claim] = replace(entry, parts={**entry.parts, driver: part})
        self._prepared.add((claim, driver))

    # -- unpreparing ----------------------------------------------------------------------------

    def leave(self, pod: str) -> Batches:
        """The pod uses its claims no more; what has to be unprepared for that (TOLD2)."""
        found = []
        for entry in self.of(pod):
            uid = entry.claim.uid
            if entry.pods != {pod}:
                self._entries[uid] = replace(entry, pods=entry.pods - {pod})
                continue
            self._leaving.add(uid)
            silent = [driver for driver, part in entry.parts.items() if not part.hears(UNPREPARE)]
            for driver in silent:
                self.unprepared(driver, uid)
            if not entry.parts:
                self._drop(uid)
            found += [(driver, entry.claim) for driver in entry.parts if driver not in silent]
        return _batches(found)

    def unprepared(self, driver: str, claim: str) -> None:
        """TOLD1: the claim goes with the last of its drivers."""
        entry = self._entries.get(claim)
        if entry is None:
            return
        self._prepared.discard((claim, driver))
        left = {name: part for name, part in entry.parts.items() if name != driver}
        self._entries[claim] = replace(entry, parts=left)
        if not left:
            self._drop(claim)

    def _drop(self, claim: str) -> None:
        self._entries.pop(claim, None)
        self._leaving.discard(claim)


def _batches(found: Iterable[tuple[str, ClaimRef]]) -> Batches:
    batches: dict[str, list[ClaimRef]] = {}
    for driver, claim in found:
        batches.setdefault(driver, []).append(claim)
    return {driver: tuple(batches[driver]) for driver in sorted(batches)}
