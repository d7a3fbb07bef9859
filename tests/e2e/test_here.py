"""`allot up --here`: this machine as a node, with what it has, as root and as anybody."""

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rights
from allot.cluster import own_name
from allot.drivers.cpu import listed
from components import binary
from e2e.process import Kubectl
from e2e.test_up import Up

PATIENCE_S = 90.0
needs_root = rights.needs_root("only root has loop devices to give away")

SCRATCH = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: scratch}
spec:
  spec:
    devices:
      requests:
      - name: disk
        exactly: {deviceClassName: loop.allot.dev, capacity: {requests: {storage: 3Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  restartPolicy: Never
  resourceClaims: [{name: disk, resourceClaimTemplateName: scratch}]
  containers:
  - name: main
    image: none
    command: [sh, -c, 'echo it is mine >$LOOP_DEVICE_DISK && wc -c <$LOOP_DEVICE_DISK']
    resources: {claims: [{name: disk}]}
"""


CORE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: core}
spec:
  spec:
    devices:
      requests:
      - name: own
        exactly: {deviceClassName: cpu.allot.dev, capacity: {requests: {cores: "1"}}}
---
apiVersion: v1
kind: Pod
metadata: {name: worker}
spec:
  restartPolicy: Never
  resourceClaims: [{name: core, resourceClaimTemplateName: core}]
  containers:
  - name: main
    image: none
    command:
    - sh
    - -c
    - |
      echo $CPUS_OWN
      grep Cpus_allowed_list: /proc/self/status
      taskset -c 0-1023 grep Cpus_allowed_list: /proc/self/status
    resources: {claims: [{name: core}]}
"""


class PlainUp(Up):
    """By somebody who is not root, also where tests are."""

    def __init__(self, data_dir: Path, *more: str) -> None:
        if os.geteuid() == 0:
            os.chown(data_dir.parent, NOBODY.pw_uid, NOBODY.pw_gid)
        super().__init__(data_dir, *more)

    def start(self) -> None:
        if os.geteuid() == 0:
            self._command = [*AS_NOBODY, _python(), *self._command[1:]]
        super().start()


NOBODY = pwd.getpwnam("nobody")
AS_NOBODY = ["setpriv", f"--reuid={NOBODY.pw_uid}", f"--regid={NOBODY.pw_gid}", "--clear-groups"]
AS_NOBODY += ["env", f"PYTHONPATH={os.pathsep.join(filter(None, sys.path))}", "PYTHONDONTWRITEBYTECODE=1"]


def _python() -> str:
    """One that a plain user may run, and that may run itself: a root's own may lie where only root looks."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    itself = (
        "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', 'import allot.cli, grpc']))"
    )
    candidates = [sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"]
    for one in candidates:
        if subprocess.run([*AS_NOBODY, one, "-c", itself], capture_output=True).returncode == 0:
            return one
    pytest.fail(f"a plain user can run none of {', '.join(candidates)}")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short: sockets lie below it."""
    path = Path(tempfile.mkdtemp(prefix="up"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def until(question: Any, what: str) -> Any:
    end_s = time.monotonic() + PATIENCE_S
    while not (answer := question()):
        assert time.monotonic() < end_s, f"{what}: it did not become so"
        time.sleep(0.1)
    return answer


def phase(kubectl: Kubectl, pod: str) -> str:
    return kubectl("get", "pod", pod, "-o", "jsonpath={.status.phase}")


@needs_root
def test_a_pod_on_this_machine_has_a_disk_of_its_own_which_goes_with_it(folder):
    up = Up(folder / "data", "--here")
    try:
        kubectl = Kubectl(binary("kubectl"), up.kubeconfig)
        nodes = json.loads(kubectl("get", "nodes", "-o", "json"))["items"]
        assert [one["metadata"]["name"] for one in nodes] == [own_name()], "no hollow node is beside it"
        assert f"this machine is node {own_name()}: " in Path(up.log.name).read_text()
        kubectl("apply", "-f", "-", stdin=SCRATCH)
        until(
            lambda: kubectl("get", "pod", "writer", "-o", "jsonpath={.status.phase}") == "Succeeded", "an end"
        )
        assert kubectl("logs", "writer").split()[-1] == str(3 * 2**20)
        files = folder / "data/agents/here/plugins/loop.allot.dev/files"
        kubectl("delete", "pod", "writer")
        until(lambda: not [*files.iterdir()], "the file is gone with the claim")
        assert str(files) not in _backing_files()
    finally:
        up.stop()


@needs_root
def test_after_everything_was_killed_the_pod_has_its_disk_again_and_nothing_of_it_is_left(folder):
    """Server, agent, drivers and container at once; the loop device is the kernel's, and outlives them."""
    up = Up(folder / "data", "--here")
    try:
        kubectl = Kubectl(binary("kubectl"), up.kubeconfig)
        text = "head -c 12 $LOOP_DEVICE_DISK; echo it is mine >$LOOP_DEVICE_DISK; sync; exec sleep 600"
        pod = SCRATCH.replace("restartPolicy: Never", "restartPolicy: Always")
        kubectl(
            "apply",
            "-f",
            "-",
            stdin=f"{pod[: pod.index('    command')]}"
            f"    command: [sh, -c, '{text}']\n    resources: {{claims: [{{name: disk}}]}}\n",
        )
        until(lambda: phase(kubectl, "writer") == "Running", "it runs")
        files = folder / "data/agents/here/plugins/loop.allot.dev/files"
        backing = _backing_files()
        up.kill()
        for path in folder.glob("data/agents/containers/*/*/*/started.json"):
            os.kill(json.loads(path.read_text())["pid"], signal.SIGKILL)
        up.start()
        until(
            lambda: "it is mine" in kubectl("logs", "writer"), "what it wrote is there when it begins again"
        )
        assert _backing_files() == backing, "no second device was made"
        kubectl("delete", "pod", "writer", "--grace-period=1")
        until(lambda: not [*files.iterdir()], "the file is gone with the claim")
        assert str(files) not in _backing_files()
    finally:
        up.stop()


@needs_root
@pytest.mark.parametrize("deletes_pod", [False, True])
def test_a_cluster_that_ends_in_order_lets_go_of_the_disk_and_has_it_again(folder, deletes_pod):
    """The loop device of a claim stayed attached, and once the data directory was gone nobody knew of it."""
    up = Up(folder / "data", "--here")
    try:
        kubectl = Kubectl(binary("kubectl"), up.kubeconfig)
        text = "head -c 12 $LOOP_DEVICE_DISK; echo it is mine >$LOOP_DEVICE_DISK; sync; exec sleep 600"
        pod = SCRATCH.replace("restartPolicy: Never", "restartPolicy: Always")
        pod = f"{pod[: pod.index('    command')]}    command: [sh, -c, '{text}']\n"
        kubectl("apply", "-f", "-", stdin=f"{pod}    resources: {{claims: [{{name: disk}}]}}\n")
        files = folder / "data/agents/here/plugins/loop.allot.dev/files"
        until(lambda: phase(kubectl, "writer") == "Running", "it runs")
        until(
            lambda: any(b"it is mine" in one.read_bytes()[:12] for one in files.iterdir()), "it has written"
        )
        assert str(files) in _backing_files()

        assert up.stop() == 0
        assert str(files) not in _backing_files()
        assert not [*folder.glob("data/agents/here/cdi/*loop*")], (
            "no CDI spec names a device that is not there"
        )
        if not deletes_pod:
            return

        up.start()
        until(lambda: "it is mine" in kubectl("logs", "writer"), "it has its disk again, with what it wrote")
        kubectl("delete", "pod", "writer", "--grace-period=1")
        until(lambda: not [*files.iterdir()], "the file is gone with the claim")
        assert up.stop() == 0
        assert str(files) not in _backing_files()
    finally:
        up.kill()


@needs_root
def test_a_disk_whose_data_directory_was_deleted_after_a_kill_is_let_go_by_the_next_cluster(folder):
    up = Up(folder / "data", "--here")
    kubectl = Kubectl(binary("kubectl"), up.kubeconfig)
    pod = SCRATCH.replace("echo it is mine >$LOOP_DEVICE_DISK && wc -c <$LOOP_DEVICE_DISK", "exec sleep 600")
    kubectl("apply", "-f", "-", stdin=pod)
    until(lambda: phase(kubectl, "writer") == "Running", "it runs")
    files = folder / "data/agents/here/plugins/loop.allot.dev/files"
    up.kill()
    for path in folder.glob("data/agents/containers/*/*/*/started.json"):
        os.kill(json.loads(path.read_text())["pid"], signal.SIGKILL)
    assert str(files) in _backing_files()
    until(lambda: is_removed(folder / "data"), "nobody writes there any more")
    other = Up(folder / "other", "--here")
    try:
        until(lambda: str(files) not in _backing_files(), "the orphan is let go")
    finally:
        other.stop()


@needs_root
def test_a_container_with_a_core_of_its_own_cannot_leave_it(folder):
    up = Up(folder / "data", "--here")
    try:
        given, first, then = cores_of_worker(Kubectl(binary("kubectl"), up.kubeconfig))
        assert first == then == given
    finally:
        up.stop()


def is_removed(path: Path) -> bool:
    shutil.rmtree(path, ignore_errors=True)
    return not path.exists()


def cores_of_worker(kubectl: Kubectl) -> tuple[str, str, str]:
    """What it was given, what it ran on, and what it ran on after it tried to have more."""
    kubectl("apply", "-f", "-", stdin=CORE)
    until(lambda: phase(kubectl, "worker") == "Succeeded", "an end")
    given, *lists = kubectl("logs", "worker").splitlines()
    first, then = (line.split()[-1] for line in lists)
    assert given and {*listed(given)} < os.sched_getaffinity(0)
    return given, first, then


def _backing_files() -> str:
    return " ".join(path.read_text() for path in Path("/sys/block").glob("loop*/loop/backing_file"))


def test_a_plain_user_has_what_a_plain_user_may(folder, monkeypatch):
    """And is told what there is not."""
    monkeypatch.setenv("HOME", str(folder))
    up = PlainUp(folder / "data", "--here")
    try:
        said = Path(up.log.name).read_text()
        assert "without network interfaces (only root may move network interfaces)" in said
        assert "without loop devices (loop devices take /dev/loop-control: only root may open it)" in said
        kubectl = Kubectl(binary("kubectl"), up.kubeconfig)
        kubectl("run", "hello", "--image=none", "--restart=Never", "--command", "--", "echo", "it works")
        until(
            lambda: kubectl("get", "pod", "hello", "-o", "jsonpath={.status.phase}") == "Succeeded", "an end"
        )
        assert kubectl("logs", "hello") == "it works\n"
        given, first, _ = cores_of_worker(kubectl)
        assert first == given
    finally:
        up.stop()


def test_hollow_nodes_are_beside_it_if_they_are_asked_for(folder):
    up = Up(folder / "data", "--here", "--nodes", "1", "--fleet", "edge")
    try:
        kubectl = Kubectl(binary("kubectl"), up.kubeconfig)
        names = kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}").split()
        assert {*names} == {"edge-0", own_name()}
    finally:
        up.stop()
