"""What a scheduler saw and decided, kept in a file, and decided again later.

lines      what stands in a record
keeping    the lines of what a scheduler hears and decides, without secrets
following  the same of a cluster whose scheduler is another's, seen from outside
folding    the oldest part of a record, as the state that it came to
file       the file, which stays within its bounds whatever happens
reading    a record, line by line
world      what the scheduler knew, built again from its record
replaying  deciding again
comparing  where that differs, and why
"""

from . import telling
from .comparing import Difference
from .file import Bounds, RecordFile, Writing
from .following import follow
from .keeping import Keeper
from .reading import BadRecord, read
from .replaying import CannotReplay, Choice, Replayed, replayed

__all__ = [
    "BadRecord",
    "Bounds",
    "CannotReplay",
    "Choice",
    "Difference",
    "Keeper",
    "RecordFile",
    "Replayed",
    "Writing",
    "follow",
    "read",
    "replayed",
    "telling",
]
