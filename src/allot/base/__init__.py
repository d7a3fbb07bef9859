"""Ground floor: no word of the domain appears here."""

from . import logs
from .clock import Clock, SystemClock
from .documents import NoDocuments, documents
from .durations import duration_s
from .exposing import CannotListen, Page, exposed
from .filelock import FileLock, HeldByAnother
from .files import FileKind, Files, Lock, MachineFiles, write_file
from .ids import Ids, RandomIds
from .invariants import InvariantBroken, require
from .journal import Journal
from .loopwatch import LoopWatch
from .memory import return_large_blocks, return_small_blocks
from .metrics import Counter, Gauge, Histogram, Metrics
from .osreason import os_reason
from .outage import Outage
from .overlay import Overlay
from .recent import Recent
from .unixaddress import unix_address

__all__ = [
    "CannotListen",
    "Clock",
    "Counter",
    "FileKind",
    "FileLock",
    "Files",
    "Gauge",
    "HeldByAnother",
    "Histogram",
    "Ids",
    "InvariantBroken",
    "Journal",
    "Lock",
    "LoopWatch",
    "MachineFiles",
    "Metrics",
    "NoDocuments",
    "Outage",
    "Overlay",
    "Page",
    "RandomIds",
    "Recent",
    "SystemClock",
    "documents",
    "duration_s",
    "exposed",
    "logs",
    "os_reason",
    "require",
    "return_large_blocks",
    "return_small_blocks",
    "unix_address",
    "write_file",
]
