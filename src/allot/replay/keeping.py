"""What a scheduler hears and decides, as lines of a record.

The scheduler's own task only puts down what happened. Whatever costs, reading objects, leaving out what is
not to be told and writing, is done when the line is made, by whoever writes it.

What it promises
    RECORD1  Nothing stands in a record that a dump would not hold (DUMP2), but the objects with numeric
             parameters that claims name, since they decide: of these what a class's template reads, by
             its name, and where that is a map or a list the numbers in it. Never of kinds of the core
             group, among which are Secrets and ConfigMaps.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeVar

from msgspec import Raw

import allot
from allot.api import Fields, Gates, Object, encode
from allot.base import Clock
from allot.informers import Deleted, ResourceId
from allot.planning import ReadByTemplates, scrubbed
from allot.scheduler import (
    CLAIMS,
    NODES,
    NOTHING_KNOWN,
    RESOURCE_CLASSES,
    ClaimWritten,
    CycleState,
    KindTold,
    Known,
    Learned,
    News,
    Outcome,
    PodInfo,
    Prospects,
    Settings,
)

from .lines import AnyLine, Decided, Ended, Gone, Knows, Set, Stop, Term, Told, Wrote
from .verdicts import verdict_of

Made = Callable[["Scrubber"], AnyLine | None]
"""A line, worked out when it is written. None: there is nothing to say."""

Path = tuple[str, ...]
T = TypeVar("T")
_READ = re.compile(r"\bobject((?:\.[A-Za-z_]\w*)+)")


class Keeper:
    """The scheduler's recorder."""

    def __init__(self, put: Callable[[Made], None], clock: Clock) -> None:
        self._put = put
        self._clock = clock
        self._known = NOTHING_KNOWN
        self._revision = -1

    def begin(self, settings: Settings, gates: Gates) -> None:
        self._known, self._revision = NOTHING_KNOWN, -1
        line = term_of(settings, gates, self._clock.now())
        self._put(lambda scrubber: line)

    def learned(self, what: Learned) -> None:
        self._put(lambda scrubber: scrubber.line(what))

    def deciding(self, prospects: Prospects) -> None:
        if prospects.revision == self._revision and prospects.looked_at == self._known.looked_at:
            return
        before, self._known, self._revision = self._known, prospects.known, prospects.revision
        line = difference(before, self._known)
        if line is not None:
            self._put(lambda scrubber: line)

    def decided(self, state: CycleState, outcome: Outcome | Exception) -> None:
        pod, at, seed = state.pod, state.now, state.seed
        self._put(lambda scrubber: Decided(pod.uid, str(pod.key), at, verdict_of(outcome), seed))

    def ended(self, pod: PodInfo, is_bound: bool) -> None:
        line = Ended(pod.uid, is_bound)
        self._put(lambda scrubber: line)


def term_of(settings: Settings, gates: Gates, at: datetime, *, onlooker: bool = False) -> Term:
    scoring = settings.scoring
    return Term(
        at,
        allot.__version__,
        dict(gates.changed),
        settings.names,
        settings.policy.name,
        {
            "strategy": scoring.strategy.value,
            "resources": [list(one) for one in scoring.resources],
            "shape": [list(one) for one in scoring.shape],
        },
        settings.binding_timeout_s,
        onlooker,
    )


def difference(before: Known, now: Known) -> Knows | None:
    if before == now:
        return None
    stops = _changed(before.left_off, now.left_off)
    left_off: dict[str, Stop | None] = {
        uid: (one.at, one.nodes, one.when) if one is not None else None for uid, one in stops.items()
    }
    return Knows(
        _changed(before.nominated, now.nominated),
        _changed(before.evicted, now.evicted),
        _changed(before.charged, now.charged),
        left_off,
        now.looked_at,
    )


def _changed(before: Mapping[str, T], now: Mapping[str, T]) -> dict[str, T | None]:
    found: dict[str, T | None] = {uid: one for uid, one in now.items() if before.get(uid) != one}
    return found | {uid: None for uid in before if uid not in now}


class Scrubber:
    """Makes lines of what was heard (RECORD1), in its order: what is kept of parameters follows from the
    classes before them. Heartbeats of nodes, which decide nothing, are left out."""

    def __init__(self) -> None:
        self._templates = ReadByTemplates()
        self._nodes: dict[str, int] = {}

    def line(self, heard: Learned) -> AnyLine | None:
        match heard:
            case News(what, change, of_parameters):
                if what == RESOURCE_CLASSES:
                    self._templates.heed(change.object, is_gone=isinstance(change, Deleted))
                if of_parameters:
                    made = Gone if isinstance(change, Deleted) else Set
                    return made(what, Raw(encode(self.parameters(what, change.object))), parameters=True)
                kept = scrubbed(change.object.fresh(), what.plural)
                if isinstance(change, Deleted):
                    self._nodes.pop(change.object.name, None)
                    return Gone(what, Raw(encode(kept)))
                if what == NODES and self._is_known(kept):
                    return None
                return Set(what, Raw(encode(kept)))
            case KindTold(kind, None):
                return Told(*kind, wanted=False)
            case KindTold(kind, standing):
                assert standing is not None
                return Told(*kind, standing.what, standing.why_not)
            case ClaimWritten(claim, instead_of):
                return Wrote(Raw(encode(scrubbed(claim.fresh(), CLAIMS.plural))), instead_of)

    def parameters(self, what: ResourceId, object: Object) -> Fields:
        """What is kept of an object with parameters."""
        return self._templates.kept(what, scrubbed(object.fresh(), what.plural))

    def _is_known(self, node: Fields) -> bool:
        metadata = {name: one for name, one in node["metadata"].items() if name != "resourceVersion"}
        digest = hash(encode({**node, "metadata": metadata}))
        name = str(metadata.get("name"))
        if self._nodes.get(name) == digest:
            return True
        self._nodes[name] = digest
        return False
