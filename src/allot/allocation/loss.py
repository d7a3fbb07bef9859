"""What taking a device costs everybody else.

Partitions of one piece of hardware draw from the same counters, so taking one can
make others impossible. A small partition in the middle of an untouched GPU costs
all the large ones; the same partition beside others costs next to nothing.

Hardware comes in many equal pieces in equal conditions, so what was worked out for
one is remembered for all of them, for as long as the node's view lives.
"""

from dataclasses import dataclass, field
from typing import cast

from .inventory import NodeView
from .state import State

REMEMBERED_MAX = 10_000

Draws = tuple[tuple[int, int], ...]  # place of the counter, amount
Key = tuple[str, str]


def loss(state: State, at: int) -> float:
    """1 for a device of its own; see `Candidate.loss` for the others."""
    question = state.question
    kind, features = question.devices[at].kind, question.demand.features
    used = at in state.shares or at in question.shared
    if kind.shareable and features.consumable_capacity and used:
        return _part_left(state, at)
    if kind.consumption and features.partitionable_devices:
        return _partitions(question.view).lost(state, at)
    return 1.0


def _part_left(state: State, at: int) -> float:
    """The fuller a shared device is already, the better it is to fill it."""
    used = state.consumed_of(at)
    capacity = state.question.devices[at].kind.capacity
    full = [used.get(name, 0) / one.value.nano for name, one in capacity.items() if one.value.nano > 0]
    return 1.0 - max(full, default=0.0)


@dataclass(slots=True)
class _Piece:
    """Hardware whose partitions draw from the same counters."""

    pool: int
    counters: list[Key] = field(default_factory=list)
    members: list[int] = field(default_factory=list)
    draws: list[Draws] = field(default_factory=list)  # of each member
    parts: list[float] = field(default_factory=list)  # the part of all counters that each draws
    type: int = 0


def _partitions(view: NodeView) -> "Partitions":
    found = view.remembered.get("partitions")
    if found is None:
        found = view.remembered["partitions"] = Partitions(view)
    return cast(Partitions, found)


class Partitions:
    """The partitioned hardware of a node."""

    def __init__(self, view: NodeView) -> None:
        self._place: dict[int, tuple[_Piece, int]] = {}  # of a device: its piece, its rank there
        self._known: dict[tuple[int, tuple[int, ...], int], float] = {}
        types: dict[object, int] = {}
        for piece in _pieces(view):
            numbers = {key: place for place, key in enumerate(piece.counters)}
            totals = view.pools[piece.pool].totals
            for rank, at in enumerate(piece.members):
                self._place[at] = (piece, rank)
                draws = view.devices[at].kind.draws
                piece.draws.append(tuple((numbers[key], amount) for key, amount in draws if amount))
                parts = [amount / totals[key] for key, amount in draws if totals[key] > 0]
                # On average, because a slice of memory is often a counter of its own, which
                # the smallest partition uses up as the largest does.
                piece.parts.append(sum(parts) / len(piece.counters) if parts else 1.0)
            described = (tuple(piece.draws), tuple(totals[key] for key in piece.counters))
            piece.type = types.setdefault(described, len(types))

    def lost(self, state: State, at: int) -> float:
        piece, rank = self._place[at]
        left = state.left(piece.pool)
        condition = tuple([left[key] for key in piece.counters])
        key = (piece.type, condition, rank)
        if key not in self._known:
            if len(self._known) >= REMEMBERED_MAX:
                self._known.clear()
            self._known[key] = _lost(piece, condition, rank)
        return self._known[key]


def _lost(piece: _Piece, left: tuple[int, ...], rank: int) -> float:
    """The partitions that fit now and would not fit beside the chosen one, itself included."""
    drawn = dict(piece.draws[rank])
    lost = 0.0
    for other, draws in enumerate(piece.draws):
        if all(left[place] >= amount for place, amount in draws) and (
            other == rank or any(left[place] - drawn.get(place, 0) < amount for place, amount in draws)
        ):
            lost += piece.parts[other]
    return lost


def _pieces(view: NodeView) -> list[_Piece]:
    """Devices that share counter sets, directly or through others, in order."""
    pieces: list[_Piece] = []
    by_set: dict[tuple[int, str], _Piece] = {}
    for at, device in enumerate(view.devices):
        sets = [(view.pool_of[at], one.counter_set) for one in device.kind.consumption]
        if not sets:
            continue
        met = [by_set[one] for one in sets if one in by_set]
        piece = met[0] if met else _Piece(view.pool_of[at])
        if not met:
            pieces.append(piece)
        for other in met[1:]:
            if other is not piece:
                piece.members.extend(other.members)
                piece.counters.extend(other.counters)
                pieces.remove(other)
                by_set.update((key, piece) for key, value in list(by_set.items()) if value is other)
        piece.members.append(at)
        piece.members.sort()
        piece.counters.extend(key for key, _ in device.kind.draws if key not in piece.counters)
        by_set.update((one, piece) for one in sets)
    return pieces
