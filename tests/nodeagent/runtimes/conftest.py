"""A containerd for the stories of a file, begun when the first of them needs it."""

from collections.abc import Iterator

import pytest

from containerd import Containerd, containerd

from . import places


@pytest.fixture(scope="module")
def daemon() -> Iterator[Containerd]:
    with containerd() as running:
        yield running


@pytest.fixture(autouse=True)
def _daemon_of_the_place(request: pytest.FixtureRequest) -> None:
    if "where" in request.fixturenames and request.getfixturevalue("where") == places.CONTAINERD:
        places.DAEMON[:] = [request.getfixturevalue("daemon")]
