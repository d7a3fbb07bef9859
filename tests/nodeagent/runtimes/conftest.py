"""A containerd for the stories of a file, begun when the first of them needs it."""

from collections.abc import Iterator

import pytest

from containerd import CONTAINERD_2, Containerd, containerd

from . import places


@pytest.fixture(scope="module")
def daemon() -> Iterator[Containerd]:
    with containerd() as running:
        yield running


@pytest.fixture(scope="module")
def daemon_2() -> Iterator[Containerd]:
    with containerd(folder=CONTAINERD_2) as running:
        yield running


_FIXTURES = {places.CONTAINERD: "daemon", places.CONTAINERD_2: "daemon_2"}


@pytest.fixture(autouse=True)
def _daemon_of_the_place(request: pytest.FixtureRequest) -> None:
    if "where" in request.fixturenames and request.getfixturevalue("where") in _FIXTURES:
        places.DAEMON[:] = [request.getfixturevalue(_FIXTURES[request.getfixturevalue("where")])]
