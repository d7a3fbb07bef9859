"""Generated tests are judged by what they find, and not by how busy the machine is. What a test does to the
logging of its process ends with it."""

import logging
from collections.abc import Iterator

import grpc.aio
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "allot", parent=settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("allot")

grpc.aio.init_grpc_aio()
"""For as long as the process lives: otherwise the garbage collector, when it finds the last server or channel
that a test has left in an event loop which is closed, waits for gRPC's thread, and that one for the loop."""


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("allot")
    levels = {one: one.level for one in (root, ours, *root.handlers)}
    propagates = ours.propagate
    yield
    for one, level in levels.items():
        one.setLevel(level)
    ours.propagate = propagates
