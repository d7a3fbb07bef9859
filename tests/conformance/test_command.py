"""`allot conformance` as people run it: against drivers that are processes, with kill -9 and a report."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from allot.api import errors
from allot.client import Client, HttpsTransport, kubeconfig
from e2e.process import ServerProcess, allot

NODE = "node-1"


@pytest.fixture(scope="module")
def folder():
    with TemporaryDirectory(prefix="dra") as path:
        yield Path(path)


@pytest.fixture(scope="module")
def server(folder):
    running = ServerProcess(folder / "api")

    async def node():
        client = Client(HttpsTransport(kubeconfig.load(running.kubeconfig)))
        with suppress(errors.AlreadyExists):
            await client.resource("", "v1", "nodes", namespaced=False).create(
                {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
            )
        await client.close()

    asyncio.run(node())
    yield running
    running.stop()


@pytest.fixture
def restart(folder, server):
    """A script that ends the driver with kill -9 and has started it anew when it ends; and a driver."""
    flags = f"--node {NODE} --kubeconfig {server.kubeconfig} --root {folder} --cdi-dir {folder}/cdi"
    script = folder / "restart.sh"
    script.write_text(
        f"""cd {folder}
        [ -f pid ] && kill -9 "$(cat pid)"
        setsid {sys.executable} -m allot.cli driver sim --fleet gpu {flags} >>log 2>&1 &
        echo $! >pid
        """
    )
    subprocess.run(["sh", str(script)], check=True)
    yield script
    os.kill(int((folder / "pid").read_text()), signal.SIGKILL)


def listening(path):
    """Somebody answers there, and goes on to: a file alone may be what a killed process left, and one
    answer may be the last of a process that is being replaced."""
    in_a_row = 0
    for _ in range(600):
        in_a_row = in_a_row + 1 if answers(path) else 0
        if in_a_row == 20:
            return
        time.sleep(0.1)
    raise AssertionError(f"nobody listens at {path}")


def answers(path):
    with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
        probe.connect(str(path))
        return True
    return False


def test_a_driver_of_ours_conforms_with_everything_tried(folder, server, restart):
    path = folder / "plugins_registry" / "gpu.example.com-reg.sock"
    listening(path)
    done = allot(
        "conformance",
        *("--driver", str(path), "--kubeconfig", str(server.kubeconfig), "--cdi-dir", str(folder / "cdi")),
        *("--restart", f"sh {restart}", "--json", str(folder / "report.json")),
        within_s=400,
    )
    report = json.loads((folder / "report.json").read_text())
    others = {one["case"]: one["seen"] for one in report["cases"] if one["verdict"] != "passed"}
    assert others == {}, done.stdout
    assert done.returncode == 0 and report["conforms"] is True
    assert f"gpu.example.com: {len(report['cases'])} passed, 0 failed, 0 not tried" in done.stdout


def test_without_an_api_server_most_is_not_tried_and_that_is_said(folder, server, restart):
    path = folder / "plugins" / "gpu.example.com" / "dra.sock"
    listening(path)
    done = allot("conformance", "--driver", str(path), "--name", "gpu.example.com", within_s=400)
    assert done.returncode == 0, done.stdout
    assert "ok   unprepare of unknown claims" in done.stdout
    assert "-    prepare may be repeated" in done.stdout
    assert "not tried: needs an API server: --kubeconfig" in done.stdout
    assert "not tried: needs the registration socket" in done.stdout
    assert "asked: A prepare that is repeated" in done.stdout
    unnamed = allot("conformance", "--driver", str(path), within_s=60)
    assert unnamed.returncode == 2 and "say with --name" in unnamed.stderr


def test_nobody_there_is_a_line(folder):
    done = allot("conformance", "--driver", str(folder / "none.sock"), within_s=60)
    assert done.returncode == 2
    assert "nobody answers at" in done.stderr and len(done.stderr.splitlines()) == 1
