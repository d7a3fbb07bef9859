"""A driver as a program of its own: flags, readiness, kill -9 and what follows it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from allot.api import errors
from allot.client import Client, HttpsTransport, kubeconfig
from allot.driver.places import Places
from allot.wire import ADDRESS_BYTES_MAX, CallFailed, UnixSockets, cdi, dra
from driver.world import NAME, NAMESPACE, NODE, World
from e2e.process import ServerProcess

SOURCE = f"""
import os, sys, time
from pathlib import Path
from allot.driver import Device, Driver, Edits, Pool

log = Path(os.environ["DEEDS"])

def note(what):
    with log.open("a") as file:
        file.write(what + "\\n")

def pools(node):
    return [Pool(node.name, [Device("gpu-0")])]

def prepare(claim):
    note("prepare " + claim.name)
    if os.environ.get("DIE") == "in prepare":
        os.kill(os.getpid(), 9)
    return {{one: Edits(env=("GPU=" + one.device,)) for one in claim.devices}}

def unprepare(entry):
    note("unprepare " + entry.name)

sys.exit(Driver("{NAME}", pools, prepare, unprepare).main())
"""


def start(folder: Path, kubeconfig: Path, *more: str, **environment: str) -> subprocess.Popen[str]:
    program = folder / "driver.py"
    program.write_text(SOURCE)
    flags = [
        "--node",
        NODE,
        "--kubeconfig",
        str(kubeconfig),
        "--root",
        str(folder),
        "--cdi-dir",
        str(folder / "cdi"),
    ]
    return subprocess.Popen(
        [sys.executable, str(program), *flags, *more],
        env={**os.environ, "DEEDS": str(folder / "deeds"), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ready(driver: subprocess.Popen[str]) -> None:
    assert driver.stdout is not None and driver.stderr is not None
    line = driver.stdout.readline()
    assert line == "ready\n", driver.stderr.read()


def call(folder: Path, claim: dra.Claim, *, back: bool = False, instance: str = ""):
    async def story():
        channel = UnixSockets().dial(str(Places(NAME, folder, instance=instance).service_socket))
        try:
            return await (dra.unprepare if back else dra.prepare)(channel, dra.V1, [claim], timeout_s=60)
        finally:
            await channel.close()

    return asyncio.run(story())[claim.uid]


@pytest.fixture(scope="module")
def folder():
    with TemporaryDirectory(prefix="dra") as path:
        yield Path(path)


@pytest.fixture(scope="module")
def server(folder):
    running = ServerProcess(folder / "api")
    yield running
    running.stop()


def api(server, story):
    async def told():
        client = Client(HttpsTransport(kubeconfig.load(server.kubeconfig)))
        try:
            return await story(World(None, client, Places(NAME)))
        finally:
            await client.close()

    return asyncio.run(told())


@pytest.fixture
def claim(server, request):
    async def story(world):
        nodes = world.client.resource("", "v1", "nodes", namespaced=False)
        with suppress(errors.AlreadyExists):
            await nodes.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        return await world.claim(f"claim-{abs(hash(request.node.name)) % 10**6}", "gpu-0")

    made = api(server, story)
    yield made

    async def gone(world):
        await world.client.resource("resource.k8s.io", "v1", "resourceclaims").delete(made.name, NAMESPACE)

    api(server, gone)


def test_a_killed_driver_begins_anew_and_answers_as_before(folder, server, claim):
    driver = start(folder, server.kubeconfig)
    ready(driver)
    first = call(folder, claim)
    assert first.error == "" and len(first.devices[0].cdi_device_ids) == 1
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    driver = start(folder, server.kubeconfig)
    ready(driver)
    assert call(folder, claim) == first
    assert call(folder, claim, back=True).error == ""
    assert (folder / "deeds").read_text().split("\n")[-3:-1] == [
        f"prepare {claim.name}",
        f"unprepare {claim.name}",
    ]
    driver.terminate()
    assert driver.wait(30) == 0
    driver.communicate()


def test_a_driver_that_dies_in_the_author_s_prepare_knows_what_to_undo(folder, server, claim):
    """STATE1."""
    driver = start(folder, server.kubeconfig, DIE="in prepare")
    ready(driver)
    with pytest.raises(CallFailed):
        call(folder, claim)
    driver.communicate()
    driver = start(folder, server.kubeconfig)
    ready(driver)
    assert call(folder, claim, back=True).error == ""
    assert (folder / "deeds").read_text().endswith(f"prepare {claim.name}\nunprepare {claim.name}\n")
    driver.terminate()
    assert driver.wait(30) == 0
    driver.communicate()


def test_without_hardware_containers_are_told_their_devices(folder, server, claim):
    deeds = (folder / "deeds").read_text() if (folder / "deeds").exists() else ""
    driver = start(folder, server.kubeconfig, "--fake", "--metrics-port", "0", "--instance", "two")
    ready(driver)
    assert driver.stderr is not None
    assert any("metrics http://127.0.0.1:" in driver.stderr.readline() for _ in range(5))
    names = call(folder, claim, instance="two").devices[0].cdi_device_ids
    assert cdi.catalogue([folder / "cdi"]).edits(names).env == (f"DEVICE_GPU_0={NAME}/{NODE}/gpu-0",)
    assert call(folder, claim, instance="two", back=True).error == ""
    assert ((folder / "deeds").read_text() if (folder / "deeds").exists() else "") == deeds
    driver.terminate()
    assert driver.wait(30) == 0
    driver.communicate()


@pytest.mark.parametrize(
    ("flags", "status", "words"),
    [
        (["--node", ""], 2, "--node is needed"),
        (["--kubeconfig", "/no/such/file"], 1, "/no/such/file"),
        (["--root", "/proc/nowhere"], 1, "/proc/nowhere"),
        (["--metrics-port", "1"], 1, "--metrics-port: cannot listen on 127.0.0.1 port 1"),
    ],
)
def test_what_keeps_a_driver_from_working_is_one_line(folder, server, flags, status, words):
    if flags[0] == "--metrics-port" and os.geteuid() == 0:
        flags = ["--metrics-port", server.url.rpartition(":")[2]]
        words = f"--metrics-port: cannot listen on 127.0.0.1 port {flags[1]}"
    driver = start(folder, server.kubeconfig, *flags)
    _, said = driver.communicate(timeout=60)
    assert driver.returncode == status
    assert words in said and len(said.splitlines()) == 1, said


def test_what_went_wrong_with_a_claim_is_logged_for_programs_too(folder, server):
    driver = start(folder, server.kubeconfig, "--log-format", "json", "--instance", "three")
    ready(driver)
    missing = dra.Claim(NAMESPACE, "no-such-uid", "no-such-claim")
    why = call(folder, missing, instance="three").error
    driver.terminate()
    _, said = driver.communicate(timeout=60)
    lines = [json.loads(line) for line in said.splitlines()]
    (line,) = [one for one in lines if one.get("operation") == "prepare"]
    assert (line["driver"], line["claim"], line["level"]) == (NAME, f"{NAMESPACE}/no-such-claim", "warning")
    assert line["message"].endswith(why)


@pytest.mark.parametrize("which", ["service_socket", "registration_socket"])
def test_a_socket_that_cannot_be_served_ends_the_driver_with_its_name(server, which):
    """report gRPC serving error"""
    with TemporaryDirectory(prefix="dra") as path:
        taken = getattr(Places(NAME, Path(path)), which)
        taken.parent.mkdir(parents=True)
        taken.write_text("somebody else's")
        driver = start(Path(path), server.kubeconfig)
        _, said = driver.communicate(timeout=60)
        assert driver.returncode == 1
        why = f"cannot listen at {taken}: something that is not a socket is there"
        assert said.splitlines()[-1].endswith(why)
        assert taken.read_text() == "somebody else's"


def test_the_names_of_sockets_are_those_that_other_drivers_have():
    places = Places(NAME, Path("/var/lib/kubelet"))
    assert str(places.service_socket) == f"/var/lib/kubelet/plugins/{NAME}/dra.sock"
    assert str(places.registration_socket) == f"/var/lib/kubelet/plugins_registry/{NAME}-reg.sock"
    uid = "0a1b2c3d-0000-1111-2222-333344445555"
    rolling = Places(NAME, Path("/var/lib/kubelet"), instance=uid)
    assert rolling.service_socket.name == f"dra-{uid}.sock"
    assert rolling.registration_socket.name == f"{NAME}-{uid}-reg.sock"


@pytest.mark.parametrize("length", [20, 40, 63])
def test_the_name_of_a_registration_socket_fits_into_an_address(length):
    uid = "0a1b2c3d-0000-1111-2222-333344445555"
    path = Places("d" * length, Path("/var/lib/kubelet"), instance=uid).registration_socket
    assert len(bytes(path)) <= ADDRESS_BYTES_MAX
    assert path.name.endswith("-reg.sock")
