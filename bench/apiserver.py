"""The API server over TLS, beside kube-apiserver 1.37 with etcd on the same kind of machine.

    bench/apiserver.py [--store sqlite|memory] [--objects N] [--connections C]

Prints one JSON object. The load generator runs on the same two cores, as it did
for the figures that we compare with.
"""

import argparse
import asyncio
import base64
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import uvloop
import yaml
from load import Load, drive, request

KUBERNETES = {
    "ready_s": 2.4,
    "idle_mb": 304 + 45,
    "list_33000_s": 1.1,
    "creates_per_second_in_the_same_minutes": {
        "configmaps": {"kubernetes": 1376, "allot": 3564},
        "pods": {"kubernetes": 839, "allot": 2237},
        "resourceclaims": {"kubernetes": 1178, "allot": 2641},
    },
}
"""kube-apiserver 1.37 with etcd, 2 cores, load generator included. How fast a machine creates differs by a
third from hour to hour: of that only pairs that were measured in the same minutes say anything."""


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": "x" * 1800}}


def pod(name: str) -> dict[str, Any]:
    env = [{"name": f"VARIABLE_{i}", "value": "y" * 60} for i in range(8)]
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "env": env,
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web", "tier": "front"}},
        "spec": {"containers": [container, {**container, "name": "side"}]},
    }


def claim(name: str) -> dict[str, Any]:
    expression = 'device.attributes["gpu.example.com"].model == "a100" && device.driver == "gpu.example.com"'
    exactly = {"deviceClassName": "gpu.example.com", "selectors": [{"cel": {"expression": expression}}]}
    config = {"opaque": {"driver": "gpu.example.com", "parameters": {"note": "z" * 1300}}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}], "config": [config]}},
    }


KINDS = {
    "configmaps": (config_map, "/api/v1/namespaces/default/configmaps"),
    "pods": (pod, "/api/v1/namespaces/default/pods"),
    "resourceclaims": (claim, "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"),
}


def creates(plural: str, count: int) -> Iterator[bytes]:
    make, path = KINDS[plural]
    for number in range(count):
        yield request("POST", path, json.dumps(make(f"o-{number}")).encode())


def gets(plural: str, count: int) -> Iterator[bytes]:
    path = KINDS[plural][1]
    for number in range(count):
        yield request("GET", f"{path}/o-{number}")


class Server:
    def __init__(
        self, data_dir: Path, store: str, log: Path | None = None, command: Sequence[str] = ("apiserver",)
    ) -> None:
        """What it says on stderr goes to `log`, or nowhere. `command` may be another that serves."""
        self.data_dir = data_dir
        started = time.perf_counter()
        whole = [sys.executable, "-m", "allot.cli", *command, "--data-dir", str(data_dir)]
        with open(log or os.devnull, "w") as said:
            self.process = subprocess.Popen(
                [*whole, "--port", "0", "--store", store], stdout=subprocess.PIPE, stderr=said, text=True
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.ready_s = time.perf_counter() - started
        if line.strip() != "ready":
            raise SystemExit("the server did not start")

    def rss_mb(self, what: str = "VmRSS") -> float:
        """Memory of the process now; with VmHWM, the most that it ever was."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith(what)).split()[1]) / 1024

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def access(self) -> tuple[int, ssl.SSLContext]:
        config = yaml.safe_load((self.data_dir / "kubeconfig").read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
        )
        pem = self.data_dir / "client.pem"
        pem.write_bytes(
            base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"])
        )
        context.load_cert_chain(pem)
        return int(cluster["server"].rpartition(":")[2]), context

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)


async def measure(server: Server, plural: str, count: int, connections: int) -> dict[str, Any]:
    port, context = server.access()

    async def timed(requests: Iterator[bytes], width: int = connections) -> dict[str, Any]:
        cpu = server.cpu_s()
        load: Load = await drive("127.0.0.1", port, context, requests, width)
        report = load.report()
        report["server_cpu_us_per_request"] = round((server.cpu_s() - cpu) * 1e6 / len(load.latencies_s), 1)
        return report

    await timed(creates(plural, 0 * count + 1), 1)
    await timed(iter([request("DELETE", f"{KINDS[plural][1]}/o-0")]), 1)
    made = await timed(creates(plural, count))
    read = await timed(gets(plural, count))
    listed = await timed(iter([request("GET", KINDS[plural][1])]), 1)
    return {"create": made, "get": read, "list_s": round(listed["p50_ms"] / 1000, 3), "listed": count}


async def run(options: argparse.Namespace) -> dict[str, Any]:
    report: dict[str, Any] = {
        "store": options.store,
        "connections": options.connections,
        "kubernetes": KUBERNETES,
    }
    with tempfile.TemporaryDirectory() as folder:
        for plural in options.kinds.split(","):
            server = Server(Path(folder) / plural, options.store)
            try:
                report.setdefault("ready_s", round(server.ready_s, 3))
                await asyncio.sleep(1)
                report.setdefault("idle_mb", round(server.rss_mb(), 1))
                report[plural] = await measure(server, plural, options.objects, options.connections)
                report[plural]["rss_mb"] = round(server.rss_mb(), 1)
            finally:
                server.stop()
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", default="sqlite")
    parser.add_argument("--objects", type=int, default=10000)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--kinds", default=",".join(KINDS))
    print(json.dumps(uvloop.run(run(parser.parse_args())), indent=1))


if __name__ == "__main__":
    main()
