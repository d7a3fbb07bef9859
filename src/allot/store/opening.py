"""From `--store` to an engine.

    memory
    sqlite                        in the data directory
    sqlite:PATH
    etcd://HOST:PORT[,HOST:PORT]  see etcd.address for credentials and more

Engines are imported when asked for: nobody who embeds a store waits for gRPC.
"""

from pathlib import Path

from .contract import Store
from .memory import MemoryStore

FILE_NAME = "allot.db"


def open_store(url: str, data_dir: Path | None = None) -> Store:
    """Open what `url` names; `ValueError` if it names nothing, `Unavailable` if it cannot be had."""
    scheme, _, rest = url.partition(":")
    if scheme == "memory" and not rest:
        return MemoryStore()
    if scheme == "sqlite":
        from .sqlite import SqliteStore

        path = Path(rest) if rest else (data_dir or Path()) / FILE_NAME
        path.parent.mkdir(parents=True, exist_ok=True)
        return SqliteStore(path)
    if scheme == "etcd":
        from .etcd import Address, EtcdStore

        return EtcdStore(Address.parse(url))
    raise ValueError(f"--store {url!r}: expected memory, sqlite[:PATH] or etcd://HOST:PORT[,HOST:PORT]")
