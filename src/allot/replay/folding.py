"""The oldest part of a record, as the state that it came to: what a scheduler would know that began there.

Objects are what was heard of them last; of those that went lately it is kept that they were there, since a
scheduler remembers that for a while. Decisions whose writes nobody has heard of yet hold what they held.
Lines are read, never decided: folding needs no scheduler.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

import msgspec
from msgspec.structs import replace

from allot.api import Object
from allot.informers import Key, ResourceId
from allot.scheduler import CLAIMS, PODS, SOURCES, is_newer

from .lines import AnyLine, Decided, Ended, Flight, Gone, Knows, Set, Term, Told, Wrote, encoded

LATELY_MAX = 4096
"""As many as a scheduler remembers of pods and claims that are gone."""


@dataclass(slots=True)
class _Standing:
    decision: Decided
    is_bound: bool = False  # its writes were made
    is_heard: bool = False  # and the pod came back with its node


class Fold:
    def __init__(self) -> None:
        self.at: datetime | None = None
        """When what was added last happened, as far as lines say."""
        self._forget()

    def _forget(self) -> None:
        self._term: Term | None = None
        self._objects: dict[tuple[ResourceId, Key], bytes] = {}
        self._parameters: dict[tuple[ResourceId, Key], bytes] = {}
        self._versions: dict[Key, Object] = {}  # claims, for what is newer
        self._kinds: dict[tuple[str, str, str], Told] = {}
        self._knows = Knows()
        self._standing: dict[str, _Standing] = {}
        self._lately: deque[tuple[ResourceId, bytes, bytes]] = deque(maxlen=LATELY_MAX)

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
            case Ended(pod, bound):
                standing = self._standing.get(pod)
                if standing is not None:
                    standing.is_bound = True
                    self._settle(pod, is_over=not bound)
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
        for _, before, gone in self._lately:
            yield before
            yield gone
        order = {what: at for at, what in enumerate(SOURCES)}
        for _, raw in sorted(self._objects.items(), key=lambda one: order.get(one[0][0], -1)):
            yield raw
        if self._knows != Knows():
            yield encoded(self._knows)
        for standing in self._standing.values():
            yield encoded(replace(standing.decision, folded=True))
            if standing.is_bound:
                yield encoded(Ended(standing.decision.pod, bound=True))

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
        if what == CLAIMS:
            known = self._versions.get(key)
            if known is not None and not is_newer(object, known):
                return  # SNAP4
            self._versions[key] = object
        if what == PODS and (object.fields.get("spec") or {}).get("nodeName"):
            self._heard(object.uid)
        self._objects[what, key] = raw

    def _gone(self, what: ResourceId, object: Object, raw: bytes) -> None:
        key = Key.of(object)
        before = self._objects.pop((what, key), None)
        if what == CLAIMS:
            self._versions.pop(key, None)
        if what == PODS:
            self._heard(object.uid)
        if what in (PODS, CLAIMS) and before is not None:
            self._lately.append((what, before, raw))

    def _heard(self, pod: str) -> None:
        standing = self._standing.get(pod)
        if standing is not None:
            standing.is_heard = True
            self._settle(pod)

    def _settle(self, pod: str, *, is_over: bool = False) -> None:
        """It is kept until its writes were made, and the pod was heard of with its node."""
        standing = self._standing[pod]
        if is_over or (standing.is_bound and standing.is_heard):
            del self._standing[pod]

    def _rename(self, old: str, new: str) -> None:
        for standing in self._standing.values():
            verdict = standing.decision.verdict
            if any(one.uid == old for one in verdict.flights):
                flights = tuple(_renamed(one, old, new) for one in verdict.flights)
                standing.decision = replace(standing.decision, verdict=replace(verdict, flights=flights))


def _renamed(flight: Flight, old: str, new: str) -> Flight:
    return replace(flight, uid=new) if flight.uid == old else flight


def _merged(before: Knows, now: Knows) -> Knows:
    def laid(name: str) -> dict[str, object]:
        both = {**getattr(before, name), **getattr(now, name)}
        return {uid: one for uid, one in both.items() if one is not None}

    names = [one.name for one in msgspec.structs.fields(Knows) if one.name != "looked_at"]
    return replace(now, **{name: laid(name) for name in names})
