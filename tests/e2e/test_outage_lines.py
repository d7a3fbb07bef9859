"""One outage is one line, and its end another, in every process that notices it."""

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from components import Etcd, etcd
from e2e.process import Controllers, Lease, Scheduler, ServerProcess
from e2e.test_etcd_away import first_answer
from e2e.test_sick_machine import log_of

AWAY_S = 6.0
QUIET_S = 12.0
LONG = Lease(duration_s=60, renew_deadline_s=40, retry_period_s=1)


def restart(cluster: Etcd) -> None:
    (member,) = cluster.members
    member.kill()
    time.sleep(AWAY_S)
    member.start()
    asyncio.run(first_answer(cluster))
    time.sleep(QUIET_S)


def lines(text: str) -> list[str]:
    """What is logged as a warning or worse."""
    return [line for line in text.splitlines() if line[:4].isdigit() and line.split(" ")[1] in "WEC"]


@pytest.mark.parametrize("way", ["https", "socket"])
def test_a_short_restart_of_etcd_is_two_lines_a_process(tmp_path: Path, way: str):
    """It was 177: every cache, informer, lease and loop told of each attempt."""
    with etcd() as cluster:
        server = ServerProcess(tmp_path / "d", store=cluster.url("/lines"))
        more = ["--socket", str(server.data_dir / "api.sock")] if way == "socket" else []
        components = [Controllers(server, "c", LONG, *more), Scheduler(server, "s", LONG, *more)]
        try:
            for component in components:
                component.await_ready()
            time.sleep(2)
            before = [len(lines(one.log_text())) for one in components]
            restart(cluster)
        finally:
            codes = [component.end(signal.SIGTERM) for component in components]
            server.stop()
        assert codes == [0, 0]
        said = [line for line in log_of(server) if " allot." in line]
        assert len(said) == 2, said
        for component, count in zip(components, before, strict=True):
            said = lines(component.log_text())[count:]
            assert len(said) == 2, said
            assert "is away, trying on: " in said[0] and "is back after" in said[1], said
        text = components[0].log_text()
        assert len([line for line in text.splitlines() if " I allot." in line]) < 20, text


def test_a_server_that_is_killed_and_started_again_is_two_lines_for_a_component(tmp_path: Path):
    server = ServerProcess(tmp_path / "d")
    controllers = Controllers(server, "c", LONG)
    try:
        controllers.await_ready()
        time.sleep(2)
        before = len(lines(controllers.log_text()))
        server.kill()
        time.sleep(AWAY_S)
        server.start()
        time.sleep(QUIET_S)
    finally:
        controllers.end(signal.SIGTERM)
        server.stop()
    said = lines(controllers.log_text())[before:]
    assert len(said) == 2, said
    assert "cannot reach the server" in said[0] or "is away" in said[0]


def test_a_whole_cluster_says_it_once_too(tmp_path: Path):
    with etcd() as cluster:
        arguments = ["up", "--data-dir", str(tmp_path / "d"), "--port", "0", "--nodes", "20"]
        log = (tmp_path / "log").open("w")
        with subprocess.Popen(
            [sys.executable, "-m", "allot.cli", *arguments, "--store", cluster.url("/up")],
            stdout=subprocess.PIPE,
            stderr=log,
            stdin=subprocess.DEVNULL,
            text=True,
        ) as process:
            assert process.stdout is not None
            try:
                assert process.stdout.readline() == "ready\n"
                restart(cluster)
            finally:
                process.send_signal(signal.SIGINT)
                code = process.wait(60)
        log.close()
    said = lines((tmp_path / "log").read_text())
    assert code == 0
    assert len(said) == 2, said
    assert "does not answer" in said[0] and "answers again" in said[1]
