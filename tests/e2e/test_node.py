"""`allot node` as a process: real kubectl, real driver sockets, kill -9 and again."""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from components import binary
from e2e.process import Controllers, Kubectl, Scheduler, ServerProcess, allot

NODE = "worker"


class Node:
    """`allot node`, with the credential of its node."""

    def __init__(self, server: ServerProcess, folder: Path) -> None:
        self.root = folder / "root"
        access = folder / "node.kubeconfig"
        made = allot(
            "credentials", f"system:node:{NODE}", "--data-dir", str(server.data_dir), "--out", str(access)
        )
        assert made.returncode == 0, made.stderr
        self._log = (folder / "node.log").open("a")
        self._command = [
            sys.executable,
            "-m",
            "allot.cli",
            "node",
            "--name",
            NODE,
            "--kubeconfig",
            str(access),
        ]
        self._command += ["--root", str(self.root), "--cdi-dir", str(folder / "cdi")]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=self._log, stdin=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n", Path(self._log.name).read_text()

    def end(self, how: int) -> int:
        self.process.send_signal(how)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.wait(20)


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[ServerProcess, Node, Kubectl]]:
    with tempfile.TemporaryDirectory(prefix="nd") as short:  # sockets lie below it
        folder = Path(short)
        server = ServerProcess(folder / "data")
        parts = [kind(server, kind.command, None, "--no-leader-elect") for kind in (Controllers, Scheduler)]
        node = None
        try:
            for part in parts:
                part.await_ready()
            node = Node(server, folder)
            yield server, node, Kubectl(binary("kubectl"), server.kubeconfig)
        finally:
            if node is not None:
                node.end(signal.SIGKILL)
            for part in parts:
                part.end(signal.SIGKILL)
            server.kill()
            for pid in descendants(folder):
                Path(f"/proc/{pid}").exists() and subprocess.run(["kill", "-9", str(pid)], check=False)


def descendants(folder: Path) -> list[int]:
    """Processes that were started with something below a folder: the shepherd, for one."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (directory / "cmdline").read_bytes():
                found.append(int(directory.name))
        except OSError:
            continue
    return found


def pod(name: str, script: str, restart: str = "Never") -> str:
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  restartPolicy: {restart}
  terminationGracePeriodSeconds: 1
  containers:
  - {{name: main, image: none, command: [sh, -c, "{script}"]}}
"""


def until(question: Callable[[], bool], within_s: float = 60) -> None:
    end = time.monotonic() + within_s
    while not question():
        assert time.monotonic() < end, "it did not become so"
        time.sleep(0.1)


def test_kubectl_runs_a_pod_and_reads_what_it_printed(cluster):
    _, _, kubectl = cluster
    kubectl("apply", "-f", "-", stdin=pod("hello", "echo hello from $HOSTNAME"))
    kubectl("wait", "pod/hello", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s")
    assert kubectl("logs", "hello") == "hello from hello\n"
    assert "process://" in kubectl("get", "nodes", "-o", "wide")


def test_kubectl_follows_output_until_the_container_has_ended(cluster):
    _, _, kubectl = cluster
    kubectl("apply", "-f", "-", stdin=pod("talks", "for i in 1 2 3 4 5; do echo $i; sleep 0.2; done"))
    kubectl("wait", "pod/talks", "--for=jsonpath={.status.phase}=Running", "--timeout=60s")
    assert kubectl("logs", "-f", "talks").split() == ["1", "2", "3", "4", "5"]


def test_pods_go_on_when_the_agent_is_killed_and_it_finds_them_again(cluster):
    _, node, kubectl = cluster
    marks = node.root / "marks"
    kubectl("apply", "-f", "-", stdin=pod("long", f"echo began >> {marks}; sleep 300", "Always"))
    kubectl("wait", "pod/long", "--for=condition=Ready", "--timeout=60s")
    node.end(signal.SIGKILL)
    node.start()
    assert kubectl("logs", "long") == ""
    kubectl("delete", "pod", "long", "--timeout=60s")
    assert marks.read_text() == "began\n"
    until(lambda: not any("sleep" in Path(f"/proc/{pid}/cmdline").read_text() for pid in descendants(marks)))


def test_an_agent_that_is_interrupted_leaves_its_containers_alone(cluster):
    _, node, kubectl = cluster
    kubectl("apply", "-f", "-", stdin=pod("stays", "sleep 300", "Always"))
    kubectl("wait", "pod/stays", "--for=condition=Ready", "--timeout=60s")
    uid = kubectl("get", "pod", "stays", "-o", "jsonpath={.metadata.uid}")
    pid = json.loads((node.root / "containers" / uid / "main/0/started.json").read_text())["pid"]
    assert node.end(signal.SIGTERM) == 0
    assert Path(f"/proc/{pid}").exists()
    node.start()
    kubectl("delete", "pod", "stays", "--timeout=60s")
    assert not Path(f"/proc/{pid}").exists()


def test_an_agent_with_a_checkpoint_that_it_cannot_read_says_what_to_do(cluster):
    _, node, _ = cluster
    node.end(signal.SIGTERM)
    junk = node.root / "dra_manager_state"
    junk.write_text("junk")
    try:
        failed = subprocess.run(node._command, capture_output=True, text=True, timeout=60)
        assert failed.returncode == 1
        assert failed.stderr.splitlines()[-1].startswith("allot node: dra_manager_state: it is not the JSON")
        assert "drain the node, remove the file, and start again" in failed.stderr
    finally:
        junk.unlink()
        node.start()
