"""An etcd that goes away, comes back, or comes back as another one."""

import asyncio
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from allot.api import errors
from allot.store import open_store
from components import Etcd, binary, etcd
from e2e.process import Kubectl, ServerProcess
from e2e.test_sick_machine import log_of, readiness, until, with_client

SOON_S = 10.0  # three seconds of patience, on a machine that is busy with other tests


@pytest.fixture
def alone() -> Iterator[Etcd]:
    with etcd() as cluster:
        yield cluster


@pytest.fixture
def server(alone: Etcd, tmp_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path / "d", store=alone.url("/away"))
    yield server
    server.stop()


def test_kubectl_says_soon_that_etcd_is_away(alone: Etcd, server: ServerProcess):
    """It hung for minutes: each answer took fifteen seconds, and said to come back for another."""
    kubectl = Kubectl(binary("kubectl"), server.kubeconfig)
    kubectl("get", "pods")  # so that it knows what is served
    alone.members[0].kill()
    for command in (["get", "pods"], ["get", "pods"], ["create", "configmap", "x"], ["get", "limitranges"]):
        began_s = time.monotonic()
        said = kubectl(*command, fails=True)
        assert "the store is not available: etcd does not answer" in said, said
        assert time.monotonic() - began_s < SOON_S, command


def test_a_kind_that_nobody_has_asked_for_yet_is_not_waited_for_either(alone: Etcd, server: ServerProcess):
    """A list from the cache of such a kind, or a watch, hung until etcd came back."""

    async def story(client) -> None:
        alone.members[0].kill()
        leases = client.resource("coordination.k8s.io", "v1", "leases")
        for query in ({"resourceVersion": "0"}, {"watch": "true"}):
            began_s = time.monotonic()
            with pytest.raises(errors.Unavailable, match="etcd"):
                await client.send("GET", "/apis/coordination.k8s.io/v1/leases", query)
            assert time.monotonic() - began_s < SOON_S
        assert "[-]store failed: etcd" in await readiness(client)
        alone.members[0].start()

        async def listed() -> bool:
            try:
                await leases.list("default")
            except errors.Unavailable:
                return False
            return await readiness(client) == "ok"

        await until(listed)

    with_client(server, story)
    said = [line for line in log_of(server) if " allot." in line]
    assert len(said) == 2, said
    assert "does not answer" in said[0] and "answers again" in said[1]


@pytest.mark.parametrize("command", ["apiserver", "up"])
def test_a_server_whose_etcd_was_emptied_ends_and_says_why(alone: Etcd, tmp_path: Path, command: str):
    """It went on with caches of what was gone, and its watches waited for revisions of the past."""
    (member,) = alone.members
    more = ["--nodes", "1"] if command == "up" else []
    arguments = [command, "--data-dir", str(tmp_path / "d"), "--port", "0", *more]
    with subprocess.Popen(
        [sys.executable, "-m", "allot.cli", *arguments, "--store", alone.url("/wiped")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            assert process.stdout.readline() == "ready\n"
            member.kill()
            shutil.rmtree(alone.home / "m0")
            member.start()
            assert process.wait(60) == 1
            last = process.stderr.read().splitlines()[-1]
        finally:
            process.kill()
    assert last.startswith(f"allot {command}: ended: etcd is not the one that this server began with"), last
    assert "its revision went back from" in last


def test_a_server_starts_again_on_the_etcd_that_was_emptied(alone: Etcd, tmp_path: Path):
    """With the keys of its data directory: who had credentials still has them."""
    (member,) = alone.members
    server = ServerProcess(tmp_path / "d", store=alone.url("/again"))
    kubectl = Kubectl(binary("kubectl"), server.kubeconfig)
    kubectl("create", "configmap", "gone")
    member.kill()
    shutil.rmtree(alone.home / "m0")
    member.start()
    assert server.process is not None and server.process.wait(60) == 1
    server.start()
    assert "not found" in kubectl("get", "configmap", "gone", fails=True)
    assert kubectl("get", "ns", "default")
    assert server.stop() == 0


def test_a_server_that_is_started_before_its_etcd_waits_for_it(alone: Etcd, tmp_path: Path):
    (member,) = alone.members
    asyncio.run(first_answer(alone))  # one that is killed before does not always start again
    member.kill()
    late = threading.Timer(5.0, member.start)
    late.start()
    try:
        server = ServerProcess(tmp_path / "d", store=alone.url("/late"))
    finally:
        late.join()
    assert server.stop() == 0


async def first_answer(cluster: Etcd) -> None:
    store = open_store(cluster.url())
    await store.revision()
    await store.close()
