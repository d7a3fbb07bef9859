"""Who runs where while something is measured."""

import os
import threading

import pytest

from allot.bench.cores import Shares, kept_to, ours, shares


@pytest.mark.parametrize(
    ("cores", "expected"),
    [
        ({0, 1}, Shares(frozenset({0}), frozenset({1}))),
        ({2, 3, 7}, Shares(frozenset({2, 3}), frozenset({7}))),
        ({5}, Shares(frozenset({5}), frozenset({5}))),
        (set(), Shares(frozenset(), frozenset())),
    ],
)
def test_a_server_and_those_who_use_it_have_cores_of_their_own(cores, expected):
    assert shares(cores) == expected


def test_what_is_started_meanwhile_stays_there():
    before, first = ours(), min(ours())
    with kept_to({first}):
        seen = []
        thread = threading.Thread(target=lambda: seen.append(os.sched_getaffinity(0)))
        thread.start()
        thread.join()
        assert ours() == {first} and seen == [{first}]
    assert ours() == before
