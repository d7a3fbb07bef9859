"""The real kubectl inside containers of a real containerd, beside a device plugin that is a real process."""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from components import binary
from containerd import IMAGE, Containerd, containerd
from e2e.process import Kubectl
from e2e.test_containerd import Up

PLUGIN = Path(__file__).parents[2] / "examples" / "device_plugin.py"
RESOURCE = "mine.example/licence"
SERVE = "mkdir /srv; echo pod says hello > /srv/said; httpd -f -h /srv -p 127.0.0.1:{port}"


class Cluster:
    def __init__(self, folder: Path, daemon: Containerd) -> None:
        self.up = Up(folder, daemon)
        self.kubectl = Kubectl(binary("kubectl"), self.up.data_dir / "kubeconfig")
        self.root = self.up.data_dir / "agents" / "0"
        self._log = folder / "plugin.log"

    @contextmanager
    def plugin(self) -> "Iterator[subprocess.Popen[str]]":
        command = [sys.executable, str(PLUGIN), "--node", "agent-0", "--root", str(self.root)]
        with self._log.open("a") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n", (
                self._log.read_text()
            )
            yield process
        finally:
            process.kill()
            process.wait(30)
            assert process.stdout is not None
            process.stdout.close()

    def run(self, name: str, script: str, **more: object) -> None:
        container = {"name": "main", "image": IMAGE, "command": ["sh", "-c", script], **more}
        spec = {"terminationGracePeriodSeconds": 1, "containers": [container], "restartPolicy": "Never"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(pod))

    def ready(self, name: str) -> None:
        self.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=50s")

    def allocatable(self) -> str:
        where = f"jsonpath={{.status.allocatable.{RESOURCE.replace('.', chr(92) + '.')}}}"
        return self.kubectl("get", "node", "agent-0", "-o", where)


@pytest.fixture(scope="module")
def here() -> Iterator[Cluster]:
    with containerd() as daemon, tempfile.TemporaryDirectory(prefix="cs") as short:
        cluster = Cluster(Path(short), daemon)
        try:
            yield cluster
        finally:
            assert cluster.up.end(signal.SIGTERM) == 0
            until(lambda: daemon.left() == [], daemon.left)


def until(question: Callable[[], bool], what: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not question():
        assert time.monotonic() < end, what()
        time.sleep(0.1)


def typed(command: list[str], environment: dict[str, str], *lines: tuple[bytes, bytes]) -> tuple[int, bytes]:
    """Somebody at a terminal types each line once what is to be there before it is; the code, and what was
    seen."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    said, left = b"", list(lines)
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if left and left[0][0] in said:
                os.write(ours, left.pop(0)[1])
            try:
                said += os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
        return process.wait(60), said
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_commands_files_terminals_ports_and_a_look_inside(here: Cluster, tmp_path: Path):
    kubectl = here.kubectl
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    here.run("web", f"echo begun; {SERVE.format(port=port)}", env=[{"name": "ME", "value": "web"}])
    here.ready("web")
    assert kubectl("exec", "web", "--", "sh", "-c", "echo $ME; echo oops >&2") == "web\noops\n"
    assert kubectl("exec", "-i", "web", "--", "wc", "-c", stdin="x" * 1_000_000).strip() == "1000000"
    code, said = typed(
        [str(kubectl.program), "exec", "-it", "web", "--", "sh"],
        kubectl.environment,
        (b"# ", b"tty; exit 7\n"),
    )
    assert code == 7 and b"/dev/pts/" in said

    source, back = tmp_path / "source", tmp_path / "back"
    source.write_bytes(os.urandom(500_000))
    kubectl("cp", str(source), "web:/tmp/there")
    kubectl("cp", "web:/tmp/there", str(back))
    assert back.read_bytes() == source.read_bytes()

    forward = kubectl.start("port-forward", "web", f":{port}", "--address", "127.0.0.1")
    try:
        assert forward.stdout is not None
        found = re.match(r"Forwarding from 127\.0\.0\.1:(\d+)", forward.stdout.readline())
        assert found is not None
        with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}/said", timeout=60) as answer:
            assert answer.read() == b"pod says hello\n"
    finally:
        forward.kill()
        forward.communicate()

    look = ("--container=look", "--attach=false", "--", "sh", "-c", "echo looking; exec sleep 1000")
    kubectl("debug", "web", f"--image={IMAGE}", *look)
    where = "jsonpath={.status.ephemeralContainerStatuses[?(@.name=='look')].state.running.startedAt}"
    until(lambda: bool(kubectl("get", "pod", "web", "-o", where).strip()), lambda: "no look")
    until(lambda: kubectl("logs", "web", "-c", "look") == "looking\n", lambda: kubectl("logs", "web"))
    assert kubectl("exec", "web", "-c", "look", "--", "echo", "inside") == "inside\n"
    lines = kubectl("top", "pod", "web", "--containers").splitlines()
    assert any(re.match(r"web\s+main\s+\d+m\s+\d+Mi", line) for line in lines), lines
    kubectl("delete", "pod", "web", "--timeout=50s")


def test_output_is_followed_to_its_end_and_somebody_attaches(here: Cluster):
    kubectl = here.kubectl
    here.run("ears", "while read w; do echo heard $w; [ $w = end ] && exit 0; done", stdin=True)
    here.ready("ears")
    follow = kubectl.start("logs", "-f", "ears")
    attach = subprocess.Popen(
        [kubectl.program, "attach", "-i", "ears"],
        env=kubectl.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert attach.stdin is not None and attach.stdout is not None
        for word in ("one", "two", "end"):
            attach.stdin.write(f"{word}\n")
            attach.stdin.flush()
            assert attach.stdout.readline() == f"heard {word}\n"
        assert follow.communicate(timeout=60)[0] == "heard one\nheard two\nheard end\n"
        assert follow.returncode == 0
    finally:
        for process in (attach, follow):
            process.kill()
            process.communicate()
    kubectl("delete", "pod", "ears", "--timeout=50s")


def test_a_device_plugin_that_is_killed_and_comes_back_costs_no_pod_its_devices(here: Cluster):
    kubectl = here.kubectl
    two = {"limits": {RESOURCE: "2"}}

    def devices(pod: str) -> list[str]:
        return kubectl("exec", pod, "--", "sh", "-c", "echo $MY_LICENCES").strip().split(",")

    with here.plugin() as plugin:
        until(lambda: here.allocatable() == "4", here.allocatable)
        here.run("first", "exec sleep 1000", resources=two)
        here.ready("first")
        plugin.kill()
        until(lambda: here.allocatable() == "0", here.allocatable)
        assert len(devices("first")) == 2, "kill -9 of its plugin is nothing to the pod"
        here.run("second", "exec sleep 1000", resources=two)
    with here.plugin():
        until(lambda: here.allocatable() == "4", here.allocatable)
        here.ready("second")
        had = {*devices("first"), *devices("second")}
        assert had == {f"licence-{at}" for at in range(4)}, "LOAN1: nobody has another's"
        kubectl("delete", "pod", "first", "second", "--timeout=50s")
