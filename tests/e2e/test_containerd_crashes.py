"""kill -9 of agent, containerd, driver and API server during the life of a pod of containerd's.

Real processes and real sockets, as in `test_node_crashes`. Afterwards nothing is left: no shim, container,
mount or network namespace. Which deed comes before which is tried there; here it is what a runtime is asked.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from containerd import IMAGE, Containerd, containerd, unmount
from e2e.test_node_crashes import Machine, _kill, live_and_die

CASES = [
    ("before", "Run", "containerd"),
    ("after", "Run", "containerd"),
    ("before", "Stop", "containerd"),
    ("before", "Remove", "containerd"),
    ("after", "Run", "agent"),
    ("after", "Remove", "agent"),
    ("after", "call", "driver"),
    ("before", "Stop", "server"),
]


class ContainerdMachine(Machine):
    image = IMAGE

    def __init__(self, folder: Path, daemon: Containerd) -> None:
        self.daemon, self.runtime = daemon, f"cri://{daemon.socket}"
        super().__init__(folder, daemon.cdi)

    def revive(self) -> None:
        process = self.daemon.process
        if process is None or process.poll() is not None:
            self.daemon.start()
        super().revive()
        assert self.daemon.process is not None
        (self.folder / "containerd.pid").write_text(str(self.daemon.process.pid))

    def is_clean(self) -> bool:
        return super().is_clean() and not self.daemon.left()


@pytest.fixture(scope="module")
def machine() -> Iterator[ContainerdMachine]:
    with containerd() as daemon:
        folder = Path(tempfile.mkdtemp(prefix="cc"))  # short: sockets lie below it
        here = ContainerdMachine(folder, daemon)
        try:
            here.start_driver()
            here.revive()
            yield here
        finally:
            here.end()
            shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(("when", "what", "victim"), CASES)
def test_somebody_is_killed_and_the_pod_lives_and_goes_all_the_same(machine, when, what, victim):
    """N1 to N8."""
    live_and_die(machine, when, what, victim)


def test_after_a_reboot_the_pod_runs_again_with_its_device(machine):
    """N5: agent, driver, containerd, shims and containers are gone at once, and so is what lay in memory: CDI
    files, mounts, the state of containerd."""
    here = machine
    here.marks.unlink(missing_ok=True)
    here.start_agent()
    here.apply()
    here.until(here.is_running, "it runs")
    here.until(here.has_left_its_mark, "its command has begun")
    for process in (here.agent, here.driver):
        _kill(process)
    here.daemon.lose_power()
    unmount(here.root)
    for path in here.cdi.iterdir():
        path.unlink()
    here.until(lambda: len(here.marks.read_text().splitlines()) == 2, "it was started again")
    assert len(set(here.marks.read_text().splitlines())) == 1, "with the same device"
    status = json.loads(here.kubectl("get", "pod", "p", "-o", "json"))["status"]["containerStatuses"][0]
    assert status["restartCount"] == 1
    here.until(lambda: bool(here.kubectl("delete", "pod", "p", "--wait=false")), "deleted")
    here.until(here.is_gone, "it is gone")
    here.until(here.is_clean, "nothing is left")
    _kill(here.agent)
    here.agent = None
