"""All pending claims of a pod on one node, together or not at all.

Each model says which choices a claim has; here they are combined. Claims with fewer choices choose first, and
flexible ones last; claims that ask alike take instances in order, since swapping them would change nothing.

What it promises
    FIT1  What is found never takes more than is free, all claims together.
    FIT2  If nothing is found there is nothing, unless it says `Undecided`: the steps ran out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from .model import Choice, Lacking, Model, Offer

BUDGET_STEPS: Final = 5_000
OFFERS_PER_STEP: Final = 32
"""What is done on one node for several claims: a choice that is tried is a step, and so are so many offers
that are looked through for it. A tenth of a second or two at most."""


class Want(NamedTuple):
    """What a claim asks of a driver."""

    driver: str
    model: Model
    parameters: Any
    key: object  # equal for wants that ask alike


class Found(NamedTuple):
    choices: tuple[Choice, ...]  # one a want, in their order


class Undecided(NamedTuple):
    pass


class _OutOfSteps(Exception):
    pass


Shelves = Mapping[str, Sequence[Offer]]
"""Offers by driver."""


def fit(wants: Sequence[Want], shelves: Shelves, budget: int = BUDGET_STEPS) -> Found | Lacking | Undecided:
    """The choices for all wants, or why there are none."""
    if len(wants) == 1:  # as nearly always
        return _single(wants[0], shelves)
    alone: list[int] = []
    for want in wants:
        found = sum(1 for _ in _choices(want, shelves.get(want.driver, ())))
        if not found:
            return _lacking(want, shelves)
        alone.append(found)
    first = {want.key: at for at, want in reversed(list(enumerate(wants)))}

    def turn(at: int) -> tuple[bool, int, int, int]:
        want = wants[at]
        return want.model.is_flexible(want.parameters), alone[at], first[want.key], at

    order = sorted(range(len(wants)), key=turn)
    search = _Search([wants[at] for at in order], budget)
    try:
        chosen = search.place(0, shelves)
    except _OutOfSteps:
        return Undecided()
    if chosen is None:
        return Lacking(
            "node(s) with too little for all numeric claims of the pod together",
            "each claim would fit alone, and not all of them together",
        )
    by_place = dict(zip(order, chosen, strict=True))
    return Found(tuple(by_place[at] for at in range(len(wants))))


def _single(want: Want, shelves: Shelves) -> Found | Lacking:
    first = next(iter(_choices(want, shelves.get(want.driver, ()))), None)
    return Found((first,)) if first is not None else _lacking(want, shelves)


def _lacking(want: Want, shelves: Shelves) -> Lacking:
    offers = _own(want.model, shelves.get(want.driver, ()))
    if not offers:
        return Lacking(
            "node(s) without capacity of the claim's driver",
            f"driver {want.driver} has published nothing here that {want.model.name} understands",
            by=float("inf"),
        )
    return want.model.lacking(want.parameters, offers)


def _choices(want: Want, offers: Sequence[Offer]) -> Iterator[Choice]:
    return iter(want.model.choices(want.parameters, _own(want.model, offers)))


def _own(model: Model, offers: Sequence[Offer]) -> Sequence[Offer]:
    if all(one.instance.model is model for one in offers):
        return offers
    return [one for one in offers if one.instance.model is model]


class _Search:
    def __init__(self, wants: Sequence[Want], budget: int) -> None:
        self._wants = wants
        self._left = budget

    def place(self, at: int, shelves: Shelves, after: int = 0) -> list[Choice] | None:
        """The choices for this want and all that follow. `after` is where the one before, which asks for
        the same, was served: no instance before that is tried again."""
        if at == len(self._wants):
            return []
        want = self._wants[at]
        offers = shelves.get(want.driver, ())
        self._spend(len(offers) // OFFERS_PER_STEP)
        is_followed = at + 1 < len(self._wants) and self._wants[at + 1].key == want.key
        places = {one.instance.id: place for place, one in enumerate(offers)}
        for choice in _choices(want, offers):
            place = places[choice.instance.id]
            if place < after:
                continue
            self._spend(1)
            rest = {**shelves, want.driver: _without(offers, place, choice)}
            found = self.place(at + 1, rest, place if is_followed else 0)
            if found is not None:
                return [choice, *found]
        return None

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _OutOfSteps


def _without(offers: Sequence[Offer], place: int, choice: Choice) -> list[Offer]:
    taken = offers[place]
    left = {name: amount - choice.takes.get(name, 0) for name, amount in taken.free.items()}
    return [*offers[:place], Offer(taken.instance, left), *offers[place + 1 :]]
