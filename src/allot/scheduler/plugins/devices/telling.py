"""Why the devices of so many nodes do not do, in a sentence: for conditions, events and `allot explain`.

Counts over nodes and devices, from the allocator's own explanation of each node, and no
names of holders: other namespaces' claims are nobody's business here. The whole tree, with
what would help, is what `allot explain` recomputes with the rights of whoever asks.

A pod has one node, so what is free is told by the node that has most of it, and where
enough is free on a node, what keeps those devices from being had together.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import islice

from allot.allocation import (
    Attempt,
    Budget,
    DeviceId,
    Explanation,
    Group,
    NoFit,
    Reason,
    RequestReport,
    Undecided,
    explain,
)

from ...extended import Lacking
from ...framework import CycleState, Rejection
from ...node import NodeInfo
from ...snapshot import Snapshot
from .checking import NAME, NO_FIT, UNDECIDED, DeviceCheck

EXAMPLES_MAX = 32
EXPLAINED_MAX = 64
"""Situations of nodes that are explained in full, the nearest misses first; more are counted."""
REQUESTS_MAX = 3
CONFLICTS_MAX = 2
SELECTING_STEPS = 2_000
"""For selectors that no check has evaluated, of all nodes together: the event loop waits for these words."""
ANSWERING_STEPS = 5_000
"""For the answers of all nodes together. When they are spent, what was seen so far is told."""
DETAIL_MAX = 240
VALUES = re.compile(r" \([^()]*(?:\([^()]*\)[^()]*)*\)$")
"""At the end of a conflict: how many devices have which value of an attribute."""
ORDER = {reason: at for at, reason in enumerate(Reason)}
UNKNOWN_NEAR = 1_000
"""Of nodes that a closer look turned down, or could not decide on: they may be the nearest of all."""


# -- which nodes to look at -----------------------------------------------------------------------


@dataclass(slots=True)
class Alike:
    """Nodes in the same situation: what is the matter with one is the matter with all."""

    near: int  # as an outline says it; 0: nothing is offered there
    nodes: list[str] = field(default_factory=list)


def alike(state: CycleState, rejections: Iterable[tuple[str, Rejection]]) -> list[Alike]:
    """The nodes that lack devices, the nearest misses first. Costs a look into a dictionary a node."""
    check: DeviceCheck | None = state.made.get(NAME)
    if check is None:
        return []
    found: dict[Hashable, Alike] = {}
    for name, why in rejections:
        if why not in (NO_FIT, UNDECIDED):
            continue
        outline = check.missed.get(name) if why == NO_FIT else None
        if outline is None:
            found[name] = Alike(UNKNOWN_NEAR, [name])
            continue
        one = found.get(id(outline))
        if one is None:
            one = found[id(outline)] = Alike(outline.near)
        one.nodes.append(name)
    return sorted(found.values(), key=lambda one: -one.near)


def examples(state: CycleState, rejections: Iterable[tuple[str, Rejection]], most: int) -> tuple[str, ...]:
    """Some nodes that stand for all that lack devices: the nearest misses first, and of those in every
    situation one before there are two of any. One is enough of those that offer nothing at all."""
    ranked = (
        (-one.near, turn, at, name)
        for at, one in enumerate(alike(state, rejections))
        for turn, name in enumerate(one.nodes[: most if one.near else 1])
    )
    return tuple(name for *_, name in nsmallest(most, ranked))


def tell(state: CycleState, rejections: Iterable[tuple[str, Rejection]]) -> "ShortOfDevices | None":
    nodes = examples(state, rejections, EXAMPLES_MAX)
    return ShortOfDevices(state, nodes) if nodes else None


@dataclass(frozen=True, slots=True)
class ShortOfDevices:
    """A sentence about nodes that stand for all that lack devices."""

    state: CycleState
    nodes: tuple[str, ...]

    def __call__(self, snapshot: Snapshot) -> str:
        found = (snapshot.node(name) for name in self.nodes)
        return summary(self.state, snapshot, (node for node in found if node is not None))


def explained(
    state: CycleState,
    snapshot: Snapshot,
    rejections: Iterable[tuple[str, Rejection]],
    named: Callable[[str], str],
) -> dict[str, Explanation]:
    """What is the matter with the devices, by node. Of those in the same situation one is looked at."""
    found: dict[str, Explanation] = {}
    for group in alike(state, rejections)[:EXPLAINED_MAX]:
        first = snapshot.node(group.nodes[0])
        for attempt, answer in attempts(state, snapshot, [first] if first is not None else ()):
            found.update(dict.fromkeys(group.nodes, explain(attempt, answer, named)))
    return found


# -- what is the matter there ---------------------------------------------------------------------


def attempts(
    state: CycleState, snapshot: Snapshot, nodes: Iterable[NodeInfo]
) -> Iterator[tuple[Attempt, NoFit | Undecided]]:
    """The nodes that were asked for devices in vain, each with all that the answer depends on."""
    check: DeviceCheck | None = state.made.get(NAME)
    if check is None:
        return
    for node in nodes:
        delegation = check.asked.delegation(node)
        claims = () if isinstance(delegation, Lacking) else check.asked.claims_in_users_words(delegation)
        if isinstance(delegation, Lacking) or not isinstance(claims, tuple) or not claims:
            continue
        answer = check.answer(node, delegation)
        if isinstance(answer, NoFit | Undecided):
            # Extended resources come last, and have no place for anything but a count.
            by_count = frozenset({len(claims) - 1} if delegation else ())
            inventory, ledger = snapshot.inventory, snapshot.ledger
            yield Attempt(node.place, inventory, ledger, claims, snapshot.classes, by_count), answer


@dataclass(slots=True)
class _Tally:
    """What became of the devices that one request was offered. A device that several nodes reach is
    one device, and counts where it came furthest."""

    wanted: str
    most_free: int = 0  # on one node
    furthest: dict[DeviceId, Group] = field(default_factory=dict)

    def add(self, report: RequestReport) -> None:
        """What one node says of the request."""
        self.most_free = max(self.most_free, report.free)
        for group in report.groups:
            for id in group.ids:
                before = self.furthest.get(id)
                if before is None or _progress(group) > _progress(before):
                    self.furthest[id] = group

    def text(self, request: str) -> str:
        counts = Counter(group.reason for group in self.furthest.values())
        parts = [self._part(reason, count) for reason, count in counts.most_common()]
        offered = f"of {_counted(len(self.furthest), 'device')} {', '.join(parts)}"
        return f"request {request} wants {self.wanted}, and {offered if parts else 'none is offered'}"

    def _part(self, reason: Reason, count: int) -> str:
        if reason is Reason.FREE and self.most_free < count:
            return f"at most {self.most_free} free on one node ({count} in all)"
        return f"{count} {self._because(reason, count)}"

    def _because(self, reason: Reason, count: int) -> str:
        words: str = reason.value
        if reason is not Reason.SELECTOR:
            return words
        unselected = [group for group in self.furthest.values() if group.reason is Reason.SELECTOR]
        nearest = max(group.passed for group in unselected)
        ((detail, near),) = Counter(one.detail for one in unselected if one.passed == nearest).most_common(1)
        short = detail if len(detail) <= DETAIL_MAX else f"{detail[:DETAIL_MAX]}…"
        only = f"the nearest {near} " if near < count else ""
        return f"{words} ({only}by {short})"


def _progress(group: Group) -> tuple[int, int]:
    return ORDER[group.reason], group.passed


def summary(state: CycleState, snapshot: Snapshot, nodes: Iterable[NodeInfo]) -> str:
    """Empty where devices are not the trouble."""
    found: dict[tuple[str, str], _Tally] = {}
    together: Counter[str] = Counter()  # nodes, by what keeps their free devices from being had together
    looked_at, answered, budget = 0, 0, Budget(SELECTING_STEPS)
    for attempt, answer in attempts(state, snapshot, nodes):
        looked_at += 1
        explained = explain(attempt, answer, suggest=False, budget=budget)
        for report in explained.requests:
            wanted = "all" if report.wanted is None else str(report.wanted)
            found.setdefault((report.claim, report.request), _Tally(wanted)).add(report)
        together.update(tuple(dict.fromkeys(_anonymous(explained))))
        answered += answer.steps
        if answered >= ANSWERING_STEPS:
            break
    if not found:
        return ""
    parts = [tally.text(request) for (_, request), tally in islice(found.items(), REQUESTS_MAX)]
    left = len(found) - REQUESTS_MAX
    more = [f"and {_counted(left, 'more request')}"] if left > 0 else []
    where = f"on the {looked_at} nodes looked at" if looked_at > 1 else "on the node looked at"
    conflicts = [
        words if count == looked_at else f"{words} (on {_counted(count, 'node')})"
        for words, count in together.most_common(CONFLICTS_MAX)
    ]
    return f"Devices {where}: {'; '.join([*parts, *more, *conflicts])}."


def _anonymous(explained: Explanation) -> Iterator[str]:
    """The conflicts of a node without what only one pod, or one node, would say: claims, and values."""
    labels = {report.claim for report in explained.requests}
    for line in explained.conflicts:
        for label in labels:
            line = line.removeprefix(f"{label}: ")
        yield VALUES.sub("", line)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
