"""What was asked for and has not come, or has come and is not what was promised. Pure.

    asked      the provider was told; no node is there yet            counts as its template
    arriving   the node is there and lacks something of its template  counts as its template
    arrived    it has everything: from now on it is what it is
    late       patience is over: reported, and the group waits before it grows again

What it promises
    Y1  What was asked for by whoever led before counts as coming as well: a node that nobody here ordered,
        and that lacks something, is on its way while it is young.
    Y4  A template that promised what a new node did not publish is reported by who asked for the node, and
        not relied on again until it is corrected. Which ones these are outlives whoever leads (`broken`).
        Who leads only later does not know by which template the node was asked for, and blames none.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from allot.api import Object, age, core

from .groups import Group, Template
from .templates import group_of, lacks, promise

LATE = "a node of it is late"
MISSED_FOR = 10.0
"""Times its patience: for so long an order that is overdue may still be what a new node was made for."""


class Arriving(NamedTuple):
    group: str
    node: str
    since_s: float
    template: Template
    patience_s: float
    is_ours: bool = True  # we asked for it, and may say what its template is worth


class Asked(NamedTuple):
    group: str
    since_s: float
    template: Template
    patience_s: float


class Late(NamedTuple):
    """A node that did not come (`node` is None), or came and is not what was promised."""

    group: str
    node: Object | None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Patience:
    arrival_s: float = 900.0
    backoff_s: float = 300.0


class Memory:
    def __init__(self, patience: Patience, learned: Mapping[str, Template] | None = None) -> None:
        self._patience = patience
        self._asked: list[Asked] = []
        self._missed: list[Asked] = []  # overdue: not counted on, and judged all the same if they come
        self._arriving: dict[str, Arriving] = {}  # by uid
        self._known: set[str] = set()  # nodes that were there before or have arrived, by uid
        self.broken: dict[str, str] = {}  # promises that were not kept, by group
        self._waits: dict[str, tuple[float, str]] = {}  # groups that wait: until when, and why
        self.learned: dict[str, Template] = dict(learned or {})

    def order(self, group: Group, nodes: int, now_s: float) -> None:
        assert group.template is not None
        patience_s = self._patience.arrival_s if group.arrival_s is None else group.arrival_s
        self._asked += [Asked(group.name, now_s, group.template, patience_s)] * nodes

    def give_up(self, group: str, nodes: int) -> None:
        """So many that were asked for will not come."""
        for one in [one for one in self._asked if one.group == group][:nodes]:
            self._asked.remove(one)

    def observe(
        self,
        nodes: Iterable[Object],
        slices: Sequence[Object],
        now_s: float,
        unready: Mapping[str, str] = {},
        expected: Mapping[str, Template] = {},
    ) -> tuple[Late, ...]:
        """The nodes there are now; what is late is said once. `unready` are new ones, by name, for which a
        driver cannot answer yet: they are not judged by what they have. `expected` is
        what nodes, by name, may still become that somebody else asked for (`unsettled`)."""
        there = {node.uid: node for node in nodes if group_of(node)}
        for uid, node in there.items():
            if uid not in self._known and uid not in self._arriving:
                self._came(node, now_s, expected.get(node.name))
        self._known &= there.keys()
        self._arriving = {uid: one for uid, one in self._arriving.items() if uid in there}
        late = [*self._settled(there, slices, now_s, unready), *self._overdue(now_s)]
        for one in late:
            self.wait(one.group, now_s)
        return tuple(late)

    def _came(self, node: Object, now_s: float, expected: Template | None) -> None:
        """The oldest order of its group is carried out. An old node that nobody ordered is what it is."""
        group = group_of(node)
        order = next((one for one in (*self._asked, *self._missed) if one.group == group), None)
        if order is None and expected is not None:
            self._arriving[node.uid] = Arriving(
                group_of(node), node.name, now_s, expected, self._patience.arrival_s, is_ours=False
            )
            return
        if order is None:
            self._known.add(node.uid)
            return
        (self._asked if order in self._asked else self._missed).remove(order)
        self._arriving[node.uid] = Arriving(order.group, node.name, now_s, order.template, order.patience_s)

    def _settled(
        self, there: Mapping[str, Object], slices: Sequence[Object], now_s: float, unready: Mapping[str, str]
    ) -> Iterator[Late]:
        for uid, one in [*self._arriving.items()]:
            node = there[uid]
            missing = lacks(one.template, node, slices)
            is_ready = node.view(core.Node).is_ready and node.name not in unready
            if is_ready and not missing:
                del self._arriving[uid]
                self._known.add(uid)
            elif now_s - one.since_s >= one.patience_s:
                del self._arriving[uid]
                self._known.add(uid)
                if not one.is_ours:
                    continue
                if missing:
                    self.broken[one.group] = promise(one.template)
                yield Late(one.group, node, missing or (unready.get(node.name, "it does not become ready"),))

    def _overdue(self, now_s: float) -> Iterator[Late]:
        self._missed = [one for one in self._missed if now_s - one.since_s < MISSED_FOR * one.patience_s]
        for one in [*self._asked]:
            if now_s - one.since_s >= one.patience_s:
                self._asked.remove(one)
                self._missed.append(one)
                yield Late(one.group, None)

    def wait(self, group: str, now_s: float, why: str = LATE) -> None:
        """The provider could not do it: the group waits before it is asked again."""
        self._waits[group] = (now_s + self._patience.backoff_s, why)

    @property
    def asked(self) -> tuple[Asked, ...]:
        return tuple(self._asked)

    @property
    def arriving(self) -> tuple[Arriving, ...]:
        return tuple(self._arriving.values())

    def unsettled(self, nodes: Iterable[Object], waiting: Iterable[Object]) -> set[str]:
        """Nodes that may still become what their templates say, by name: those that were asked for, and such
        as were made not long before the newest object that is heard of. (No clock but the server's is asked:
        ours may be wrong.)"""
        there = [node for node in nodes if group_of(node)]
        newest = max(map(_made, (*there, *waiting)), default=datetime.min.replace(tzinfo=UTC))
        youth = timedelta(seconds=self._patience.arrival_s)
        unknown = [one for one in there if one.uid not in self._known]
        return {one.name for one in unknown if one.uid in self._arriving or newest - _made(one) < youth}

    def coming(self, group: str) -> int:
        """Nodes of a group that were asked for and are not there."""
        return sum(one.group == group for one in self._asked)

    def closed(self, group: Group, now_s: float) -> str:
        """Why a group is not to grow just now."""
        if group.template is not None and self.broken.get(group.name) == promise(group.template):
            return "a node of it was not what its template promises"
        until_s, why = self._waits.get(group.name, (now_s, ""))
        return f"{why}, and it waits before it tries again" if now_s < until_s else ""


def _made(one: Object) -> datetime:
    found = age.moment(one.metadata.creation_timestamp or "")
    return found if found is not None else datetime.min.replace(tzinfo=UTC)
