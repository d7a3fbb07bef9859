"""An autoscaler and a provider in two processes, over gRPC with certificates on both sides."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from allot.apiserver import Authority
from allot.fleet import fleet
from components import binary
from e2e.process import Kubectl, allot
from e2e.test_up import Up

PATIENCE_S = 90.0
GROUPS = """
groups:
- {name: gpus, price: 10, max: 3, fleet: gpu}
- {name: small, price: 1, max: 3, fleet: plain}
"""
TRAIN = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: train}
spec:
  replicas: 9
  selector: {matchLabels: {app: train}}
  template:
    metadata: {labels: {app: train}}
    spec:
      resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
      containers: [{name: main, image: "app:1", resources: {claims: [{name: gpu}]}}]
"""


def certificates(folder: Path) -> None:
    authority, now = Authority.create(datetime.now(UTC)), datetime.now(UTC)
    for name, pair in (
        ("server", authority.serving(["127.0.0.1"], now)),
        ("client", authority.client("autoscaler", (), now)),
    ):
        (folder / f"{name}.pem").write_bytes(pair.certificate)
        (folder / f"{name}.key").write_bytes(pair.key)
    (folder / "ca.pem").write_bytes(authority.ca.certificate)


@contextmanager
def running(log: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command until the end of the story, once it is ready."""
    with log.open("a") as into:
        process = subprocess.Popen(
            [sys.executable, "-m", "allot.cli", *words],
            stdout=subprocess.PIPE,
            stderr=into,
            stdin=subprocess.DEVNULL,
            text=True,
        )
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n", log.read_text()
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(20)
        assert process.stdout is not None
        process.stdout.close()


def until(question: Callable[[], Any], what: str) -> Any:
    end_s = time.monotonic() + PATIENCE_S
    while not (answer := question()):
        assert time.monotonic() < end_s, f"{what}: it did not become so"
        time.sleep(0.2)
    return answer


def test_a_provider_over_grpc_grows_from_zero_survives_kill_9_and_shrinks(tmp_path: Path):
    """Devices come from its templates, prices too; whoever is killed is begun anew and goes on."""
    certificates(tmp_path)
    (tmp_path / "groups.yaml").write_text(GROUPS)
    up = Up(tmp_path / "data", "--nodes", "1", "--fleet", "plain")
    try:
        kubectl = Kubectl(binary("kubectl"), up.kubeconfig)
        made = fleet("gpu", 1)
        offers = {"apiVersion": "v1", "kind": "List", "items": [*made.classes, *made.templates]}
        kubectl("apply", "-f", "-", stdin=json.dumps(offers))

        def nodes() -> list[str]:
            return sorted(kubectl("get", "nodes", "-o", "name").replace("node/", "").split())

        def phases() -> list[str]:
            return kubectl("get", "pods", "-o", "jsonpath={.items[*].status.phase}").split()

        def status() -> Any:
            shown = kubectl(
                "-n",
                "kube-system",
                "get",
                "configmap",
                "allot-autoscaler-status",
                "-o",
                "jsonpath={.data.status}",
            )
            return json.loads(shown)

        log, socket = tmp_path / "provider.log", str(tmp_path / "data" / "api.sock")
        secure = [f"--{name}={tmp_path}/{file}" for name, file in SERVER_FILES]
        provider_words = ["provider", "--socket", socket, "--groups", str(tmp_path / "groups.yaml"), *secure]
        with running(log, *provider_words, "--listen", "127.0.0.1:0") as first:
            address = log.read_text().split("provider ")[1].split()[0]
            where = {"address": address, "cert": "client.pem", "key": "client.key", "cacert": "ca.pem"}
            (tmp_path / "remote.yaml").write_text(json.dumps({"provider": where}))
            kubectl("apply", "-f", "-", stdin=TRAIN)
            until(lambda: phases() == ["Pending"] * 9, "nine pods wait")
            planned = allot(
                "plan", "--groups", str(tmp_path / "remote.yaml"), "--kubeconfig", str(up.kubeconfig)
            )
            assert planned.stdout.splitlines()[0] == "add 2 of gpus", planned.stderr
            assert "for 20 in all" in planned.stdout  # as the provider prices them
            hurry = ["--unneeded", "1", "--after-growth", "2", "--backoff", "1"]
            words = ["autoscaler", "--socket", socket, "--groups", str(tmp_path / "remote.yaml"), *hurry]
            with running(tmp_path / "autoscaler.log", *words) as scaling:
                until(lambda: phases() == ["Running"] * 9, "nine pods run")
                assert nodes() == ["gpus-0", "gpus-1", "plain-0"]
                assert (status()["provider"], status()["groups"]["gpus"]["max"]) == ("answers", 3)
                first.kill()
                first.wait(20)
                until(lambda: "UNAVAILABLE" in status()["provider"], "the status says that nobody answers")
                kubectl("scale", "deployment/train", "--replicas=1")
                until(lambda: len(phases()) == 1, "one pod is left")
                with running(log, *provider_words, "--listen", address):
                    until(lambda: len(nodes()) == 2, "one node for one pod")
                    scaling.kill()
                    scaling.wait(20)
                    kubectl("delete", "deployment/train")
                    with running(tmp_path / "autoscaler.log", *words, "--no-leader-elect"):
                        until(lambda: nodes() == ["plain-0"], "no node left of the group")
                    assert status()["groups"]["gpus"]["template"] == "learned"
    finally:
        up.stop()


SERVER_FILES = (("cert", "server.pem"), ("key", "server.key"), ("cacert", "ca.pem"))
