"""Lines of the script about compute resources: who asks for classes and raw names, and what changes under
them."""

import random
from collections.abc import Iterator

from .compute_things import CLASSES, RAW
from .step import NODES, Scope, Step

OTHER_SCHEDULER = "other-scheduler"
NAMES = (*CLASSES, RAW)


def pods(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """A pod asks for one name or for two, of either scheduler, and may go at any moment; many come at
    once."""
    at = scope.seconds * rng.choice((0.1, 0.3, 0.5, 0.7)) + rng.uniform(0, 3)
    for again in range(3):
        asked = {rng.choice(NAMES): rng.randint(1, 2)}
        if rng.random() < 0.4:
            asked[rng.choice(NAMES)] = 1
        of = {"name": line, "asked": asked}
        if rng.random() < 0.5:
            of["scheduler"] = OTHER_SCHEDULER
        yield Step(at, line, "create card pod", of)
        if rng.random() < 0.2:
            return
        at += rng.choice((rng.uniform(0, 5), rng.uniform(0, 60), rng.uniform(0, scope.seconds * 0.2)))
        yield Step(at, line, "delete pod", {"name": line, "force": rng.random() < 0.3})
        if again == 2 or rng.random() < 0.3:
            return
        at += rng.choice((0.0, rng.uniform(0, 30)))


def classes(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """Classes go, come back, and stand for something else in between; in the end they are as they were."""
    for name in CLASSES:
        at = rng.uniform(scope.seconds * 0.05, scope.seconds * 0.6)
        types = rng.choice((("a",), ("b",), ("nothing",), ()))
        yield Step(at, line, "change card class", {"name": name, "types": types})
        at += rng.uniform(1, scope.seconds * 0.2)
        if rng.random() < 0.5:
            yield Step(at, line, "delete card class", {"name": name})
            at += rng.uniform(1, 60)
            yield Step(at, line, "create card class", {"name": name, "types": types})
        at += rng.uniform(1, 60)
        yield Step(at, line, "change card class", {"name": name, "types": None})


def exports(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """Cards fall sick and recover; a plugin says other properties of cards, whoever has them."""
    for number in range(NODES):
        at = rng.uniform(scope.seconds * 0.1, scope.seconds * 0.6)
        yield Step(at, line, "export cards", {"node": number, "sick": rng.randint(1, 2), "renamed": False})
        at += rng.uniform(1, 120)
        yield Step(at, line, "export cards", {"node": number, "sick": 0, "renamed": rng.random() < 0.5})
