"""What has been said, in order: revisions, compare-and-swap, watch, compaction.

It knows keys and bytes and no word of the domain. Read `contract` first: it says
what a store is. Then the engines behind it:

    keyspace     the map, its revision and its recent history, without a disk or a loop
      order        keys in order
      history      what happened lately, and how it was before
    watch        who listens to it, and how a slow listener costs nobody anything
    memory       a key space and its watches, nothing more
    sqlite       the same with a log on disk: the embedded default
    etcd         no key space of our own: an etcd cluster keeps it
    sealed       a store in front of a store: values below some prefixes are encrypted behind it
    opening      from `--store` to an engine
"""

from .contract import (
    Change,
    Committed,
    Compacted,
    Compare,
    Delete,
    Entry,
    Event,
    InUse,
    OutcomeUnknown,
    Page,
    Put,
    Refused,
    Revise,
    Store,
    StoreError,
    TooLarge,
    Unavailable,
    Watch,
    Write,
)
from .memory import MemoryStore
from .opening import open_store
from .sealed import BadKeys, sealed_store

__all__ = [
    "BadKeys",
    "Change",
    "Committed",
    "Compacted",
    "Compare",
    "Delete",
    "Entry",
    "Event",
    "InUse",
    "MemoryStore",
    "OutcomeUnknown",
    "Page",
    "Put",
    "Refused",
    "Revise",
    "Store",
    "StoreError",
    "TooLarge",
    "Unavailable",
    "Watch",
    "Write",
    "open_store",
    "sealed_store",
]
