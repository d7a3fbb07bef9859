"""Which pod next, and when: active, backoff, unschedulable, gated.

Where it sits
    `intake` tells it of pods and of what happened in the cluster, the loop takes pods and
    reports how each attempt ended. A pure state machine: every call is handed the time,
    nothing waits. Who sleeps with whom and who is woken is in `waiting`.

        gated ──release──► active ──take──► with the cycle ──placed, remove──►
                            ▲   ▲             │ failed
               backoff ─────┘   │             ├─ an error ──► backoff
                   ▲            │             └─ no fit ────► unschedulable
                   └── woken: happened, changed, slept too long ──┘

What it promises
    QUEUE1  No pod is forgotten: each one known is in exactly one of active, backoff,
            unschedulable, gated and with the cycle.
    QUEUE2  Of the pods that are active the one with the highest priority is taken first, and of
            those the oldest.
    QUEUE3  The n-th failure of a pod keeps it behind others for `backoff_first_s` doubled n-1
            times, at most `backoff_longest_s`. While nobody else is due, a pod that something may
            have helped is tried at once: waiting would help nobody. After an error it waits.
    QUEUE4  What happens while a pod is with the cycle counts as if it had happened just after:
            an attempt that ended with a "no" of a moment ago is not the last word.
    QUEUE5  An event costs the groups that listen for it, or the pods that use the claim it is
            about; never the number of pods. Many events wake a group once.
    QUEUE6  A pod that slept for `leftover_s` is tried again whatever happened, so that a missing
            hint costs time and not the pod.
    QUEUE7  What is remembered follows the number of pods, however long the queue is never empty.
"""

import heapq
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import assert_never

from allot.base import require
from allot.informers import Key

from .framework import Event
from .pod import PodInfo
from .waiting import Rank, WaitingGroups

ALL_EVENTS = frozenset(Event)
TELLING = frozenset({Event.NODE_GONE})
STALE_MAX = 64
"""Entries that count no more and that a heap may keep besides as many as there are pods on it."""


class Where(Enum):
    """Upstream's names, as metrics show them."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    ASLEEP = "unschedulable"
    GATED = "gated"
    TAKEN = "with the cycle"


@dataclass(frozen=True, slots=True)
class Queued:
    """A pod that is to be tried."""

    pod: PodInfo
    attempts: int  # this one included
    first_seen_s: float


@dataclass(slots=True)
class _Entry:
    pod: PodInfo
    rank: Rank
    first_seen_s: float
    claims: frozenset[Key]
    where: Where
    ticket: int = 0  # of the entry on a heap that counts
    attempts: int = 0
    not_before_s: float = float("-inf")
    must_wait: bool = False  # its last attempt ended in an error
    waits_for: frozenset[Key] = frozenset()
    taken_at: int = 0  # how much had happened by then
    missed: set[Event] = field(default_factory=set)  # since it was taken, about itself


class Queue:
    def __init__(
        self,
        events: Mapping[str, frozenset[Event]],
        backoff_first_s: float = 1.0,
        backoff_longest_s: float = 10.0,
        leftover_s: float = 300.0,
    ) -> None:
        """`events` says for each plugin what may turn its rejection into consent."""
        self._events = events
        self._backoff_first_s = backoff_first_s
        self._backoff_longest_s = backoff_longest_s
        self._leftover_s = leftover_s
        self._entries: dict[str, _Entry] = {}
        self._counts = dict.fromkeys(Where, 0)
        self._active: list[tuple[Rank, int, str]] = []
        self._backoff: list[tuple[float, int, str]] = []
        self._hurrying: dict[str, None] = {}  # in backoff, and taken when nobody else is due; in order
        self._groups = WaitingGroups()
        self._users: dict[Key, dict[str, None]] = {}  # of a claim
        self._waiting: dict[Key, dict[str, None]] = {}  # gated, by what they wait for
        self._tickets = 0
        self._happened = 0
        self._last: dict[Event, int] = {}

    # -- pods come and go -----------------------------------------------------------------------

    def add(self, pod: PodInfo, now_s: float) -> None:
        """A pod that waits for a place. One that is known is updated."""
        if pod.uid in self._entries:
            self.update(pod, now_s)
        else:
            self._make_ready(self._enter(pod, now_s), now_s)

    def update(self, pod: PodInfo, now_s: float) -> bool:
        """A newer version of a pod. False when it differs in nothing that decides where it fits."""
        entry = self._entries.get(pod.uid)
        if entry is None:
            return False
        changed = _matters(entry.pod) != _matters(pod)
        self._unlink(self._users, entry.claims, pod.uid)
        entry.pod, entry.claims = pod, frozenset(pod.claims)
        self._link(self._users, entry.claims, pod.uid)
        if not changed:
            return False
        entry.rank = Rank(-pod.priority, entry.rank.created, entry.rank.arrival)
        match entry.where:
            case Where.ASLEEP:
                self._groups.leave(pod.uid)
                self._make_ready(entry, now_s)
            case Where.TAKEN:
                entry.missed.add(Event.POD_CHANGED)
            case Where.ACTIVE:
                self._make_ready(entry, now_s)
            case Where.BACKOFF | Where.GATED:
                pass  # whatever it waits for is still to come
            case _:
                assert_never(entry.where)
        return True

    def remove(self, uid: str, now_s: float) -> None:
        """The pod is bound, finished or gone. That it was not known is no matter."""
        entry = self._entries.get(uid)
        if entry is None:
            return
        self._leave(entry)
        self._counts[entry.where] -= 1
        del self._entries[uid]
        self._unlink(self._users, entry.claims, uid)
        self._pass_on(uid, now_s)

    # -- gates ----------------------------------------------------------------------------------

    def gate(self, pod: PodInfo, waits_for: Iterable[Key], now_s: float) -> None:
        """The pod cannot be tried until something about it, or one of these claims, is different."""
        entry = self._entries.get(pod.uid)
        if entry is None:
            entry = self._enter(pod, now_s)
        else:
            self.update(pod, now_s)
        self._move(entry, Where.GATED)
        entry.waits_for = frozenset(waits_for)
        self._link(self._waiting, entry.waits_for, pod.uid)
        self._pass_on(pod.uid, now_s)

    def gated_by(self, key: Key) -> list[PodInfo]:
        """The pods that wait for this claim."""
        return [self._entries[uid].pod for uid in self._waiting.get(key, ())]

    def is_gated(self, uid: str) -> bool:
        entry = self._entries.get(uid)
        return entry is not None and entry.where is Where.GATED

    def release(self, uid: str, now_s: float) -> None:
        """Nothing gates the pod any more."""
        entry = self._entries.get(uid)
        if entry is not None and entry.where is Where.GATED:
            self._make_ready(entry, now_s)

    # -- attempts -------------------------------------------------------------------------------

    def take(self, now_s: float) -> Queued | None:
        """The next pod that is due. Whoever takes it says how it ended: placed, failed, gate or remove."""
        self._ripen(now_s)
        while self._active:
            _, ticket, uid = heapq.heappop(self._active)
            entry = self._entries.get(uid)
            if entry is not None and entry.ticket == ticket:
                return self._taken(entry)
        first = next(iter(self._hurrying), None)
        return self._taken(self._entries[first]) if first is not None else None

    def _taken(self, entry: _Entry) -> Queued:
        self._move(entry, Where.TAKEN)
        entry.attempts += 1
        entry.taken_at = self._happened
        entry.missed.clear()
        return Queued(entry.pod, entry.attempts, entry.first_seen_s)

    def placed(self, uid: str, now_s: float) -> None:
        """A place was found. The pod stays with the cycle until it is removed, or writing it down failed."""
        if uid in self._entries:
            self._pass_on(uid, now_s)

    def failed(
        self, uid: str, group: Hashable, rejected_by: frozenset[str], now_s: float, *, error: bool = False
    ) -> None:
        """An attempt came to nothing: no node takes the pod or, with `error`, something went wrong.

        `group` is equal for pods that fit in the same places.
        """
        entry = self._entries.get(uid)
        if entry is None:
            return
        require(entry.where is Where.TAKEN, f"QUEUE1: {uid} failed and was not taken")
        entry.not_before_s = now_s + self._backoff_s(entry.attempts)
        entry.must_wait = error
        if error or Event.POD_CHANGED in entry.missed:  # then what was found out is about another pod
            self._make_ready(entry, now_s)
            self._pass_on(uid, now_s)
            return
        events = self._heard(rejected_by)
        carried = self._groups.give_up_chance(uid)
        self._move(entry, Where.ASLEEP)
        self._groups.add(uid, entry.rank, group, events, now_s)
        if carried is not None and carried != group:
            self._rouse(carried, now_s)
        if entry.missed & events:
            self._wake(uid, now_s)
        elif any(self._last.get(event, 0) > entry.taken_at for event in events):
            self._rouse(group, now_s)

    def happened(self, event: Event, now_s: float, *, about: Key | None = None) -> None:
        """Something that may help. With `about`, only the pods that use that claim."""
        if about is not None:
            self._happened_to_users(about, event, now_s)
            return
        self._happened += 1
        self._last[event] = self._happened
        for group in self._groups.listening(event):
            self._rouse(group, now_s)

    def happened_to(self, uid: str, event: Event, now_s: float) -> None:
        """Something that may help this pod and no other. That it is not known is no matter."""
        entry = self._entries.get(uid)
        if entry is None:
            return
        if entry.where is Where.TAKEN:
            entry.missed.add(event)
        elif self._groups.hears(uid, event):
            self._wake(uid, now_s)

    def next_moment_s(self) -> float | None:
        """When a pod becomes due by itself, once `take` has none; None when only news can help."""
        self._tidy_backoff()
        moments = [self._backoff[0][0]] if self._backoff else []
        longest = self._groups.longest()
        if longest is not None:
            moments.append(longest[1] + self._leftover_s)
        return min(moments, default=None)

    # -- looking --------------------------------------------------------------------------------

    def pending(self) -> dict[str, int]:
        """How many pods wait, by queue."""
        return {where.value: count for where, count in self._counts.items() if where is not Where.TAKEN}

    def pods(self) -> Iterator[PodInfo]:
        return (entry.pod for entry in self._entries.values())

    def get(self, uid: str) -> PodInfo | None:
        entry = self._entries.get(uid)
        return entry.pod if entry is not None else None

    def where(self, uid: str) -> Where | None:
        entry = self._entries.get(uid)
        return entry.where if entry is not None else None

    def __len__(self) -> int:
        return len(self._entries)

    def check(self) -> None:
        """For tests and the simulator."""
        self._groups.check()
        active = {uid for _, ticket, uid in self._active if self._is_current(ticket, uid)}
        backoff = {uid for _, ticket, uid in self._backoff if self._is_current(ticket, uid)}
        gated = {uid for uids in self._waiting.values() for uid in uids}
        require(self._hurrying.keys() <= backoff, "QUEUE7: somebody hurries who is not in backoff")
        counts = dict.fromkeys(Where, 0)
        for uid, entry in self._entries.items():
            counts[entry.where] += 1
            found = {
                Where.ACTIVE: uid in active,
                Where.BACKOFF: uid in backoff,
                Where.ASLEEP: uid in self._groups,
            }
            for where, is_there in found.items():
                require(
                    (entry.where is where) == is_there,
                    f"QUEUE1: {uid} is {entry.where.value}, not {where.value}",
                )
            require(
                entry.where is Where.GATED or uid not in gated,
                f"QUEUE1: {uid} is gated and {entry.where.value}",
            )
        require(counts == self._counts, "QUEUE1: pods are miscounted")
        require(len(self._groups) == counts[Where.ASLEEP], "QUEUE1: somebody sleeps who is not known")

    # -- how pods move --------------------------------------------------------------------------

    def _enter(self, pod: PodInfo, now_s: float) -> _Entry:
        self._tickets += 1
        rank = Rank(-pod.priority, pod.view.metadata.creation_timestamp, self._tickets)
        entry = _Entry(pod, rank, now_s, frozenset(pod.claims), Where.TAKEN)
        self._entries[pod.uid] = entry
        self._counts[Where.TAKEN] += 1
        self._link(self._users, entry.claims, pod.uid)
        return entry

    def _make_ready(self, entry: _Entry, now_s: float) -> None:
        """Active, or as soon as its backoff is over (QUEUE3)."""
        self._tickets += 1
        if entry.not_before_s > now_s:
            self._move(entry, Where.BACKOFF)
            heapq.heappush(self._backoff, (entry.not_before_s, self._tickets, entry.pod.uid))
            if not entry.must_wait:
                self._hurrying[entry.pod.uid] = None
        else:
            self._move(entry, Where.ACTIVE)
            heapq.heappush(self._active, (entry.rank, self._tickets, entry.pod.uid))
        entry.ticket = self._tickets
        if len(self._active) > 2 * self._counts[Where.ACTIVE] + STALE_MAX:
            self._active = [one for one in self._active if self._is_current(*one[1:])]
            heapq.heapify(self._active)

    def _move(self, entry: _Entry, where: Where) -> None:
        self._leave(entry)
        self._counts[entry.where] -= 1
        self._counts[where] += 1
        entry.where = where
        entry.ticket = 0

    def _leave(self, entry: _Entry) -> None:
        if entry.pod.uid in self._groups:
            self._groups.leave(entry.pod.uid)
        self._hurrying.pop(entry.pod.uid, None)
        self._unlink(self._waiting, entry.waits_for, entry.pod.uid)
        entry.waits_for = frozenset()

    def _rouse(self, group: Hashable, now_s: float) -> None:
        uid = self._groups.wake_head(group)
        if uid is not None:
            self._make_ready(self._entries[uid], now_s)

    def _wake(self, uid: str, now_s: float) -> None:
        self._make_ready(self._entries[self._groups.wake(uid)], now_s)

    def _pass_on(self, uid: str, now_s: float) -> None:
        """The chance that the pod carried goes to the next of its group."""
        carried = self._groups.give_up_chance(uid)
        if carried is not None:
            self._rouse(carried, now_s)

    def _happened_to_users(self, claim: Key, event: Event, now_s: float) -> None:
        """Of the users that sleep in one group, the first is enough: the others are like it."""
        first: dict[Hashable, tuple[Rank, str]] = {}
        attended: set[Hashable] = set()
        for uid in self._users.get(claim, ()):
            entry = self._entries[uid]
            if entry.where is Where.TAKEN:
                entry.missed.add(event)
            elif self._groups.hears(uid, event):
                group = self._groups.group_of(uid)
                first[group] = min(first.get(group, (entry.rank, uid)), (entry.rank, uid))
            elif (carried := self._groups.group_of(uid)) is not None and entry.where is not Where.ASLEEP:
                attended.add(carried)
        for group, (_, uid) in first.items():
            if group not in attended:
                self._wake(uid, now_s)

    def _ripen(self, now_s: float) -> None:
        self._tidy_backoff()
        while self._backoff and self._backoff[0][0] <= now_s:
            self._make_ready(self._entries[heapq.heappop(self._backoff)[2]], now_s)
            self._tidy_backoff()
        while (longest := self._groups.longest()) is not None and longest[1] + self._leftover_s <= now_s:
            self._wake(longest[0], now_s)

    def _tidy_backoff(self) -> None:
        while self._backoff and not self._is_current(*self._backoff[0][1:]):
            heapq.heappop(self._backoff)

    def _is_current(self, ticket: int, uid: str) -> bool:
        entry = self._entries.get(uid)
        return entry is not None and entry.ticket == ticket

    def _backoff_s(self, attempts: int) -> float:
        return min(self._backoff_longest_s, self._backoff_first_s * 2.0 ** min(attempts - 1, 40))

    def _heard(self, rejected_by: frozenset[str]) -> frozenset[Event]:
        """What may help. Where nobody in particular said no, or one who does not tell: anything.

        That a node is gone helps nobody, and yet what the pod was told is not so any more (P3).
        """
        if not rejected_by:
            return ALL_EVENTS
        return TELLING.union(*(self._events.get(one, ALL_EVENTS) for one in rejected_by))

    @staticmethod
    def _link(index: dict[Key, dict[str, None]], keys: Iterable[Key], uid: str) -> None:
        for key in keys:
            index.setdefault(key, {})[uid] = None

    @staticmethod
    def _unlink(index: dict[Key, dict[str, None]], keys: Iterable[Key], uid: str) -> None:
        for key in keys:
            users = index.get(key)
            if users is not None:
                users.pop(uid, None)
                if not users:
                    del index[key]


def _matters(pod: PodInfo) -> object:
    """What decides where a pod fits. What schedulers write about it (conditions, nominations) does not."""
    return pod.spec, pod.labels, pod.status.resource_claim_statuses
