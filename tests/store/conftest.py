"""The engines, each in a place of its own, for tests that all of them must pass."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from components import Etcd, etcd

from .places import EtcdPlace, MemoryPlace, Place, SealedPlace, SqlitePlace


@pytest.fixture(scope="session")
def one_etcd() -> Iterator[Etcd]:
    with etcd() as cluster:
        yield cluster


@pytest.fixture(params=["memory", "sqlite", "etcd", "sealed"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    match request.param:
        case "memory":
            return MemoryPlace()
        case "sqlite":
            return SqlitePlace(tmp_path)
        case "sealed":
            return SealedPlace(tmp_path)
        case _:
            return EtcdPlace(request.getfixturevalue("one_etcd"))
