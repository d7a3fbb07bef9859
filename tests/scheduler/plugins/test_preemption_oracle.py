"""Preemption against trying every set of victims, in small worlds."""

from collections.abc import Iterator
from itertools import chain, combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.scheduler.cycle import Placed, Unplaced
from allot.scheduler.writes import Preempt

from .worlds import FABRIC, Running, Wanting, World, others, schedule, wanting

Price = tuple[int, int, int, int, int]
LOWEST = -(2**31)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    nodes = {name: draw(st.integers(2, 4)) for name in "ab"[: draw(st.integers(1, 2))]}
    gpus = {name: draw(st.integers(0, 3)) for name in (*nodes, FABRIC)}
    free = {name: [f"{name}/gpu-{index}" for index in range(count)] for name, count in gpus.items()}
    left = dict(nodes)
    pods: list[Running] = []
    claims: dict[str, tuple[str, ...]] = {}
    for index in range(draw(st.integers(0, 5))):
        node = draw(st.sampled_from(sorted(nodes)))
        cpu = draw(st.integers(0, left[node]))
        left[node] -= cpu
        on_node = sorted({one.claim for one in pods if one.node == node and one.claim})
        claim = ""
        match draw(st.sampled_from(["none", "own", "own", "fabric", "shared"])):
            case "own" | "fabric" as where:
                pool = free[node if where == "own" else FABRIC]
                taken = [pool.pop() for _ in range(min(len(pool), draw(st.integers(1, 2))))]
                if taken:
                    claim = f"c{index}"
                    claims[claim] = tuple(taken)
            case "shared" if on_node:
                claim = draw(st.sampled_from(on_node))
            case _:
                pass
        pods.append(
            Running(
                f"p{index}",
                node,
                priority=draw(st.sampled_from([-5, 0, 5, 10])),
                cpu=cpu,
                claim=claim,
                started=draw(st.integers(0, 3)),
                labels=draw(st.sampled_from([{}, {"app": "db"}])),
            )
        )
    budgets = draw(st.sampled_from([{}, {"db": 0}, {"db": 1}]))
    return World(nodes, gpus, tuple(pods), claims, budgets)


WANTS = st.builds(Wanting, cpu=st.integers(0, 4), gpus=st.integers(0, 3))


def fits(world: World, want: Wanting, node: str | None = None) -> bool:
    """Asked of a cluster that is made from nothing, and that knows nothing of preemption."""
    where = {"name": node} if node is not None else {}
    asked = Wanting(want.cpu, want.gpus, selector=where)
    snapshot = world.snapshot()
    return isinstance(schedule(wanting(asked, snapshot), snapshot, others()), Placed)


def price(world: World, victims: tuple[Running, ...]) -> Price:
    """The criteria, written down a second time."""
    ordered = sorted(victims, key=lambda one: (-one.priority, one.started, one.uid))
    left = dict(world.budgets)
    violations = 0
    for one in ordered:
        app = one.labels.get("app")
        if app in left:
            left[app] -= 1
            violations += left[app] < 0
    highest = ordered[0].priority
    return (
        violations,
        highest,
        sum(one.priority - LOWEST for one in ordered),
        len(ordered),
        -min(one.started for one in ordered if one.priority == highest),
    )


def every_way(world: World, want: Wanting) -> Iterator[tuple[Price, str]]:
    """Every set of pods of lower priority whose absence lets the pod in on a node.

    Sets with pods of other nodes count as well: they may hold what many nodes reach.
    """
    lower = [one for one in world.pods if one.priority < want.priority]
    sets = chain.from_iterable(combinations(lower, count) for count in range(1, len(lower) + 1))
    for victims in sets:
        rest = world.without(one.name for one in victims)
        for node in world.nodes:
            if fits(rest, want, node):
                yield price(world, victims), node


@settings(max_examples=120, deadline=None)
@given(worlds(), WANTS)
def test_victims_are_found_whenever_there_are_some_and_they_are_the_cheapest(world: World, want: Wanting):
    """EVICT1, EVICT2, EVICT3."""
    snapshot = world.snapshot()
    outcome = schedule(wanting(want, snapshot), snapshot)
    if isinstance(outcome, Placed):
        assert fits(world, want)
        return
    assert isinstance(outcome, Unplaced)
    expected = min(every_way(world, want), default=None)
    if outcome.remedy is None:
        assert expected is None
        return
    assert isinstance(outcome.remedy, Preempt)
    names = {victim.key.name for victim in outcome.remedy.victims}
    victims = tuple(one for one in world.pods if one.name in names)
    assert all(one.priority < want.priority for one in victims)
    assert fits(world.without(names), want, outcome.remedy.node)
    for spared in names:
        assert not fits(world.without(names - {spared}), want, outcome.remedy.node)
    assert expected is not None
    assert price(world, victims) == expected[0]
