"""Which compute resources serve the wishes of a pod on one node: a flow, not a guess.

A wish wants a number of devices, each from any of some compute resources. Wishes that are to be met at a time
share what is free, so taking devices in some order may take away what another wish needs: the example that
KEP-14 is about is A wanting one of {1, 2} and B one of {1}. Devices flow from compute resources to wishes;
a wish that finds nothing free pushes others to where they can go as well (augmenting paths).

What it promises
    CHOOSE1  An answer is found whenever there is one: None is a proof.
    CHOOSE2  Of all answers it is one of least cost, the sum over devices of what each costs.
    CHOOSE3  It depends on nothing but what it is handed, the order included.

Groups and init containers are sets of wishes each; see `placing`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Wish(NamedTuple):
    amount: int
    costs: Mapping[int, int]  # by compute resource that may serve it, what a device of it costs


Chosen = Sequence[Mapping[int, int]]
"""For each wish, how many devices of each compute resource."""


def is_met(wishes: Sequence[Wish], free: Sequence[int]) -> bool:
    """Whether all can be met at once."""
    if len(wishes) == 1:
        return sum(free[at] for at in wishes[0].costs) >= wishes[0].amount
    return choose(wishes, free) is not None


def choose(wishes: Sequence[Wish], free: Sequence[int]) -> Chosen | None:
    flow: list[dict[int, int]] = [{} for _ in wishes]
    left = list(free)
    for at, wish in enumerate(wishes):
        wanted = wish.amount
        while wanted:
            pushed = _augment(wishes, flow, left, at, wanted)
            if not pushed:
                return None
            wanted -= pushed
    return [{one: count for one, count in sorted(own.items()) if count} for own in flow]


def _augment(
    wishes: Sequence[Wish], flow: list[dict[int, int]], left: list[int], start: int, wanted: int
) -> int:
    """Give the wish `start` up to `wanted` more devices, by the cheapest way; how many it got.

    A way is: this wish takes from a resource; if that has nothing free, some wish that has devices of it
    takes from another one instead, and so on. Costs of what is given up are subtracted, so they may be
    negative and the cheapest way is found by relaxing until nothing changes (Bellman and Ford); there are
    few nodes.
    """
    cost: dict[int, int] = {}  # of a way to each resource
    came: dict[int, tuple[int, int | None]] = {}  # the wish that takes from it, and what that wish gives up
    for one, price in wishes[start].costs.items():
        cost[one], came[one] = price, (start, None)
    changed = True
    while changed:
        changed = False
        for at, wish in enumerate(wishes):
            for given_up, count in flow[at].items():
                if not count or given_up not in cost:
                    continue
                base = cost[given_up] - wish.costs[given_up]
                for one, price in wish.costs.items():
                    if one != given_up and base + price < cost.get(one, base + price + 1):
                        cost[one], came[one] = base + price, (at, given_up)
                        changed = True
    ends = [one for one in cost if left[one] > 0]
    if not ends:
        return 0
    end = min(ends, key=lambda one: (cost[one], one))
    way: list[tuple[int, int, int | None]] = []  # wish, takes, gives up
    step: int | None = end
    while step is not None:
        taker, given = came[step]
        way.append((taker, step, given))
        step = given
    most = min([wanted, left[end], *(flow[one][given] for one, _, given in way if given is not None)])
    for one, taken, given in way:
        flow[one][taken] = flow[one].get(taken, 0) + most
        if given is not None:
            flow[one][given] -= most
    left[end] -= most
    return most
