"""What the processes of a measurement use: processor time and memory, as the system counts them."""

import os
import resource
import time
from dataclasses import dataclass, replace
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Used:
    cpu_s: float
    loop_s: float  # of that, by the thread of the event loop; 0 where it is not known
    peak_rss_mb: float  # since the process began

    def since(self, earlier: "Used") -> "Used":
        return replace(self, cpu_s=self.cpu_s - earlier.cpu_s, loop_s=self.loop_s - earlier.loop_s)

    def figures(self) -> dict[str, float]:
        return {
            "cpu_seconds": round(self.cpu_s, 3),
            "loop_seconds": round(self.loop_s, 3),
            "peak_rss_mb": round(self.peak_rss_mb, 1),
        }


def used_by(server: int | None) -> dict[str, Used]:
    """This process, and the server's where that is another one. Call it on the event loop's thread."""
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    used = {"bench": Used(time.process_time(), time.thread_time(), peak_mb)}
    if server is not None:
        used["apiserver"] = _of(server)
    return used


def _of(pid: int) -> Used:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    cpu_s = (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
    status = Path(f"/proc/{pid}/status").read_text()
    peak_kb = next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")), "0")
    return Used(cpu_s, 0.0, int(peak_kb) / 1024)
