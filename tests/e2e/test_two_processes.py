"""`allot up` in two processes: one cluster, one end, whichever of them a signal or an accident meets."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components import binary, etcd
from e2e.process import Kubectl, ServerProcess
from e2e.test_up import Up

PATIENCE_S = 60.0

needs_two_cores = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="with one core there is one process"
)


def until(question: Callable[[], Any], what: str) -> Any:
    end_s = time.monotonic() + PATIENCE_S
    while not (answer := question()):
        assert time.monotonic() < end_s, f"{what}: it did not become so"
        time.sleep(0.02)
    return answer


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def server_of(up: Up) -> int:
    assert up.process is not None
    (server,) = children(up.process.pid)
    assert "allot.cli.apiserver_of_up" in Path(f"/proc/{server}/cmdline").read_text()
    return server


def said(up: Up) -> str:
    return Path(up.log.name).read_text()


def ended(up: Up) -> int:
    assert up.process is not None
    return up.process.wait(PATIENCE_S)


@pytest.fixture
def up(tmp_path):
    running = Up(tmp_path / "data", "--nodes", "2", "--fleet", "plain")
    yield running
    assert running.process is not None
    if running.process.poll() is None:
        running.kill()


@needs_two_cores
def test_the_server_has_a_process_of_its_own_and_all_of_it_is_shown_in_one_place(up):
    kubectl = Kubectl(binary("kubectl"), up.kubeconfig)
    server = server_of(up)
    kubectl("create", "deployment", "web", "--image=app:1", "--replicas=3")
    kubectl("rollout", "status", "deployment/web", "--timeout=40s")
    assert kubectl("get", "--raw", "/readyz") == "ok"
    shown = kubectl("get", "--raw", "/metrics")
    named = re.findall(r"^# TYPE (\S+)", shown, re.M)
    assert len(named) == len(set(named)), "each metric is shown once"
    assert {"apiserver_request_total", "scheduler_schedule_attempts_total", "workqueue_depth"} <= set(named)
    assert "is in use by process" in (refused := second(up.data_dir)) and str(server) in refused


HELLO = """
apiVersion: v1
kind: Pod
metadata: {name: hello}
spec:
  restartPolicy: Never
  nodeSelector: {kubernetes.io/hostname: agent-1}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
  containers:
  - name: main
    image: none
    command: [sh, -c, "env | grep ^DEVICE_"]
    resources: {claims: [{name: gpu}]}
"""


@needs_two_cores
def test_agents_are_beside_the_controllers_and_their_pods_get_devices_and_show_logs():
    with tempfile.TemporaryDirectory(prefix="up") as short:  # sockets lie below it
        up = Up(Path(short) / "data", "--nodes", "1", "--fleet", "edge", "--agents", "2")
        try:
            kubectl = Kubectl(binary("kubectl"), up.kubeconfig)
            assert up.process is not None
            assert any("apiserver_of_up" in command_of(pid) for pid in children(up.process.pid))
            kubectl("apply", "-f", "-", stdin=HELLO)
            kubectl("wait", "pod/hello", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s")
            assert "=gpu.example.com/agent-1/" in kubectl("logs", "hello")
            shown = kubectl("get", "--raw", "/metrics")
            assert 'dra_operations_duration_seconds_count{operation_name="PrepareResources"' in shown
            assert up.stop() == 0
        finally:
            up.kill()


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def second(data_dir: Path) -> str:
    command = [sys.executable, "-m", "allot.cli", "up", "--port", "0", "--data-dir", str(data_dir)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("how", ["--one-process", "--no-socket", "one core"])
def test_there_is_one_process_where_that_is_wanted_or_all_there_is(tmp_path, how):
    before = os.sched_getaffinity(0)
    if how == "one core":
        os.sched_setaffinity(0, {min(before)})  # whoever is started now inherits it
    try:
        up = Up(tmp_path / "data", "--nodes", "1", *([how] if how.startswith("--") else []))
    finally:
        os.sched_setaffinity(0, before)
    try:
        assert up.process is not None and children(up.process.pid) == []
        assert Kubectl(binary("kubectl"), up.kubeconfig)("get", "nodes", "-o", "name") == "node/gpu-0\n"
        assert up.stop() == 0
    finally:
        up.kill()


@needs_two_cores
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("whom", ["cluster", "server", "both"])
def test_a_signal_to_either_ends_both_in_order(tmp_path, whom, number):
    """As Ctrl-C, as `kill`, and as systemd does it, to all at once. The controllers and the scheduler give
    their leases back, which they can only while the server is there."""
    with etcd() as store:
        where = store.url()
        up = Up(tmp_path / "data", "--nodes", "1", "--store", where)
        try:
            server = server_of(up)
            assert up.process is not None
            held = holders(up.kubeconfig)
            assert len(held) == 3 and all(held.values())
            for pid in {"cluster": [up.process.pid], "server": [server]}.get(whom, [server, up.process.pid]):
                os.kill(pid, number)
            assert ended(up) == 0
            assert not is_alive(server)
            assert said(up).splitlines()[1:] == [], "nothing but where it serves"
            looking = ServerProcess(tmp_path / "other", where)
            try:
                assert holders(looking.kubeconfig) == dict.fromkeys(held, "")
            finally:
                looking.stop()
        finally:
            up.kill()


def holders(kubeconfig: Path) -> dict[str, str]:
    kubectl = Kubectl(binary("kubectl"), kubeconfig)
    leases = json.loads(kubectl("get", "leases", "-n", "kube-system", "-o", "json"))["items"]
    return {one["metadata"]["name"]: one["spec"].get("holderIdentity", "") for one in leases}


@needs_two_cores
def test_what_was_acknowledged_while_it_ended_is_there_when_it_is_back(up):
    kubectl = Kubectl(binary("kubectl"), up.kubeconfig)
    made: list[str] = []

    def write() -> None:
        for number in range(1000):
            done = subprocess.run(
                [kubectl.program, "create", "configmap", f"m{number}"],
                env=kubectl.environment,
                capture_output=True,
                timeout=PATIENCE_S,
            )
            if done.returncode:
                return
            made.append(f"configmap/m{number}")

    writing = threading.Thread(target=write)
    writing.start()
    until(lambda: len(made) > 3, "some are written")
    assert up.stop() == 0
    writing.join()
    up.start()
    assert set(made) <= set(kubectl("get", "configmaps", "-o", "name").split())
    assert up.stop() == 0


@needs_two_cores
def test_a_server_that_dies_ends_the_cluster_with_a_message(up):
    server = server_of(up)
    os.kill(server, signal.SIGKILL)
    assert ended(up) == 1
    lines = said(up).splitlines()[1:]  # the first says where it serves
    assert lines == [f"allot up: ended: the API server's process {server} was killed by signal 9"]


@needs_two_cores
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_that_ends_while_the_cluster_starts_ends_it_too(tmp_path, how):
    command = [sys.executable, "-m", "allot.cli", "up", "--data-dir", str(tmp_path / "data"), "--port", "0"]
    up = subprocess.Popen(
        [*command, "--nodes", "20000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        kubeconfig = tmp_path / "data" / "kubeconfig"
        until(lambda: up.poll() is not None or kubeconfig.exists(), "the server answers")
        (server,) = children(up.pid)
        time.sleep(0.3)  # the nodes are being registered
        os.kill(server, how)
        out, err = up.communicate(timeout=PATIENCE_S)
        assert out == "" and "Traceback" not in err
        if how == signal.SIGKILL:
            assert up.returncode == 1
            assert f"ended: the API server's process {server} was killed by signal 9" in err
        else:
            assert (up.returncode, err) == (0, "")
        assert not is_alive(server)
    finally:
        up.kill()
        up.wait(5)


@needs_two_cores
def test_it_can_be_stopped_from_its_first_moment_on(tmp_path):
    """Whatever is being imported, begun or asked for at that time, nobody stays behind."""
    for moment in range(10):
        folder = tmp_path / str(moment)
        command = [sys.executable, "-m", "allot.cli", "up", "--data-dir", str(folder), "--port", "0"]
        up = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(moment * 0.15)
        servers = children(up.pid)
        up.terminate()
        _, err = up.communicate(timeout=PATIENCE_S)
        assert up.returncode in (0, -signal.SIGTERM), err  # before it can listen to signals they end it
        assert "Traceback" not in err
        until(lambda servers=servers: not any(map(is_alive, servers)), "nobody stays behind")


@needs_two_cores
def test_a_cluster_that_is_killed_leaves_no_server_behind(up):
    server = server_of(up)
    os.kill(server, signal.SIGSTOP)  # so busy that it hears nothing
    up.kill()
    time.sleep(0.2)
    os.kill(server, signal.SIGCONT)
    until(lambda: not is_alive(server), "the server ends")
    up.start()
    assert up.stop() == 0


@needs_two_cores
def test_metrics_do_not_wait_for_ever_for_parts_that_are_too_busy(up):
    kubectl = Kubectl(binary("kubectl"), up.kubeconfig)
    assert up.process is not None
    os.kill(up.process.pid, signal.SIGSTOP)
    try:
        shown = kubectl("get", "--raw", "/metrics")
    finally:
        os.kill(up.process.pid, signal.SIGCONT)
    assert "apiserver_request_total" in shown and "scheduler_schedule_attempts_total" not in shown
    assert "scheduler_schedule_attempts_total" in kubectl("get", "--raw", "/metrics")
    assert up.stop() == 0


@needs_two_cores
def test_both_write_to_one_log(tmp_path, monkeypatch):
    up = Up(tmp_path / "data", "--nodes", "1", "--log-level", "debug")
    try:
        with socket.socket(socket.AF_UNIX) as somebody:
            monkeypatch.chdir(up.data_dir)  # the path may be too long for an address
            somebody.connect("api.sock")
            somebody.sendall(b"\xff" * 100)
            assert somebody.recv(1) == b""
    finally:
        assert up.stop() == 0
    names = set(re.findall(r"^\S+Z [DIWE] (\S+):", said(up), re.M))
    assert {"allot.apiserver.serving.socketlistener", "allot.controllers.garbagecollection.monitors"} <= names
