"""From `--store` to an engine."""

import subprocess
import sys
from pathlib import Path

import pytest

from allot.store import MemoryStore, open_store
from allot.store.sqlite import SqliteStore

from .places import run


def test_memory_and_sqlite_are_named_by_a_word(tmp_path: Path):
    async def story() -> None:
        assert isinstance(open_store("memory"), MemoryStore)
        for url in ("sqlite", f"sqlite:{tmp_path}/deep/er/x.db"):
            store = open_store(url, tmp_path / "data")
            assert isinstance(store, SqliteStore)
            await store.close()

    run(story())
    assert (tmp_path / "data" / "allot.db").exists() and (tmp_path / "deep" / "er" / "x.db").exists()


@pytest.mark.parametrize(
    "url", ["", "redis://x", "memory:x", "etcd://", "etcd://host", "etcd://a:1,b", "etcd:x"]
)
def test_what_names_no_store_is_refused_with_what_would(url: str):
    with pytest.raises(ValueError, match=r"--store .* expected"):
        open_store(url)


def test_an_embedded_store_does_not_load_grpc():
    """It costs a tenth of a second and thirty megabytes."""
    program = "import sys, allot.store.sqlite; assert not any(m.startswith('grpc') for m in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
