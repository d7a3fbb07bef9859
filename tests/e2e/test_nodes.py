"""`allot nodes` as a process: every part of the cluster is one."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from components import binary
from e2e.process import Controllers, Kubectl, Scheduler, ServerProcess, allot

CLAIM = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
  containers:
  - name: main
    image: app
    resources: {claims: [{name: gpu}]}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("nodes") / "data")
    parts = [kind(running, kind.command, None, "--no-leader-elect") for kind in (Controllers, Scheduler)]
    try:
        for part in parts:
            part.await_ready()
        yield running
    finally:
        for part in parts:
            part.end(signal.SIGKILL)
        running.kill()


@pytest.mark.parametrize("way", ["socket", "kubeconfig"])
def test_pods_run_on_hollow_nodes_of_another_process_which_write_as_themselves(server, way):
    """By socket, and with the administrator's kubeconfig by impersonation."""
    kubectl = Kubectl(binary("kubectl"), server.kubeconfig)
    access = {"socket": server.data_dir / "api.sock", "kubeconfig": server.kubeconfig}[way]
    command = [
        sys.executable,
        "-m",
        "allot.cli",
        "nodes",
        "--nodes",
        "2",
        "--fleet",
        "edge",
        f"--{way}",
        str(access),
    ]
    log = (server.data_dir.parent / f"{way}.log").open("a")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", Path(log.name).read_text()
        kubectl("apply", "-f", "-", stdin=CLAIM % way)
        kubectl("wait", f"pod/{way}", "--for=condition=Ready", "--timeout=60s")
        listed = kubectl("get", "preparedclaims", "-o", "jsonpath={.items[*].status.claims[*].name}")
        assert f"{way}-gpu-" in listed
        kubectl("delete", "pod", way, "--timeout=60s")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait(20)
        process.stdout.close()
        log.close()


def test_who_may_not_act_for_nodes_is_told_so(server, tmp_path):
    """The credential of the hollow nodes' own component is not enough: it would be everybody's."""
    access = tmp_path / "access"
    allot("credentials", "allot:hollow-nodes", "--data-dir", str(server.data_dir), "--out", str(access))
    command = [sys.executable, "-m", "allot.cli", "nodes", "--nodes", "7", "--fleet", "plain"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([*command, "--kubeconfig", str(access), "--no-leader-elect"], stderr=log)
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(6)
        finally:
            process.kill()
            process.wait(20)
    said = (tmp_path / "log").read_text()
    assert 'cannot impersonate resource "users"' in said


def test_a_fleet_that_is_not_there_is_refused():
    failed = allot("nodes", "--fleet", "none")
    assert failed.returncode == 2
    assert failed.stderr.startswith("allot nodes: no fleet is called 'none'; there are mixed, gpu")
    assert "edge" in allot("nodes", "--fleet", "list").stdout
