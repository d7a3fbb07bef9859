"""kill -9 of agent, driver and API server, before and after each deed of the stage table.

Real processes and real sockets. Afterwards the pod has run or is gone, and nothing of it is left: N1 to N8.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from allot.base import mounts
from allot.node.stages import TABLE
from allot.nodeagent.checkpoint import decode
from components import binary
from e2e.process import Controllers, Kubectl, Scheduler, ServerProcess, allot

NODE, SOON_S = "worker", 90.0
ELSEWHERE = {"Rest", "Wait", "Refuse", "Explain"}
"""Deeds that do nothing, or that a pod with room and claims does not meet."""
DEEDS = sorted({deed.__name__ for row in TABLE.values() for deed in row.deeds} - ELSEWHERE)
MOMENTS = [(when, what) for what in (*DEEDS, "keep", "call") for when in ("before", "after")]
CASES = [
    (*moment, victim)
    for victim in ("agent", "driver", "server")
    for moment in MOMENTS
    # For those who go on, after one deed is before the next; but an answer may be a driver's last word.
    if victim == "agent" or moment[0] == "before" or moment == ("after", "call")
]
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  restartPolicy: Always
  terminationGracePeriodSeconds: 1
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
  volumes:
  - {name: marks, hostPath: {path: MARKS, type: FileOrCreate}}
  - {name: fast, emptyDir: {medium: Memory}}
  containers:
  - name: main
    image: IMAGE
    command: [sh, -c, "env | grep ^DEVICE_ >> MARKS; touch /fast/x; exec sleep 300"]
    resources: {claims: [{name: gpu}]}
    volumeMounts: [{name: marks, mountPath: MARKS}, {name: fast, mountPath: /fast}]
"""


class Machine:
    """A node with its agent and its driver, each a process, and the cluster around it."""

    image, runtime = "none", "process"
    pod, device = POD, f"=gpu.example.com/{NODE}/"
    driver_words = ("sim", "--fleet", "edge")

    def __init__(self, folder: Path, cdi: Path | None = None) -> None:
        self.folder, self.root, self.cdi = folder, folder / "root", cdi or folder / "cdi"
        self.marks, self.done = folder / "marks", folder / "done"
        self.server = ServerProcess(folder / "data")
        self.kubectl = Kubectl(binary("kubectl"), self.server.kubeconfig)
        self._parts = [
            kind(self.server, kind.command, None, "--no-leader-elect") for kind in (Controllers, Scheduler)
        ]
        for part in self._parts:
            part.await_ready()
        access = folder / "access"
        made = ("credentials", f"system:node:{NODE}", "--data-dir", str(self.server.data_dir))
        assert allot(*made, "--out", str(access)).returncode == 0
        places = ["--kubeconfig", str(access), "--root", str(self.root), "--cdi-dir", str(self.cdi)]
        self._node = ["node", "--name", NODE, "--runtime", self.runtime, *places]
        self._driver = ["driver", *self.driver_words, "--node", NODE, *places]
        self.kubectl("apply", "-f", "-", stdin=self.offers())
        self.log = (folder / "log").open("a")
        self.agent: subprocess.Popen[str] | None = None
        self.driver: subprocess.Popen[str] | None = None

    def offers(self) -> str:
        """Classes and templates for what the driver has."""
        return allot("driver", *self.driver_words, "--offers").stdout

    def start_agent(self, *crash: str) -> None:
        module = ["e2e.crashing_node", *crash] if crash else ["allot.cli"]
        self.agent = self._start([sys.executable, "-m", *module, *self._node])
        _await_ready(self.agent)

    def start_driver(self) -> None:
        self.driver = self._start([sys.executable, "-m", "allot.cli", *self._driver])
        (self.folder / "driver.pid").write_text(str(self.driver.pid))
        _await_ready(self.driver)

    def _start(self, command: list[str]) -> "subprocess.Popen[str]":
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=environment,
            stdin=subprocess.DEVNULL,
        )

    def revive(self) -> None:
        """Whoever was killed is started again."""
        assert self.server.process is not None
        if self.server.process.poll() is not None:
            self.server._reap()
            self.server.start()
        if self.driver is not None and self.driver.poll() is not None:
            self.start_driver()
        if self.agent is not None and self.agent.poll() is not None:
            self.start_agent()

    def until(self, question: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + SOON_S
        while True:
            self.revive()
            try:
                if question():
                    return
            except (AssertionError, subprocess.CalledProcessError):  # the server is away, for one
                pass
            assert time.monotonic() < end, (what, (self.folder / "log").read_text()[-3000:])
            time.sleep(0.1)

    def apply(self) -> None:
        text = self.pod.replace("MARKS", str(self.marks)).replace("IMAGE", self.image)
        self.until(lambda: bool(self.kubectl("apply", "-f", "-", stdin=text)), "applied")

    def is_running(self) -> bool:
        ready = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
        return self.kubectl("get", "pod", "p", "-o", ready) == "True"

    def has_left_its_mark(self) -> bool:
        """A container that runs may not have come to it yet."""
        return self.marks.exists() and bool(self.marks.read_text())

    def is_gone(self) -> bool:
        return not self.kubectl("get", "pods", "--ignore-not-found", "-o", "name")

    def is_clean(self) -> bool:
        """N2, N3, N6, N8: of the pod nothing is left, with the agent, the driver or the server."""
        checkpoint = self.root / "dra_manager_state"
        return (
            not decode(checkpoint.read_bytes())
            and not list((self.root / "pods").iterdir())
            and not list((self.root / "containers").glob("*/*/*"))
            and not mounts.mounts_at(self.root)
            and not [path for path in self.cdi.iterdir() if path.suffix == ".json"]
            and not self.kubectl("get", "preparedclaims", "-o", "jsonpath={.items[*].status.claims[*].name}")
            and not self.kubectl("get", "resourceclaims", "-o", "name")
        )

    def end(self) -> None:
        for process in (self.agent, self.driver):
            if process is not None:
                _kill(process)
        for part in self._parts:
            part.end(signal.SIGKILL)
        self.server.kill()
        self.log.close()
        for pid in _below(self.root):
            os.kill(pid, signal.SIGKILL)


def _await_ready(process: "subprocess.Popen[str]") -> None:
    """One that was killed before it was ready is started again by whoever looks next."""
    assert process.stdout is not None
    assert process.stdout.readline() in ("ready\n", "")


def _kill(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.wait(20)
    assert process.stdout is not None
    process.stdout.close()


def _below(folder: Path) -> list[int]:
    """Processes that were started with something below a folder: the shepherd."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (directory / "cmdline").read_bytes():
                found.append(int(directory.name))
        except OSError:
            continue
    return found


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    folder = Path(tempfile.mkdtemp(prefix="nc"))  # short: sockets lie below it
    here = Machine(folder)
    try:
        here.start_driver()
        yield here
    finally:
        here.end()
        shutil.rmtree(folder, ignore_errors=True)


def live_and_die(here: Machine, when: str, what: str, victim: str) -> None:
    """A pod's whole life, in which somebody is killed once."""
    for path in (here.marks, here.done):
        path.unlink(missing_ok=True)
    assert here.server.process is not None
    (here.folder / "server.pid").write_text(str(here.server.process.pid))
    killed = "self" if victim == "agent" else str(here.folder / f"{victim}.pid")
    here.start_agent(when, what, killed, str(here.done))
    try:
        here.apply()
        here.until(here.is_running, "it runs")
        here.until(here.has_left_its_mark, "its command has begun")
        here.until(lambda: bool(here.kubectl("delete", "pod", "p", "--wait=false")), "deleted")
        here.until(here.is_gone, "it is gone")
        assert here.done.exists(), f"nobody came to {when} {what}"
        here.until(here.is_clean, "nothing is left")
        lines = here.marks.read_text().splitlines()
        assert len(lines) == 1, "N3: it was started once"
        assert here.device in lines[0], "N1, N4: with its device"
    finally:
        if here.agent is not None:
            _kill(here.agent)
            here.agent = None


@pytest.mark.parametrize(("when", "what", "victim"), CASES)
def test_somebody_is_killed_at_each_deed_and_the_pod_lives_and_goes_all_the_same(machine, when, what, victim):
    live_and_die(machine, when, what, victim)


def test_after_a_reboot_the_pod_runs_again_with_its_device(machine):
    """N5: processes are gone, and so are the CDI files, which lay in memory."""
    here = machine
    for path in (here.marks, here.done):
        path.unlink(missing_ok=True)
    here.start_agent()
    here.apply()
    here.until(here.is_running, "it runs")
    assert here.agent is not None and here.driver is not None
    for process in (here.agent, here.driver):
        _kill(process)
    sleeping = [
        json.loads(path.read_text())["pid"] for path in here.root.glob("containers/*/*/*/started.json")
    ]
    for pid in (*_below(here.root / "containers"), *sleeping):
        os.kill(pid, signal.SIGKILL)
    for path in here.cdi.iterdir():
        path.unlink()
    here.until(lambda: len(here.marks.read_text().splitlines()) == 2, "it was started again")
    assert len(set(here.marks.read_text().splitlines())) == 1, "with the same device"
    here.until(lambda: bool(here.kubectl("delete", "pod", "p", "--wait=false")), "deleted")
    here.until(here.is_gone, "it is gone")
    here.until(here.is_clean, "nothing is left")
    _kill(here.agent)
    here.agent = None
