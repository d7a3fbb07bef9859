"""The oldest part of a record, as the state that it came to: what a scheduler would know that began there.

Objects are what was heard of them last; of those that ended or went lately it is kept that they were there,
and where they had been sent, since a scheduler remembers that for a while. Decisions whose writes nobody has
heard of yet hold what is still in flight of what they held: which that is says the scheduler's own snapshot,
since news and answers cross in more ways than can be told twice. Lines are read, never decided.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, assert_never

import msgspec
from msgspec.structs import replace

from allot.allocation import Features
from allot.api import Object
from allot.informers import Added, Deleted, Key, ResourceId
from allot.scheduler import CLAIMS, PODS, SOURCES, Mirror, News, Snapshot

from .lines import AnyLine, Decided, Ended, Flight, Gone, Knows, Set, Term, Told, Wrote, encoded
from .world import taken_for

LATELY_MAX = 4096
"""As many as a scheduler remembers of pods and claims that are gone."""


@dataclass(slots=True)
class _Standing:
    decision: Decided
    is_bound: bool = False  # its writes were made
    is_heard: bool = False  # and the pod came back with its node
    is_over: bool = False  # the pod has ended, or is gone


class _Lately(NamedTuple):
    """What ended or went: as it was before, how, and for a pod the decision that nobody had heard of yet."""

    before: bytes
    end: bytes
    standing: _Standing | None


class Fold:
    def __init__(self) -> None:
        self.at: datetime | None = None
        """When what was added last happened, as far as lines say."""
        self._forget()

    def _forget(self) -> None:
        self._term: Term | None = None
        self._objects: dict[tuple[ResourceId, Key], bytes] = {}
        self._parameters: dict[tuple[ResourceId, Key], bytes] = {}
        self._kinds: dict[tuple[str, str, str], Told] = {}
        self._knows = Knows()
        self._standing: dict[str, _Standing] = {}
        self._finished: set[str] = set()  # pods, by uid
        self._lately: deque[_Lately] = deque(maxlen=LATELY_MAX)
        self._snapshot = Snapshot(Features())  # of claims alone
        self._mirror = Mirror(self._snapshot, self)

    def add(self, line: AnyLine, raw: bytes) -> None:
        """Raises msgspec.DecodeError where an object is none."""
        match line:
            case Term():
                self._forget()
                self._term, self.at = line, line.at
            case Set(what, value, False):
                self._set(what, Object(bytes(value)), raw)
            case Gone(what, value, False):
                self._gone(what, Object(bytes(value)), raw)
            case Set(what, value):
                self._parameters[what, Key.of(Object(bytes(value)))] = raw
            case Gone(what, value):
                self._parameters.pop((what, Key.of(Object(bytes(value)))), None)
            case Wrote(value, instead_of):
                claim = Object(bytes(value))
                if instead_of:
                    self._snapshot.rename_flight(instead_of, claim.uid)
                    self._rename(instead_of, claim.uid)
                self._set(CLAIMS, claim, encoded(Set(CLAIMS, value)))
            case Told():
                self._tell(line)
            case Knows():
                self._knows = _merged(self._knows, line)
            case Decided():
                self.at = line.at
                if line.verdict.node:
                    self._standing[line.pod] = _Standing(line)
                    for flight in line.verdict.flights:
                        self._snapshot.ledger.fly(flight.uid, taken_for(flight))
            case Ended(pod, bound):
                standing = self._standing.get(pod)
                if standing is not None:
                    standing.is_bound = True
                    self._settle(pod, has_failed=not bound)
            case _:
                assert_never(line)

    def lines(self) -> Iterator[bytes]:
        if self._term is None:
            return
        yield encoded(self._term)
        for told in self._kinds.values():
            if told.wanted:
                yield encoded(told)
        yield from self._parameters.values()
        for before, end, standing in self._lately:
            yield before
            if standing is not None:
                yield encoded(self._in_flight(standing))
            yield end
        order = {what: at for at, what in enumerate(SOURCES)}
        for _, raw in sorted(self._objects.items(), key=lambda one: order.get(one[0][0], -1)):
            yield raw
        if self._knows != Knows():
            yield encoded(self._knows)
        for standing in self._standing.values():
            if not standing.is_over:
                yield encoded(self._in_flight(standing))
                if standing.is_bound:
                    yield encoded(Ended(standing.decision.pod, bound=True))

    def _in_flight(self, standing: _Standing) -> Decided:
        """What is left of a decision: neither accepted by the server nor given up."""
        verdict, ledger = standing.decision.verdict, self._snapshot.ledger
        holds = [(one, ledger.hold(one.uid)) for one in verdict.flights]
        left = tuple(one for one, hold in holds if hold is not None and not hold.settled)
        return replace(standing.decision, verdict=replace(verdict, flights=left), folded=True)

    def misread(self, what: ResourceId, object: Object, why: Exception) -> None:
        """The scheduler could not read it either."""

    def well(self, what: ResourceId, object: Object) -> None: ...

    def _tell(self, line: Told) -> None:
        """Objects of a kind that no class names any more are forgotten with it."""
        before = self._kinds.get((line.group, line.version, line.kind))
        self._kinds[line.group, line.version, line.kind] = line
        still = {one.what for one in self._kinds.values() if one.wanted}
        if not line.wanted and before is not None and before.what not in still:
            kept = {key: raw for key, raw in self._parameters.items() if key[0] != before.what}
            self._parameters = kept

    def _set(self, what: ResourceId, object: Object, raw: bytes) -> None:
        key = Key.of(object)
        if what == CLAIMS and not self._mirror.hear(News(CLAIMS, Added(object))):
            return  # SNAP4
        before = self._objects.get((what, key))
        if what == PODS:
            if _is_finished(object) and object.uid not in self._finished:
                self._finished.add(object.uid)
                self._over(object.uid, before, raw)
            if (object.fields.get("spec") or {}).get("nodeName"):
                self._heard(object.uid)
        self._objects[what, key] = raw

    def _gone(self, what: ResourceId, object: Object, raw: bytes) -> None:
        key = Key.of(object)
        before = self._objects.pop((what, key), None)
        if what == CLAIMS:
            self._mirror.hear(News(CLAIMS, Deleted(object)))
        if what in (PODS, CLAIMS):
            self._over(object.uid, before, raw)
        if what == PODS:
            self._finished.discard(object.uid)
            self._heard(object.uid)

    def _over(self, uid: str, before: bytes | None, end: bytes) -> None:
        if before is None:
            return
        standing = self._standing.get(uid)
        if standing is None or standing.is_over:
            self._lately.append(_Lately(before, end, None))
        else:
            standing.is_over = True
            self._lately.append(_Lately(before, end, standing))

    def _heard(self, pod: str) -> None:
        standing = self._standing.get(pod)
        if standing is not None:
            standing.is_heard = True
            self._settle(pod)

    def _settle(self, pod: str, *, has_failed: bool = False) -> None:
        """It is kept until its writes were made, and the pod was heard of with its node."""
        standing = self._standing[pod]
        if has_failed:
            for flight in standing.decision.verdict.flights:
                self._snapshot.ledger.cancel(flight.uid)
        if has_failed or (standing.is_bound and standing.is_heard):
            del self._standing[pod]

    def _rename(self, old: str, new: str) -> None:
        for standing in self._standing.values():
            verdict = standing.decision.verdict
            if any(one.uid == old for one in verdict.flights):
                flights = tuple(_renamed(one, old, new) for one in verdict.flights)
                standing.decision = replace(standing.decision, verdict=replace(verdict, flights=flights))


def _is_finished(pod: Object) -> bool:
    return (pod.fields.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _renamed(flight: Flight, old: str, new: str) -> Flight:
    return replace(flight, uid=new) if flight.uid == old else flight


def _merged(before: Knows, now: Knows) -> Knows:
    def laid(name: str) -> dict[str, object]:
        both = {**getattr(before, name), **getattr(now, name)}
        return {uid: one for uid, one in both.items() if one is not None}

    names = [one.name for one in msgspec.structs.fields(Knows) if one.name != "looked_at"]
    return replace(now, **{name: laid(name) for name in names})
