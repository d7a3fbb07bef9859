"""Commands through `allot apiserver` and `allot node` as processes: kill -9 of each, and slow readers."""

import asyncio
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from allot.nodeagent import ProcessRuntime
from components import binary
from e2e.process import Kubectl, ServerProcess
from e2e.test_kubectl_streams import MARK, left, until
from e2e.test_node import NODE, Node, descendants


@contextmanager
def a_pod_that_runs() -> Iterator[tuple[ServerProcess, Node, Kubectl]]:
    with tempfile.TemporaryDirectory(prefix="sc") as short:  # sockets lie below it
        folder = Path(short)
        server = ServerProcess(folder / "data")
        node = None
        try:
            node = Node(server, folder)
            kubectl = Kubectl(binary("kubectl"), server.kubeconfig)
            spec = {
                "nodeName": NODE,
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": "x", "command": ["sleep", "1000"]}],
            }
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}
            kubectl("apply", "-f", "-", stdin=json.dumps(pod))
            kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=50s")
            yield server, node, kubectl
        finally:
            _tidy(server, node, folder)


def _tidy(server, node, folder):
    if node is not None and node.process.poll() is None:
        node.end(signal.SIGKILL)
    if server.process.poll() is None:
        server.kill()
    asyncio.run(_end_containers(folder / "root" / "containers"))
    for pid in descendants(folder):
        subprocess.run(["kill", "-9", str(pid)], check=False)


async def _end_containers(root):
    """They outlive the agent."""
    async with ProcessRuntime(root).attached() as runtime:
        for attempt in await runtime.attempts():
            if attempt.runs:
                await runtime.signal(attempt, signal.SIGKILL)


def run_in_it(kubectl, script, **more):
    command = [kubectl.program, "exec", "web", "--", "sh", "-c", script, MARK]
    return subprocess.Popen(
        command, env=kubectl.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **more
    )


@pytest.mark.parametrize("which", ["server", "agent", "kubectl"])
def test_a_command_ends_with_whatever_it_was_run_through(which):
    with a_pod_that_runs() as (server, node, kubectl):
        process = run_in_it(kubectl, "echo begun; sleep 1000")
        assert process.stdout.readline() == b"begun\n"
        assert left()
        {"server": server.kill, "agent": lambda: node.end(signal.SIGKILL), "kubectl": process.kill}[which]()
        assert process.wait(60) != 0
        process.stdout.close()
        until(lambda: not left())
        if which == "kubectl":
            kubectl("delete", "pod", "web", "--timeout=50s")


def test_a_slow_reader_costs_neither_server_nor_agent_memory():
    """200 MB wait in the command; on the way are a few buffers. Then all of it is read."""
    size = 200 * 1024 * 1024
    with a_pod_that_runs() as (server, node, kubectl):
        kubectl("exec", "web", "--", "true")  # what is needed once is there
        pids = server.process.pid, node.process.pid
        before = [memory_bytes(pid) for pid in pids]
        process = run_in_it(kubectl, f"head -c {size} /dev/zero")
        got = len(os.read(process.stdout.fileno(), 1))
        most = list(before)
        for _ in range(20):
            time.sleep(0.1)
            most = [max(was, memory_bytes(pid)) for was, pid in zip(most, pids, strict=True)]
        while data := process.stdout.read(1 << 20):
            got += len(data)
            most = [max(was, memory_bytes(pid)) for was, pid in zip(most, pids, strict=True)]
        process.stdout.close()
        assert (got, process.wait(60)) == (size, 0)
        for was, now in zip(before, most, strict=True):
            assert now - was < 32 * 1024 * 1024


def memory_bytes(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
