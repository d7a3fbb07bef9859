"""Lines of the script about pods that need more nodes than there are, and about groups of nodes."""

import random
from collections.abc import Iterator

from .step import Scope, Step

SHAPES: tuple[tuple[int, tuple[str, ...]], ...] = ((1, ()), (2, ()), (3, ()), (4, ()), (1, ("own",)), (6, ()))
"""Processors and claims of pods."""


def pods(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """A pod that fits on no node but of a group; it may go before its node has come."""
    at = rng.uniform(0, scope.seconds * 0.8)
    for again in range(2):
        cpu, claims = rng.choice(SHAPES)
        yield Step(at, line, "create large pod", {"name": line, "cpu": cpu, "claims": claims})
        if rng.random() < 0.4:
            return
        at += rng.choice((rng.uniform(0, 30), rng.uniform(30, 200), rng.uniform(0, scope.seconds * 0.2)))
        yield Step(at, line, "delete pod", {"name": line, "force": rng.random() < 0.3})
        if again or rng.random() < 0.6:
            return
        at += rng.choice((0.0, rng.uniform(0, 60)))


def surges(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """A deployment whose pods are made anew wherever they are: it grows, shrinks to little, and grows."""
    at = rng.uniform(0, scope.seconds * 0.3)
    cpu, claims = rng.choice(SHAPES[:5])
    of = {"name": line, "replicas": rng.randint(1, 4), "cpu": cpu, "claims": claims}
    yield Step(at, line, "create surge", of)
    for _ in range(rng.randint(2, 4)):
        at += rng.choice((rng.uniform(0, 60), rng.uniform(60, scope.seconds * 0.25)))
        if at > scope.seconds * 0.95:
            break
        yield Step(at, line, "scale", {"name": line, "replicas": rng.choice((0, 1, 1, 2, 3, 5))})
    if rng.random() < 0.4:
        at = scope.seconds * rng.uniform(0.9, 0.99)
        yield Step(at, line, "scale", {"name": line, "replicas": rng.choice((0, 1, 2))})


def crowds(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """Many at one moment, and at last once more; in half of the cases all alike."""
    for at in (rng.uniform(0, scope.seconds * 0.7), scope.seconds * rng.uniform(0.85, 0.97)):
        shape = rng.choice(SHAPES) if rng.random() < 0.5 else None
        for number in range(rng.randint(3, 7)):
            cpu, claims = shape or rng.choice(SHAPES)
            of = {"name": f"{line}-{round(at)}-{number}", "cpu": cpu, "claims": claims}
            yield Step(at + rng.uniform(0, 3), line, "create large pod", of)


def groups(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """Machines vanish; a template that promises too much is corrected, or never is."""
    for _ in range(rng.randint(1, 4)):
        at = rng.uniform(scope.seconds * 0.05, scope.seconds * 0.95)
        yield Step(at, line, "lose group node", {"lot": rng.randrange(1000)})
    if rng.random() < 0.6:
        yield Step(rng.uniform(scope.seconds * 0.3, scope.seconds * 0.9), line, "correct groups")


def clocks(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    for component in ("autoscaler a", "autoscaler b"):
        if rng.random() < 0.5:
            of = {"component": component, "seconds": round(rng.uniform(-600, 600), 1)}
            yield Step(rng.uniform(0, scope.seconds * 0.95), line, "skew", of)
