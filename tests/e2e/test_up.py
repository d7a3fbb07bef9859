"""`allot up` as a process: pods run on nodes that are not there, and it goes on after any end."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from components import binary, etcd
from e2e.process import Kubectl, ServerProcess

TIME = "--timeout=40s"


class Up(ServerProcess):
    """`allot up` in place of `allot apiserver`."""

    def __init__(self, data_dir: Path, *more: str) -> None:
        self.data_dir = data_dir
        self.kubeconfig = data_dir / "kubeconfig"
        self._command = [sys.executable, "-m", "allot.cli", "up", "--data-dir", str(data_dir), *more]
        self._port = 0
        self.process = None
        self.start()


def uids(kubectl: Kubectl, *resources: str) -> dict[str, str]:
    found = json.loads(kubectl("get", ",".join(resources), "-A", "-o", "json"))["items"]
    return {f"{one['kind']}/{one['metadata']['name']}": one["metadata"]["uid"] for one in found}


SERVICE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: service}
spec:
  replicas: 10
  selector: {matchLabels: {app: service}}
  template:
    metadata: {labels: {app: service}}
    spec:
      containers:
      - name: main
        image: app:1
        resources: {limits: {example.com/gpu: 1}}
"""

TASK = """
apiVersion: batch/v1
kind: Job
metadata: {name: task}
spec:
  completions: 3
  parallelism: 3
  template:
    metadata: {annotations: {hollow.allot.dev/run-time: 200ms}}
    spec:
      restartPolicy: Never
      resourceClaims: [{name: part, resourceClaimTemplateName: half-gpu}]
      containers: [{name: main, image: "app:1", resources: {claims: [{name: part}]}}]
"""


def test_a_person_without_a_cluster_has_one_and_it_survives_every_end(tmp_path):
    """A service on extended resources and a job on parts of GPUs; then SIGTERM, then kill -9."""
    up = Up(tmp_path / "data", "--nodes", "3")
    try:
        kubectl = Kubectl(binary("kubectl"), up.kubeconfig)
        nodes = kubectl("get", "nodes", "--no-headers")
        assert [line.split()[:2] for line in nodes.splitlines()] == [
            ["gpu-0", "Ready"],
            ["mig-0", "Ready"],
            ["plugin-0", "Ready"],
        ]
        kubectl("apply", "-f", "-", stdin=SERVICE)
        kubectl("apply", "-f", "-", stdin=TASK)
        kubectl("rollout", "status", "deployment/service", TIME)
        kubectl("wait", "--for=condition=complete", "job/task", TIME)
        where = kubectl("get", "pods", "-l", "app=service", "-o", "jsonpath={.items[*].spec.nodeName}")
        assert {"gpu-0", "plugin-0"} <= set(where.split())
        kubectl("delete", "job/task", TIME)
        kubectl("wait", "--for=delete", "resourceclaim", "--all", "--timeout=1s", fails=True)
        before = uids(kubectl, "nodes", "resourceslices", "pods", "leases", "preparedclaims")

        assert up.stop() == 0
        up.start()
        assert uids(kubectl, "nodes", "resourceslices", "pods", "leases", "preparedclaims") == before
        kubectl("rollout", "status", "deployment/service", TIME)

        up.kill()
        up.start()
        assert uids(kubectl, "nodes", "resourceslices", "pods", "leases", "preparedclaims") == before
        kubectl("scale", "deployment/service", "--replicas=4")
        kubectl("rollout", "status", "deployment/service", TIME)
        kubectl("delete", "deployment/service", "--cascade=foreground", TIME)
        kubectl("wait", "--for=delete", "pods,resourceclaims", "--all", TIME)
        listed = kubectl("get", "preparedclaims", "-o", "jsonpath={.items[*].status.claims[*].uid}")
        assert not listed
        assert up.stop() == 0
    finally:
        up.kill()


def test_two_on_one_etcd_play_the_nodes_once(tmp_path):
    """Both serve; one plays. When it is killed, the other goes on with the same pods."""
    with etcd() as store:
        options = ["--store", store.url(), "--fleet", "plain", "--nodes", "2"]
        first = Up(tmp_path / "first", *options)
        second = None
        try:
            kubectl = Kubectl(binary("kubectl"), first.kubeconfig)
            before = uids(kubectl, "nodes")
            assert len(before) == 2
            kubectl("create", "deployment", "web", "--image=app:1", "--replicas=6")
            kubectl("rollout", "status", "deployment/web", TIME)
            second = Up(tmp_path / "second", *options)
            pods = uids(kubectl, "pods")
            first.kill()
            kubectl = Kubectl(binary("kubectl"), second.kubeconfig)
            kubectl("scale", "deployment/web", "--replicas=8")
            kubectl("rollout", "status", "deployment/web", TIME)
            assert pods.items() <= uids(kubectl, "pods").items()
            assert uids(kubectl, "nodes") == before
            assert second.stop() == 0
        finally:
            for one in (first, second):
                if one is not None:
                    one.kill()


def test_it_stops_at_once_while_it_is_still_starting(tmp_path):
    command = [sys.executable, "-m", "allot.cli", "up", "--data-dir", str(tmp_path / "data"), "--port", "0"]
    process = subprocess.Popen([*command, "--nodes", "20000"], stdout=subprocess.PIPE, text=True)
    try:
        kubeconfig = tmp_path / "data" / "kubeconfig"
        while not kubeconfig.exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.terminate()
        assert process.wait(15) == 0
        assert process.stdout is not None
        assert process.stdout.read() == ""
    finally:
        process.kill()
        process.wait(5)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--fleet", "list"], 0, "mixed"),
        (["--fleet", "none"], 2, "no fleet is called 'none'"),
        (["--nodes", "-1"], 2, "nodes"),
        (["--start-delay", "soon"], 2, "duration"),
        (["--store", "nonsense"], 1, "nonsense"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(tmp_path, options, code, said):
    command = [sys.executable, "-m", "allot.cli", "up", "--data-dir", str(tmp_path), "--port", "0"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=20)
    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
