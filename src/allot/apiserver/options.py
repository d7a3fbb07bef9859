"""What a server may be told before it starts. Cheap to import: who only starts one needs nothing else."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from allot.api import Gates
from allot.base import Clock, Ids, RandomIds, SystemClock

if TYPE_CHECKING:
    from .audit import AuditSettings
    from .security import Authority
    from .subresources.reaching import Forward


@dataclass(frozen=True, slots=True)
class Options:
    gates: Gates = field(default_factory=Gates)
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=RandomIds)
    anonymous_health: bool = False  # let strangers see /healthz, /livez and /readyz
    housekeeping_s: float = 1.0  # how often slow watchers, lost rights and old history are looked for
    bookmark_s: float = 60.0  # after so long a watch on which nothing happens says how far it has come
    watch_loop: bool = True  # measure how long the event loop is held
    threads: bool = True  # work on large requests aside
    transactions: bool = True  # take several requests as one, which no other Kubernetes does
    claims_with_pods: bool = False  # make the claims of a new pod with it, which else their controller does


@dataclass(frozen=True, slots=True)
class Encryption:
    """Of secrets in the store."""

    key_file: Path
    rewrite: bool = False  # at the start, whatever is not encrypted with the first key


@dataclass(frozen=True, slots=True)
class ServingOptions:
    data_dir: Path
    store: str = "sqlite"
    host: str = "127.0.0.1"
    port: int = 0
    names: tuple[str, ...] = ()  # further names or addresses that clients reach us by
    server: Options = field(default_factory=Options)
    way_to_nodes: "Callable[[Authority, Clock], Forward] | None" = None
    socket: bool = True
    audit: "AuditSettings | None" = None
    encryption: Encryption | None = None
