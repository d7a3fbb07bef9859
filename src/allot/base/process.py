"""What the operating system says of this process, under the names that Prometheus' clients use."""

import os
import resource
import time
from pathlib import Path

from .metrics import Metrics

_STATM = Path("/proc/self/statm")
_FDS = Path("/proc/self/fd")


def show_process(metrics: Metrics) -> None:
    """Each is read when somebody looks. What this system does not tell is 0."""
    started_s = time.time()
    metrics.reading("process_start_time_seconds", "When the process began.", lambda: started_s)
    metrics.reading("process_cpu_seconds_total", "Processor time, of the system too.", _cpu_s)
    metrics.reading("process_resident_memory_bytes", "Memory that is in use.", _resident_bytes)
    metrics.reading("process_open_fds", "Files and sockets that are open.", _open_files)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _resident_bytes() -> float:
    try:
        pages = int(_STATM.read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def _open_files() -> float:
    try:
        return float(len(os.listdir(_FDS)))
    except OSError:
        return 0.0
