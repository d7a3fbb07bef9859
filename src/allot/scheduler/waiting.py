"""The pods that did not fit, and who is to be woken.

Where it sits
    Inside `queue`, which knows about time and order. Here is only who sleeps with whom.

Pods sleep in groups. Those of one group are equal in everything that decides where they fit,
so when something changes there is no point in trying more than one of them: the *head*, which
has the highest priority and is the oldest. Whoever is woken carries the group's chance. If it
finds a place the chance goes to the next; if it fails, the answer holds for all, and the group
sleeps on.

What it promises
    SLEEP1  Whoever sleeps is in one group, and a group's chance has at most one carrier, unless
            pods were woken for reasons of their own (`wake`).
    SLEEP2  A chance is never lost: it ends with a failure in the same group, or with nobody left.
    SLEEP3  Asking who listens for an event costs the groups that do and that have no carrier.
"""

from bisect import bisect_left, insort
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from allot.base import require

from .framework import Event


class Rank(NamedTuple):
    """Whose turn it is: the smallest comes first."""

    priority: int  # turned round
    created: str
    arrival: int


@dataclass(slots=True)
class _Group:
    events: frozenset[Event] = frozenset()
    sleepers: list[tuple[Rank, str]] = field(default_factory=list)  # in order
    carriers: set[str] = field(default_factory=set)


class WaitingGroups:
    def __init__(self) -> None:
        self._groups: dict[Hashable, _Group] = {}
        self._places: dict[str, tuple[Hashable, Rank]] = {}
        self._since_s: dict[str, float] = {}  # in the order in which they fell asleep
        self._carried: dict[str, Hashable] = {}
        self._listening: dict[Event, dict[Hashable, None]] = {event: {} for event in Event}

    # -- falling asleep -------------------------------------------------------------------------

    def add(self, uid: str, rank: Rank, group: Hashable, events: frozenset[Event], now_s: float) -> None:
        """A pod failed. What it was told is the latest news for its whole group."""
        require(uid not in self._places, f"SLEEP1: {uid} sleeps already")
        known = self._groups.setdefault(group, _Group())
        insort(known.sleepers, (rank, uid))
        self._places[uid] = (group, rank)
        self._since_s[uid] = now_s
        self._unlisten(group)
        known.events = events
        self._settle(group)

    # -- waking ---------------------------------------------------------------------------------

    def listening(self, event: Event) -> tuple[Hashable, ...]:
        """The groups that an event may help and that nobody is awake for (SLEEP3)."""
        return tuple(self._listening[event])

    def wake_head(self, group: Hashable) -> str | None:
        """Who carries the chance of the group now; None where somebody does, or nobody sleeps."""
        known = self._groups.get(group)
        if known is None or known.carriers or not known.sleepers:
            return None
        return self.wake(known.sleepers[0][1])

    def wake(self, uid: str) -> str:
        """This one, whatever its place in the group."""
        group = self.leave(uid)
        self._groups.setdefault(group, _Group()).carriers.add(uid)
        self._carried[uid] = group
        self._settle(group)
        return uid

    def give_up_chance(self, uid: str) -> Hashable | None:
        """The group whose chance the pod carried until now."""
        group = self._carried.pop(uid, None)
        if group is not None:
            self._groups[group].carriers.discard(uid)
            self._settle(group)
        return group

    def leave(self, uid: str) -> Hashable:
        """The pod sleeps no more, and takes no chance with it."""
        group, rank = self._places.pop(uid)
        del self._since_s[uid]
        known = self._groups[group]
        del known.sleepers[bisect_left(known.sleepers, (rank, uid))]
        self._settle(group)
        return group

    def _settle(self, group: Hashable) -> None:
        """Listen while somebody sleeps and nobody is awake; forget a group that has neither."""
        known = self._groups[group]
        if known.sleepers and not known.carriers:
            for event in known.events:
                self._listening[event][group] = None
            return
        self._unlisten(group)
        if not known.sleepers and not known.carriers:
            del self._groups[group]

    def _unlisten(self, group: Hashable) -> None:
        for event in self._groups[group].events:
            self._listening[event].pop(group, None)

    # -- looking --------------------------------------------------------------------------------

    def __contains__(self, uid: object) -> bool:
        return uid in self._places

    def __len__(self) -> int:
        return len(self._places)

    def group_of(self, uid: str) -> Hashable | None:
        """The group that a pod sleeps in, or whose chance it carries."""
        place = self._places.get(uid)
        return place[0] if place is not None else self._carried.get(uid)

    def hears(self, uid: str, event: Event) -> bool:
        place = self._places.get(uid)
        return place is not None and event in self._groups[place[0]].events

    def longest(self) -> tuple[str, float] | None:
        """Who has slept longest, and since when."""
        return next(iter(self._since_s.items()), None)

    def check(self) -> None:
        """For tests and the simulator."""
        for group, known in self._groups.items():
            require(bool(known.sleepers or known.carriers), "SLEEP1: a group of nobody is remembered")
            require(known.sleepers == sorted(known.sleepers), "SLEEP1: a group is out of order")
            for rank, uid in known.sleepers:
                require(self._places.get(uid) == (group, rank), f"SLEEP1: {uid} sleeps in two places")
            for uid in known.carriers:
                require(self._carried.get(uid) == group, f"SLEEP2: {uid} lost the chance it carries")
            for event, groups in self._listening.items():
                listens = bool(known.sleepers) and not known.carriers and event in known.events
                require(
                    listens == (group in groups), f"SLEEP2: a group is deaf, or hears too much, of {event}"
                )
        require(set(self._places) == set(self._since_s), "SLEEP1: it is not known since when somebody sleeps")
        require(len(self._places) == sum(len(one.sleepers) for one in self._groups.values()), "SLEEP1: lost")
