"""Problems made to be hard, at the limits of the API: each answer is bounded in time and in memory.

Anybody who may create a claim may write these. An answer may be `undecided`, but it comes.
"""

import json
import time
import tracemalloc

import pytest

from allot.allocation import (
    POLICIES,
    Attempt,
    Budget,
    NoFit,
    Undecided,
    allocate,
    explain,
    problem_of,
    read_demand,
    remedies,
)

REQUESTS, SUBREQUESTS, CONSTRAINTS, DEVICES, DRAWING_DEVICES, COUNTERS = 32, 8, 32, 128, 64, 32
STEPS = 10_000  # a tenth of what an answer may cost, for the sake of whoever waits for the tests
PEAK_BYTES_MAX = 32 * 2**20
CPU_S_MAX = 30  # far more than any of them takes, because memory is traced meanwhile
FEATURES = [
    "AdminAccess",
    "ConsumableCapacity",
    "DerivedAttributes",
    "ListTypeAttributes",
    "PartitionableDevices",
    "PrioritizedList",
]


def problem(slices, claims, **more):
    return {
        "features": FEATURES,
        "node": {"metadata": {"name": "n"}},
        "classes": [{"metadata": {"name": "c"}, "spec": {}}],
        "slices": slices,
        "claims": claims,
        **more,
    }


def published(number, pool="p", slices=1, **content):
    spec = {"driver": "d", "nodeName": "n", "pool": {"name": pool, "generation": 1}, **content}
    spec["pool"]["resourceSliceCount"] = slices
    return {"metadata": {"name": f"s{number:05d}"}, "spec": spec}


def claim(number, *requests, **more):
    return {
        "metadata": {"name": f"c{number}"},
        "spec": {"devices": {"requests": list(requests), **more}},
    }


def ask(**more):
    return {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1, **more}


def wants(number, **more):
    return {"name": f"r{number}", "exactly": ask(**more)}


def cel(expression):
    return [{"cel": {"expression": expression}}]


def mixed(number, values):
    """Numbers that share nothing: `values` of them, in no order."""
    return number * 7919 % values


def attributes(number):
    return {f"a{at}": {"int": mixed(number * (at + 3), 5 + at)} for at in range(16)}


def shared(*amounts):
    return [
        {"name": f"d{at}", "allowMultipleAllocations": True, "capacity": {"m": {"value": amount}}}
        for at, amount in enumerate(amounts)
    ]


def counters(value):
    return {f"k{at}": {"value": value(at)} for at in range(COUNTERS)}


def huge_beside_tiny():
    amounts = [["1Ei", "1", "3m", "80Gi", "7n", "1Ti"][at % 6] for at in range(DEVICES)]
    claims = [claim(n, *(wants(at, count=2) for at in range(16))) for n in range(4)]
    return problem([published(0, devices=shared(*amounts))], claims)


def two_of_three_shares():
    claims = [claim(n, wants(0, count=2)) for n in range(2)]
    return problem([published(0, devices=shared("1Ei", "8", "4"))], claims)


def shares_that_hardly_fit():
    amounts = [f"{10007 + at * 13}m" for at in range(DEVICES)]
    claims = [
        claim(
            n,
            *(
                wants(at, capacity={"requests": {"m": f"{4000 + mixed(at + n, 997)}m"}})
                for at in range(REQUESTS)
            ),
        )
        for n in range(8)
    ]
    return problem([published(0, devices=shared(*amounts))], claims)


def sums_of_many_counters():
    total = published(0, slices=2, sharedCounters=[{"name": "s", "counters": counters(lambda _: "1000003")}])
    drawing = [
        {
            "name": f"d{n}",
            "consumesCounters": [
                {
                    "counterSet": "s",
                    "counters": counters(lambda at, n=n: str(30000 + mixed(n * (at + 1), 9973))),
                }
            ],
        }
        for n in range(DRAWING_DEVICES)
    ]
    return problem([total, published(1, slices=2, devices=drawing)], [claim(0, wants(0, count=32))])


def counters_of_every_size():
    total = published(
        0,
        slices=2,
        sharedCounters=[
            {"name": f"s{n}", "counters": counters(lambda at: "1Ei" if at % 2 else "9")} for n in range(8)
        ],
    )
    drawing = [
        {
            "name": f"d{n}",
            "consumesCounters": [
                {
                    "counterSet": f"s{(n + two) % 8}",
                    "counters": counters(
                        lambda at, n=n: f"{1 + (n + at) % 7}00Pi" if at % 2 else f"{1 + n % 13}m"
                    ),
                }
                for two in range(2)
            ],
        }
        for n in range(DRAWING_DEVICES)
    ]
    claims = [claim(n, *(wants(at, count=2) for at in range(16))) for n in range(3)]
    return problem([total, published(1, slices=2, devices=drawing)], claims)


def constraints_that_cross():
    devices = [{"name": f"d{n}", "attributes": attributes(n)} for n in range(DEVICES)]
    constraints = [
        {
            "matchAttribute": f"d/a{at % 16}",
            "requests": sorted({f"r{at * by % REQUESTS}" for by in range(1, 8)}),
        }
        for at in range(CONSTRAINTS)
    ]
    asked = claim(0, *(wants(at) for at in range(REQUESTS)), constraints=constraints)
    return problem([published(0, devices=devices)], [asked])


def lists_under_every_constraint():
    devices = [
        {
            "name": f"d{n}",
            "attributes": {name: {"ints": [mixed(n * by, 97) for by in range(1, 17)]} for name in "lm"},
        }
        for n in range(DRAWING_DEVICES)
    ]
    constraints = [{"matchAttribute": "d/l"}, {"distinctAttribute": "d/m"}] * (CONSTRAINTS // 2)
    asked = claim(0, *(wants(at) for at in range(REQUESTS)), constraints=constraints)
    return problem([published(0, devices=devices)], [asked])


def alternatives_of_alternatives():
    devices = [{"name": f"d{n}", "attributes": attributes(n)} for n in range(DEVICES)]
    claims = [
        claim(
            n,
            *(
                {
                    "name": f"r{at}",
                    "firstAvailable": [
                        {
                            "name": f"sub{sub}",
                            **ask(
                                count=sub + 1,
                                selectors=cel(
                                    f'device.attributes["d"].a{(at + sub) % 16} < {sub % 3 + n + 1}'
                                ),
                            ),
                        }
                        for sub in range(SUBREQUESTS)
                    ],
                }
                for at in range(REQUESTS)
            ),
            constraints=[{"matchAttribute": f"d/a{at % 16}"} for at in range(CONSTRAINTS)],
        )
        for n in range(3)
    ]
    return problem([published(0, devices=devices)], claims)


def one_device_too_few():
    devices = [
        {"name": f"d{n}", "attributes": {f"a{at}": {"bool": n % (at + 2) != 0} for at in range(16)}}
        for n in range(REQUESTS - 1)
    ]
    asked = (wants(at, selectors=cel(f'device.attributes["d"].a{at % 16}')) for at in range(REQUESTS))
    return problem([published(0, devices=devices)], [claim(0, *asked)])


def thousands_of_slices():
    slices = [
        published(n, pool=f"p{n}", devices=[{"name": "d", "attributes": {"x": {"int": n}}}])
        for n in range(3000)
    ]
    asked = (
        wants(at, selectors=cel(f'device.attributes["d"].x % 2999 == {at * 311 + 2998}'))
        for at in range(REQUESTS)
    )
    return problem(slices, [claim(0, *asked)])


def more_claims_than_devices():
    slices = [
        published(n, slices=20, devices=[{"name": f"d{n}-{at}"} for at in range(DEVICES)]) for n in range(20)
    ]
    return problem(slices, [claim(n, *(wants(at) for at in range(REQUESTS))) for n in range(100)])


def selectors_that_cost_the_limit():
    """Each is just cheap enough to be accepted, and there is one for every request and device."""
    devices = [{"name": f"d{n}", "attributes": attributes(n)} for n in range(DEVICES)]
    loops = "lists.range(150).all(x, lists.range(150).all(y, x + y + {} > device.attributes['d'].a1 - 9))"
    asked = (wants(at, selectors=cel(loops.format(at))) for at in range(REQUESTS))
    return problem([published(0, devices=devices)], [claim(0, *asked)])


def derived_that_cost_the_limit():
    devices = [{"name": f"d{n}", "attributes": attributes(n)} for n in range(DEVICES)]
    summed = (
        "lists.range(150).map(x, lists.range(100).map(y, x + y).sum() + {}).sum() + device.attributes['d'].a1"
    )
    asked = (
        wants(at, derivedAttributes=[{"name": "x.example.com/y", "expression": summed.format(at)}])
        for at in range(REQUESTS)
    )
    constraints = [{"matchAttribute": "x.example.com/y"}]
    return problem([published(0, devices=devices)], [claim(0, *asked, constraints=constraints)])


HARD = [
    huge_beside_tiny,
    two_of_three_shares,
    shares_that_hardly_fit,
    sums_of_many_counters,
    counters_of_every_size,
    constraints_that_cross,
    lists_under_every_constraint,
    alternatives_of_alternatives,
    one_device_too_few,
    thousands_of_slices,
    more_claims_than_devices,
    selectors_that_cost_the_limit,
    derived_that_cost_the_limit,
]


def traced(run):
    """What `run` returns, with the memory and the CPU time that it took at most."""
    tracemalloc.start()
    started_s = time.process_time()
    try:
        found = run()
        return found, tracemalloc.get_traced_memory()[1], time.process_time() - started_s
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("policy", ["first-fit", "least-waste"])
@pytest.mark.parametrize("hard", HARD, ids=lambda one: one.__name__)
def test_every_answer_comes_soon_and_takes_little_memory(hard, policy):
    stated = problem_of(json.loads(json.dumps(hard())))
    demand = read_demand(stated.claims, stated.classes, stated.features)
    inventory, ledger = stated.inventory(), stated.ledger()

    answer, peak_bytes, cpu_s = traced(
        lambda: allocate(stated.node, inventory, ledger, demand, POLICIES[policy], budget=STEPS)
    )

    assert answer.steps <= STEPS + 1
    assert peak_bytes < PEAK_BYTES_MAX
    assert cpu_s < CPU_S_MAX


@pytest.mark.parametrize("hard", [constraints_that_cross, more_claims_than_devices])
def test_so_does_every_explanation(hard, monkeypatch):
    """With all the changes that it tries."""
    monkeypatch.setattr(remedies, "ALL_STEPS", STEPS)
    stated = problem_of(json.loads(json.dumps(hard())))
    attempt = Attempt(stated.node, stated.inventory(), stated.ledger(), stated.claims, stated.classes)

    explained, peak_bytes, cpu_s = traced(lambda: explain(attempt, Undecided(0)))

    assert explained.requests
    assert peak_bytes < 5 * PEAK_BYTES_MAX
    assert cpu_s < CPU_S_MAX


def test_who_asks_again_comes_further():
    """What was read for a budget that did not suffice is kept."""
    hard = selectors_that_cost_the_limit()
    del hard["slices"][0]["spec"]["devices"][2:]
    del hard["claims"][0]["spec"]["devices"]["requests"][4:]
    stated = problem_of(hard)
    demand = read_demand(stated.claims, stated.classes, stated.features)
    inventory, ledger = stated.inventory(), stated.ledger()

    first, *rest = (
        allocate(stated.node, inventory, ledger, demand, POLICIES["first-fit"], budget=STEPS)
        for _ in range(9)
    )

    assert isinstance(first, Undecided)
    assert isinstance(rest[-1], NoFit)


def selectors_that_nobody_evaluated():
    """Hundreds of selectors at the limit, each of another text, and one device: none is asked twice."""
    loops = "lists.range(150).all(x, lists.range(150).all(y, x + y + {} > device.attributes['d'].a1 - 9))"
    asked = (
        wants(at, selectors=[cel(loops.format(f"{at} + {more}"))[0] for more in range(8)])
        for at in range(REQUESTS)
    )
    return problem([published(0, devices=[{"name": "d", "attributes": attributes(1)}])], [claim(0, *asked)])


EVALUATED_CPU_S_MAX = 5
"""All selectors above take twice as long, without the tracing of memory."""


def test_a_selector_is_paid_for_when_it_is_evaluated_for_the_first_time_too():
    """What it costs is known once it is compiled: a first evaluation was had for the price of compiling."""
    stated = problem_of(selectors_that_nobody_evaluated())
    demand = read_demand(stated.claims, stated.classes, stated.features)
    inventory, ledger = stated.inventory(), stated.ledger()

    started_s = time.process_time()
    answer = allocate(stated.node, inventory, ledger, demand, POLICIES["first-fit"], budget=STEPS)

    assert isinstance(answer, Undecided)
    assert time.process_time() - started_s < EVALUATED_CPU_S_MAX


def test_an_explanation_pays_for_selectors_and_counts_devices_that_it_cannot_judge():
    """The scheduler explains on the event loop: a pod with such claims held it for half a minute."""
    stated = problem_of(selectors_that_nobody_evaluated())
    attempt = Attempt(stated.node, stated.inventory(), stated.ledger(), stated.claims, stated.classes)

    started_s = time.process_time()
    explained = explain(attempt, Undecided(0), suggest=False, budget=Budget(STEPS))

    assert time.process_time() - started_s < EVALUATED_CPU_S_MAX
    assert all(sum(group.devices for group in one.groups) == one.looked_at == 1 for one in explained.requests)
    assert "1 not judged, since selectors take too long to evaluate" in explained.requests[-1].text
