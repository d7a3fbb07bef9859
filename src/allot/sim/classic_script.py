"""Lines of the script about classic claims: who wants them, and what becomes of drivers."""

import random
from collections.abc import Iterator
from typing import Any

from .classic_things import CLASSES, COMMON, FORGETFUL, INSTANT, TEMPLATES, TWINS
from .step import CLASSIC_DRIVERS, Scope, Step

OWN = tuple(TEMPLATES)


def pods(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """A pod with claims of one driver or of both, alone or beside structured ones and extended resources; it
    may go at any moment of the talk, and another may take its name."""
    at = rng.uniform(0, scope.seconds * 0.8)
    for again in range(2):
        kind = rng.random()
        claims: tuple[str, ...] = (rng.choice(OWN),)
        if kind < 0.3:
            claims = OWN
        elif kind < 0.45:
            claims = (COMMON,)
        elif kind < 0.55:
            claims = (INSTANT,)
        of: dict[str, Any] = {"name": line, "claims": claims}
        if rng.random() < 0.3:
            of["scheduler"] = FORGETFUL
        elif rng.random() < 0.4:
            of |= {"claims": (*claims, "own"), "extended": rng.randint(0, 1)}
        yield Step(at, line, "create pod", of)
        if rng.random() < 0.4:
            return
        at += rng.choice((rng.uniform(0, 3), rng.uniform(0, 60), rng.uniform(0, scope.seconds * 0.2)))
        yield Step(at, line, "delete pod", {"name": line, "force": rng.random() < 0.3})
        if again or rng.random() < 0.5:
            return
        at += rng.choice((0.0, rng.uniform(0, 30)))


def twins(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """Pods want the same two claims, in the order of the one and in that of the other, and of two schedulers
    that know nothing of each other. Each goes away or ends by itself, so that the next can have them."""
    for round in range(3):
        began = scope.seconds * (0.1 + 0.28 * round)
        for number in range(3):
            name = f"{line}-{round}-{number}"
            claims = TWINS if number % 2 else tuple(reversed(TWINS))
            of = {"name": name, "claims": claims}
            if (number + round) % 2:
                of["scheduler"] = FORGETFUL
            at = began + rng.choice((0.0, rng.uniform(0, 5)))
            yield Step(at, line, "create pod", of)
            if round < 2:
                at += rng.uniform(60, scope.seconds * 0.2)
                yield Step(at, line, "delete pod", {"name": name, "force": False})


def claims(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """Claims and classes go while they are in use, and come back."""
    for name in (rng.choice(TWINS), COMMON, INSTANT):
        at = rng.uniform(scope.seconds * 0.1, scope.seconds * 0.7)
        yield Step(at, line, "delete classic claim", {"name": name})
        yield Step(at + rng.uniform(0, 120), line, "create classic claim", {"name": name})
    at = rng.uniform(scope.seconds * 0.2, scope.seconds * 0.7)
    name = rng.choice(tuple(CLASSES))
    yield Step(at, line, "delete resource class", {"name": name})
    yield Step(at + rng.uniform(10, 300), line, "create resource class", {"name": name})


def talks(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """Somebody removes PodSchedulings, which nobody may miss for long; and some are there whose pod is bound,
    as a scheduler leaves them that dies in between."""
    for _ in range(rng.randint(2, 5)):
        at = rng.uniform(0, scope.seconds * 0.95)
        yield Step(at, line, "delete podscheduling", {"lot": rng.randrange(1000)})
    for _ in range(3):
        at = rng.uniform(scope.seconds * 0.3, scope.seconds * 0.95)
        yield Step(at, line, "leave podscheduling", {"lot": rng.randrange(1000)})


def vanishing(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """A driver is gone for long, much longer than anybody waits for it."""
    for component in CLASSIC_DRIVERS:
        if rng.random() < 0.7:
            at = rng.uniform(scope.seconds * 0.05, scope.seconds * 0.7)
            of = {"component": component, "requests": rng.randint(1, 5), "steps": rng.randint(0, 20)}
            yield Step(at, line, "crash", {**of, "down_s": round(rng.uniform(60, 600), 1)})
