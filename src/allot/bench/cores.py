"""Which cores the processes of a measurement run on.

A server and those who use it have cores of their own. Where they share them, the system moves
threads about, and whatever is moved leaves its caches behind: a tenth of the pods a second, on two
cores. Anybody can have the same with `taskset` or with `CPUAffinity=` of a systemd unit.
"""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Shares(NamedTuple):
    server: frozenset[int]
    others: frozenset[int]


def shares(cores: Collection[int]) -> Shares:
    """Half of them each, and the odd one for the server. One core alone is shared."""
    ordered = sorted(cores)
    half = len(ordered) // 2
    if not half:
        return Shares(frozenset(ordered), frozenset(ordered))
    return Shares(frozenset(ordered[:-half]), frozenset(ordered[-half:]))


def ours() -> frozenset[int]:
    """The cores that this thread may run on; none where the system does not say."""
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()


@contextmanager
def kept_to(cores: Collection[int]) -> Iterator[None]:
    """Meanwhile this thread, and whatever it starts, runs on these cores only."""
    before = ours()
    if not before:
        yield
        return
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
