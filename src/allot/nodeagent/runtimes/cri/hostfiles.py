"""Files of the machine that a runtime needs: logs, and what is mounted.

The runtime writes `NUMBER.log` in the form of the CRI. One that has grown long is renamed, `NUMBER.log.1` and
so on, and the runtime is asked to open the path anew; the oldest go.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path

BYTES_MAX, FILES_MAX = 10 * 1024 * 1024, 5


def missing(paths: Iterable[str]) -> list[str]:
    """Of what is to be mounted. A runtime makes a directory of what is not there, and says nothing."""
    return [path for path in paths if not Path(path).exists()]


def make_way(directory: str, log: str = "") -> None:
    """For a log below the directory of its pod, or for that directory alone."""
    (Path(directory) / (log or "any")).parent.mkdir(parents=True, exist_ok=True, mode=0o755)


def turned_over(log: str, bytes_max: int, files_max: int) -> bool:
    """True: the path is free, and the runtime is to open it anew. Raises OSError."""
    path = Path(log)
    try:
        if path.stat().st_size < bytes_max:
            return False
    except FileNotFoundError:
        return True  # renamed by somebody who came no further
    numbers = sorted(_numbers(path))
    path.rename(f"{log}.{max(numbers, default=0) + 1}")
    for number in numbers[: max(0, len(numbers) + 2 - files_max)]:
        Path(f"{log}.{number}").unlink(missing_ok=True)
    return True


def remove(log: str) -> None:
    path = Path(log)
    for number in _numbers(path):
        Path(f"{log}.{number}").unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def remove_all(directories: Iterable[str]) -> None:
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


def _numbers(path: Path) -> list[int]:
    found = (one.suffix[1:] for one in path.parent.glob(f"{path.name}.*"))
    return [int(one) for one in found if one.isdecimal()]
