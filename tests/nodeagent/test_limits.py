"""What a container may use of the machine, as control groups count it."""

import pytest

from allot.nodeagent.limits import limits_of
from allot.nodeagent.runtimes import Limits
from allot.nodeagent.views import Resources


@pytest.mark.parametrize(
    ("requests", "allowed", "expected"),
    [
        ({}, {}, Limits(2, None, None)),
        ({"cpu": "500m"}, {}, Limits(512, None, None)),
        ({"cpu": "1"}, {"cpu": "2", "memory": "64Mi"}, Limits(1024, 200_000, 64 * 2**20)),
        ({}, {"cpu": "250m"}, Limits(256, 25_000, None)),
        ({}, {"cpu": "1m"}, Limits(2, 1_000, None)),
        ({"cpu": "0"}, {"cpu": "1"}, Limits(2, 100_000, None)),
        ({"cpu": "1000"}, {}, Limits(262_144, None, None)),
        ({}, {"cpu": "0", "memory": "0"}, Limits(2, None, None)),
    ],
)
def test_shares_follow_from_the_request_and_bounds_from_the_limits(requests, allowed, expected):
    assert limits_of(Resources(requests=requests, limits=allowed)) == expected
