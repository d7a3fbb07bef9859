"""Lines of the script about numeric claims: who wants them, and what becomes of capacity and classes."""

import random
from collections.abc import Iterator
from typing import Any

from .numeric_things import CLASSES, COMMON, COUNT, INSTANT, NODES, TEMPLATES
from .step import Scope, Step

OTHER_SCHEDULER = "other-scheduler"
OWN = tuple(TEMPLATES)


def pods(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """A pod with one numeric claim or two, or with one that others use too, alone or beside a structured one;
    of one scheduler or of the other, which know nothing of each other."""
    at = rng.uniform(0, scope.seconds * 0.8)
    for again in range(2):
        kind = rng.random()
        claims: tuple[str, ...] = (rng.choice(OWN),)
        if kind < 0.3:
            claims = OWN[:2]
        elif kind < 0.45:
            claims = (COMMON,)
        elif kind < 0.55:
            claims = (INSTANT,)
        of: dict[str, Any] = {"name": line, "claims": claims}
        if rng.random() < 0.4:
            of["scheduler"] = OTHER_SCHEDULER
        elif rng.random() < 0.3:
            of["claims"] = (*claims, "own")
        yield Step(at, line, "create pod", of)
        if rng.random() < 0.3:
            return
        at += rng.choice((rng.uniform(0, 3), rng.uniform(0, 60), rng.uniform(0, scope.seconds * 0.2)))
        yield Step(at, line, "delete pod", {"name": line, "force": rng.random() < 0.3})
        if again or rng.random() < 0.5:
            return
        at += rng.choice((0.0, rng.uniform(0, 30)))


def capacity(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """What nodes have shrinks under what is in use, vanishes, and comes back."""
    for node in NODES:
        at = 0.0
        for _ in range(rng.randint(2, 5)):
            at += rng.uniform(scope.seconds * 0.05, scope.seconds * 0.25)
            count = rng.choice((None, 0, 1, 2, COUNT, COUNT + 2))
            yield Step(min(at, scope.seconds * 0.9), line, "publish capacity", {"node": node, "count": count})
        yield Step(scope.seconds * 0.95, line, "publish capacity", {"node": node, "count": COUNT})


def claims(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """Claims and classes go while they are in use, and come back."""
    for name in (COMMON, INSTANT):
        at = rng.uniform(scope.seconds * 0.1, scope.seconds * 0.7)
        yield Step(at, line, "delete classic claim", {"name": name})
        yield Step(at + rng.uniform(0, 120), line, "create numeric claim", {"name": name})
    at = rng.uniform(scope.seconds * 0.2, scope.seconds * 0.7)
    name = rng.choice(tuple(CLASSES))
    yield Step(at, line, "delete resource class", {"name": name})
    yield Step(at + rng.uniform(10, 300), line, "create numeric class", {"name": name})
