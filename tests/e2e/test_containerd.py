"""`allot up --runtime cri://…`: kubectl run, logs, exec with a pipe, kill -9; and nothing is left."""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from components import binary
from containerd import IMAGE, Containerd, containerd
from e2e.process import Kubectl, allot


class Up:
    def __init__(self, folder: Path, daemon: Containerd) -> None:
        self.data_dir = folder / "data"
        self._log = folder / "log"
        self._command = [sys.executable, "-m", "allot.cli", "up", "--data-dir", str(self.data_dir)]
        self._command += ["--port", "0", "--nodes", "0", "--agents", "1", "--cdi-dir", str(daemon.cdi)]
        self._command += ["--runtime", f"cri://{daemon.socket}"]
        self.start()

    def start(self) -> None:
        with self._log.open("a") as log:
            self.process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n", self._log.read_text()

    def end(self, how: int) -> int:
        self.process.send_signal(how)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.wait(60)


def until(question: Callable[[], bool], what: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not question():
        assert time.monotonic() < end, what()
        time.sleep(0.1)


def test_pods_of_a_whole_cluster_are_containers_and_end_with_it():
    with containerd() as daemon, tempfile.TemporaryDirectory(prefix="cu") as short:
        up = Up(Path(short), daemon)
        try:
            kubectl = Kubectl(binary("kubectl"), up.data_dir / "kubeconfig")
            run = ("run", "box", f"--image={IMAGE}", "--restart=Never", "--command", "--")
            kubectl(*run, "sh", "-c", "echo hi; sleep 600")
            kubectl("wait", "--for=condition=Ready", "pod/box", "--timeout=50s")

            def container() -> str:
                status = json.loads(kubectl("get", "pod", "box", "-o", "json"))["status"]
                return str(status["containerStatuses"][0]["containerID"])

            before = container()
            assert before.startswith("containerd://")
            assert kubectl("logs", "box") == "hi\n"
            assert kubectl("exec", "-i", "box", "--", "cat", stdin="typed\n") == "typed\n"
            assert "exit code 7" in kubectl("exec", "box", "--", "sh", "-c", "exit 7", fails=True)
            up.end(signal.SIGKILL)
            up.start()
            until(lambda: container() == before, container)
            assert kubectl("exec", "box", "--", "echo", "again") == "again\n"
            assert up.end(signal.SIGTERM) == 0
            until(lambda: daemon.left() == [], daemon.left)
            up.start()
            kubectl("delete", "pod", "box", "--timeout=50s")
        finally:
            up.end(signal.SIGTERM)


def test_a_containerd_that_is_not_there_or_not_fit_is_said_in_a_line():
    with containerd(has_cdi=False) as daemon, tempfile.TemporaryDirectory(prefix="cu") as short:
        more = ("--data-dir", short, "--port", "0", "--nodes", "0", "--agents", "1")
        done = allot("up", *more, "--runtime", f"cri://{daemon.socket}", "--cdi-dir", str(daemon.cdi))
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith("allot up: the container runtime at ")
        assert "enable_cdi = true" in done.stderr and "Traceback" not in done.stderr
    for wrong in ("docker", "cri://relative.sock", "cri://"):
        done = allot("up", "--runtime", wrong)
        assert done.returncode == 2
        assert "is no runtime: write process, or cri:// and the path" in done.stderr
