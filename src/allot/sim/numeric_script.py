"""Lines of the script about what machines have of counters: it grows, shrinks, goes and comes back."""

import random
from collections.abc import Iterator

from .numeric_drivers import DRIVER
from .step import Scope, Step


def capacity(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """The driver of a machine says something else, or the same again; it is away, for a moment or for long;
    and somebody who should not spoils what was published."""
    node = line.removeprefix("capacity ")
    for _ in range(rng.randint(3, 8)):
        at = rng.uniform(0, scope.seconds * 0.95)
        counts = {f"c{number}": rng.randint(0, 6) for number in range(rng.choice((0, 1, 2, 2, 3)))}
        yield Step(at, line, "count", {"node": node, "counts": counts})
        if rng.random() < 0.6:
            other = {id: count + rng.randint(0, 1) for id, count in counts.items()}
            yield Step(at + rng.uniform(0, 5), line, "count", {"node": node, "counts": other})
    for _ in range(rng.randint(1, 3)):
        at = rng.uniform(0, scope.seconds * 0.7)
        away_s = rng.choice((rng.uniform(5, 60), rng.uniform(60, scope.seconds * 0.2)))
        yield Step(at, line, "driver away", {"node": node, "driver": DRIVER, "seconds": round(away_s, 1)})
    for first, last in ((0.0, 0.9), (0.96, 0.99)):
        at, how = (
            rng.uniform(scope.seconds * first, scope.seconds * last),
            rng.choice(("delete", "empty", "copy")),
        )
        if rng.random() < 0.6:
            yield Step(at, line, "spoil capacity", {"node": node, "how": how})
