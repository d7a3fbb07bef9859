"""Where the audit log lies, what is in it and how large it grows."""

from dataclasses import dataclass
from pathlib import Path

from .policy import Level


@dataclass(frozen=True, slots=True)
class AuditSettings:
    path: Path
    level: Level = Level.CHANGES
    file_bytes_max: int = 100 * 1024 * 1024  # then the next file begins
    backups: int = 10  # full files that are kept beside it: PATH.1 is the latest
