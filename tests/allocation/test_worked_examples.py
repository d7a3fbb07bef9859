"""The examples in the docstrings of the hard files: what they tell is so."""

import doctest

from allot.allocation import Budget, Ledger, Node, flow
from allot.allocation.bounds import Bounds
from allot.allocation.question import DeviceState, Question, ask
from allot.allocation.shape import Shape
from allot.allocation.state import State

from .builders import claim, demanded, device, larger_than, partition, slice_of, stocked, wants

NODE = Node("n")


def asked(*slices, count: int = 1, selector: str = "true") -> Question:
    demand = demanded(claim(wants("r", count, selector)))
    found = ask(NODE, stocked(*slices), Ledger(), demand, Budget(10_000))
    assert isinstance(found, Question)
    return found


def card():
    """8Gi, whole and in halves."""
    parts = [
        partition("whole", "card-0", 8),
        partition("half-0", "card-0", 4),
        partition("half-1", "card-0", 4),
    ]
    sets = [{"name": "card-0", "counters": {"memory": {"value": "8Gi"}}}]
    where = {"pool": "n", "nodeName": "n", "slices": 2}
    return slice_of(*parts, name="parts", **where), slice_of(name="sets", sharedCounters=sets, **where)


def test_flow():
    assert doctest.testmod(flow).attempted == 5
    assert doctest.testmod(flow).failed == 0


def test_question():
    taint = {"key": "worn", "effect": "NoSchedule"}
    devices = [
        device("small", gib=16),
        device("large", gib=80),
        device("worn", gib=80, taints=[taint]),
        device("bare"),
    ]
    question = asked(slice_of(*devices, pool="n", nodeName="n"), selector=larger_than(40))
    (alternative,) = question.demand.alternatives()
    row = question.row(alternative)
    assert row.states == (DeviceState.NO, DeviceState.OPEN, DeviceState.BLOCKED, DeviceState.ERROR)
    assert [devices[at]["name"] for at in row.worth_trying] == ["large", "bare"]
    assert [devices[at]["name"] for at in row.selected] == ["large", "worn"]


def test_state():
    question = asked(*card(), count=2)
    (alternative,) = question.demand.alternatives()
    whole, first, second = (
        next(at for at, one in enumerate(question.devices) if one.id.name == name)
        for name in ("whole", "half-0", "half-1")
    )
    state = State(question, heed_errors=False)
    assert state.take(alternative, whole)
    assert not state.take(alternative, first)
    state.undo()
    assert state.take(alternative, first)
    assert not state.take(alternative, first)
    assert state.take(alternative, second)
    assert state.sizes == [2]


def test_bounds():
    def possible(count: int, *taken: str) -> bool:
        question = asked(*card(), count=count)
        (alternative,) = question.demand.alternatives()
        state, budget = State(question, heed_errors=False), Budget(10_000)
        bounds = Bounds(question, state, Shape(question, state, budget, heed_errors=False), budget)
        for name in taken:
            at = next(at for at, one in enumerate(question.devices) if one.id.name == name)
            assert state.take(alternative, at)
        return bounds.possible(alternative, len(taken)) if taken else bounds.possible()

    assert not possible(3)
    assert possible(2)
    assert not possible(2, "whole")
    assert possible(2, "half-0")
