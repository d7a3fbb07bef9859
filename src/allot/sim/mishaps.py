"""What befalls nodes, devices and components, decided before the world begins.

Lines of the script like those of `script`, about what nobody does on purpose: machines vanish,
drivers publish anew, devices fall ill, components die at work, hear nothing, or lose their clock.
"""

import random
from collections.abc import Iterator

from .naming import agent_of
from .step import Scope, Step
from .things import DRIVER, SHARING


def nodes(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """A node vanishes and comes back, or does not; while it does, controllers may hear nothing of nodes,
    and a pod comes to it all the same."""
    at = rng.uniform(scope.seconds * 0.1, scope.seconds * 0.5)
    node = rng.randrange(100)
    yield Step(at, line, "lose node", {"node": node})
    if rng.random() < 0.7:
        at += rng.choice((rng.uniform(0, 30), rng.uniform(30, 300)))
        if rng.random() < 0.6:
            yield from _deaf(rng, line, at - 1, "nodes", (150, 240))
            of = {"name": "newcomer", "claims": (), "node": node}
            yield Step(at + rng.uniform(50, 100), line, "create pod", of)
        yield Step(at, line, "return node", {"node": node})
    if rng.random() < 0.5:
        at += rng.uniform(0, scope.seconds * 0.2)
        node = rng.randrange(100)
        yield Step(at, line, "silence node", {"node": node})
        yield Step(at + rng.uniform(600, 1200), line, "hear node", {"node": node})


def news(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """Now and then the controllers hear nothing of what matters most; in some worlds also at last."""
    for resource in ("pods", "resourceclaims", rng.choice(("replicasets", "jobs", "configmaps", "nodes"))):
        yield from _deaf(rng, line, rng.uniform(0, scope.seconds * 0.9), resource)
    if rng.random() < 0.5:
        lasts_s = (scope.seconds * 0.02, scope.seconds * 0.025)
        yield from _deaf(rng, line, scope.seconds * 0.97, "pods", lasts_s)


def _deaf(
    rng: random.Random, line: str, at: float, resource: str, lasts_s: tuple[float, float] = (30, 240)
) -> Iterator[Step]:
    """What came meanwhile is told afterwards, or the watch starts over with what is there then."""
    of = {"resource": resource, "seconds": round(rng.uniform(*lasts_s), 1), "forgets": rng.random() < 0.5}
    for component in ("controllers a", "controllers b"):
        yield Step(at, line, "deaf", {"component": component, **of})


def rivals(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """Others write to the same objects, once at any time and once at last."""
    for at in (rng.uniform(0, scope.seconds * 0.9), scope.seconds * 0.96):
        yield Step(at, line, "rivals", {"seconds": round(scope.seconds * 0.04, 1)})


def drivers(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """Pools are published anew, larger or smaller, at once or in two parts with a pause between."""
    generation = 1
    for _ in range(rng.randint(3, 6)):
        at = rng.uniform(0, scope.seconds * 0.9)
        generation += 1
        of = {"node": rng.randrange(100), "generation": generation, "devices": rng.randint(2, 6)}
        pause_s = rng.uniform(0, 120) if rng.random() < 0.4 else 0.0
        yield Step(at, line, "publish", {**of, "pause_s": round(pause_s, 1)})


def health(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """Devices fall ill: nobody new may have them, or nobody at all. Pools, and drivers as a whole,
    become well again; a device may not, and one falls ill late."""
    for number in range(rng.randint(3, 6)):
        at = rng.uniform(0, scope.seconds * 0.9)
        name, effect = f"unhealthy-{number}", rng.choice(("NoSchedule", "NoExecute"))
        what = rng.choice(("device", "device", "pool", "driver"))
        yield Step(
            at, line, "taint", {"name": name, "what": what, "lot": rng.randrange(1000), "effect": effect}
        )
        if what != "device" or rng.random() < 0.6:
            at += rng.choice((rng.uniform(0, 5), rng.uniform(0, 60), rng.uniform(0, scope.seconds * 0.2)))
            yield Step(at, line, "lift taint", {"name": name})
    late = {"name": "unhealthy-late", "what": "device", "lot": rng.randrange(1000), "effect": "NoExecute"}
    yield Step(rng.uniform(scope.seconds * 0.9, scope.seconds * 0.95), line, "taint", late)


def machines(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """The power of a machine with an agent goes, and a driver is away, for a moment or for long."""
    node = line.removeprefix("machine ")
    for _ in range(rng.randint(1, 3)):
        at = rng.uniform(scope.seconds * 0.05, scope.seconds * 0.9)
        yield Step(at, line, "reboot", {"node": node, "down_s": round(rng.uniform(5, 90), 1)})
    for _ in range(rng.randint(1, 3)):
        at = rng.uniform(0, scope.seconds * 0.7)
        away_s = rng.choice((rng.uniform(5, 60), rng.uniform(60, scope.seconds * 0.2)))
        of = {"node": node, "driver": rng.choice((DRIVER, SHARING)), "seconds": round(away_s, 1)}
        yield Step(at, line, "driver away", of)
    if rng.random() < 0.5:
        of = {"component": agent_of(node), "seconds": round(rng.uniform(-300, 300), 1)}
        yield Step(rng.uniform(0, scope.seconds * 0.9), line, "skew", of)


def trouble(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """What befalls one component: it dies at work, or does not get to run for a while."""
    component = line.removeprefix("trouble ")
    at = 0.0
    while (at := at + rng.expovariate(6 / scope.seconds)) < scope.seconds * 0.92:
        if rng.random() < 0.65:
            of = {"component": component, "requests": rng.randint(1, 40), "steps": rng.randint(0, 40)}
            yield Step(at, line, "crash", {**of, "down_s": round(rng.uniform(0, 30), 1)})
        else:
            yield Step(at, line, "freeze", {"component": component, "seconds": round(rng.uniform(5, 150), 1)})


def clock(rng: random.Random, line: str, scope: Scope) -> Iterator[Step]:
    """All clocks leap, as those of a machine that slept; or one component's wall clock is set."""
    for _ in range(rng.randint(1, 3)):
        yield Step(
            rng.uniform(0, scope.seconds * 0.95), line, "jump", {"seconds": round(rng.uniform(1, 90), 1)}
        )
    for _ in range(rng.randint(1, 3)):
        of = {"component": rng.choice(scope.components), "seconds": round(rng.uniform(-600, 600), 1)}
        yield Step(rng.uniform(0, scope.seconds * 0.95), line, "skew", of)
