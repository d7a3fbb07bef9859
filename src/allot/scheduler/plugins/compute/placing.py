"""All that a pod asks for on one node, chosen together: containers in their order, groups whole.

Containers that run at a time share what is free; those that follow each other do not (`asking.phases`). So
each phase is a flow of its own, and what an init container had is used again by those after it. Where
containers keep running beside later ones, phases depend on each other: what those containers might get is
tried one way after the other. A group is one wish for each of its members, from compute resources that
share the properties which the class names; how many groups come from which values is tried likewise.

What it promises
    PLACED1  An answer is found whenever there is one; after TRIES_MAX ways the answer is `Undecided`.
    PLACED2  Init containers take what the pod holds anyway before anything else.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import NamedTuple

from .asking import ComputeAsk
from .choosing import Chosen, Wish, choose

TRIES_MAX = 512


class Undecided(Exception):
    """Too many ways to try."""


class Part(NamedTuple):
    """Devices of one member, from some compute resources."""

    member: int | None  # None: the class is no group
    amount: int
    costs: Mapping[int, int]


Parts = tuple[Part, ...]
Options = Sequence[Sequence[Parts]]
"""For each ask, the ways in which it may be met."""
Answer = dict[tuple[int, int | None, int], int]
"""Ask, member and compute resource -> devices."""


def distribute(amount: int, most: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All ways to write `amount` as a sum, with at most so much in each place."""
    if not most:
        if amount == 0:
            yield ()
        return
    for first in range(min(amount, most[0]), -1, -1):
        for rest in distribute(amount - first, most[1:]):
            yield (first, *rest)


def place(asked: ComputeAsk, options: Options, free: Sequence[int]) -> Answer | None:
    """None is a proof; raises Undecided."""
    tries = 0
    phases = asked.phases()
    for ways in product(*options):
        for answer in _answers(asked, phases, ways, free):
            tries += 1
            if answer is not None:
                return answer
            if tries >= TRIES_MAX:
                raise Undecided
    return None


def _answers(
    asked: ComputeAsk, phases: Sequence[Sequence[int]], ways: Sequence[Parts], free: Sequence[int]
) -> Iterator[Answer | None]:
    """Of one way to meet the asks: what came of each way to serve those that keep running."""
    staying = [at for at in range(len(asked.asks)) if asked.keeps(at)]
    if not staying:
        yield _in_turns(phases, ways, free, {}, staying)
        return
    last = _phase(phases[-1], ways, free)
    if last is None:
        yield None
        return
    kept = {key: count for key, count in last.items() if key[0] in staying}
    yield _in_turns(phases, ways, free, kept, staying)
    for other in _kept_otherwise([(at, part) for at in staying for part in ways[at]], free):
        yield _in_turns(phases, ways, free, other, staying)


def _kept_otherwise(parts: Sequence[tuple[int, Part]], free: Sequence[int]) -> Iterator[Answer]:
    if not parts:
        yield {}
        return
    (at, part), rest = parts[0], parts[1:]
    places = list(part.costs)
    for counts in distribute(part.amount, [free[one] for one in places]):
        left = list(free)
        own: Answer = {}
        for one, count in zip(places, counts, strict=True):
            left[one] -= count
            if count:
                own[at, part.member, one] = count
        for others in _kept_otherwise(rest, left):
            yield {**own, **others}


def _in_turns(
    phases: Sequence[Sequence[int]],
    ways: Sequence[Parts],
    free: Sequence[int],
    kept: Answer,
    staying: list[int],
) -> Answer | None:
    """The last phase first: it is what the pod holds for most of its life."""
    answer: Answer = dict(kept)
    held = [0] * len(free)  # by the pod, in any phase so far
    for phase in reversed(phases):
        beside = [
            sum(n for (at, _, one), n in kept.items() if one == place and at in phase)
            for place in range(len(free))
        ]
        left = [one - other for one, other in zip(free, beside, strict=True)]
        own = _phase([at for at in phase if at not in staying], ways, left, held)
        if own is None:
            return None
        answer.update(own)
        for place in range(len(free)):
            now = beside[place] + sum(n for (_, _, one), n in own.items() if one == place)
            held[place] = max(held[place], now)
    return answer


def _phase(
    asks: Sequence[int], ways: Sequence[Parts], free: Sequence[int], held: Sequence[int] = ()
) -> Answer | None:
    parts = [(at, part) for at in asks for part in ways[at]]
    if not parts:
        return {}
    count = len(free)
    again = [min(one, other) for one, other in zip(held or [0] * count, free, strict=True)]
    dear = 1 + sum(part.amount * max(part.costs.values(), default=0) for _, part in parts)
    wishes = [_wish(part, count, dear, bool(held)) for _, part in parts]
    room = [*again, *(one - other for one, other in zip(free, again, strict=True))]
    chosen = choose(wishes, room)
    return _joined(parts, chosen, count) if chosen is not None else None


def _wish(part: Part, count: int, dear: int, has_held: bool) -> Wish:
    """Each compute resource twice: what the pod holds of it anyway, and the rest (PLACED2)."""
    rest = {one + count: cost + dear for one, cost in part.costs.items()}
    return Wish(part.amount, {**part.costs, **rest} if has_held else rest)


def _joined(parts: Sequence[tuple[int, Part]], chosen: Chosen, count: int) -> Answer:
    answer: Answer = {}
    for (at, part), own in zip(parts, chosen, strict=True):
        for one, devices in own.items():
            key = (at, part.member, one % count)
            answer[key] = answer.get(key, 0) + devices
    return answer


def group_options(
    amount: int,
    members: Sequence[tuple[int, int, Mapping[int, int]]],
    value_of: Callable[[int], object],
    free: Sequence[int],
) -> Sequence[Parts]:
    """The ways to take whole groups: `members` are index, devices in a group, and costs by compute resource;
    `value_of` is what the devices of a group have in common, None for resources that lack a property."""
    if not members:
        return ((),)
    values = list(
        dict.fromkeys(v for _, _, costs in members for one in costs if (v := value_of(one)) is not None)
    )
    fits = [
        min(sum(free[one] for one in costs if value_of(one) == value) // count for _, count, costs in members)
        for value in values
    ]
    found: list[Parts] = []
    for counts in islice(distribute(amount, fits), TRIES_MAX + 1):
        if len(found) == TRIES_MAX:
            raise Undecided
        parts: dict[tuple[int, int], Part] = {}
        for at, groups in enumerate(counts):
            for member, count, costs in members if groups else ():
                own = {one: cost for one, cost in costs.items() if value_of(one) == values[at]}
                parts[member, at] = Part(member, groups * count, own)
        found.append(tuple(parts.values()))
    return found
