"""What a person reads who starts the server in the wrong way."""

import logging
import socket
import subprocess
import sys
import threading
import time

import pytest

from allot.base import FileLock
from allot.cli.main import main
from e2e.process import ServerProcess, allot


def test_the_version_is_told():
    assert allot("--version").stdout.startswith("allot ")


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--port", "99999"], "not a port"),
        (["--port", "x"], "not a port"),
        (["--store", "floppy"], "expected memory, sqlite"),
        (["--feature-gates", "Nonsense=true"], "unknown feature gate"),
        (["--feature-gates", "DRAAdminAccess=false"], "locked"),
    ],
)
def test_a_wrong_flag_is_one_line_that_says_so(tmp_path, arguments, says):
    done = allot("apiserver", "--data-dir", str(tmp_path / "d"), *arguments)
    assert done.returncode in (1, 2)
    assert says in done.stderr.splitlines()[-1], done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = allot("apiserver", "--data-dir", str(tmp_path / "d"), "--port", port)
    assert done.returncode == 1
    where = f"cannot listen on 127.0.0.1 port {port}"
    assert done.stderr == f"allot apiserver: {where}: Address already in use (port 0 picks a free one)\n"


@pytest.mark.parametrize("kept", ["server.lock", "allot.db.lock"])
@pytest.mark.parametrize("command", ["apiserver", "up --nodes=0", "up --nodes=0 --one-process"])
def test_a_start_waits_a_moment_for_a_former_server_that_is_still_ending(tmp_path, command, kept):
    """Right after kill -9 none came up, now and then: whoever was killed keeps its locks until the kernel is
    done with its last write."""
    folder = tmp_path / "d"
    folder.mkdir(mode=0o700)
    former = FileLock(folder / kept)
    words = [*command.split(), "--data-dir", str(folder), "--port", "0"]
    with (tmp_path / "log").open("w") as log:
        starting = subprocess.Popen(
            [sys.executable, "-m", "allot.cli", *words], stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        while "waiting for its end" not in (tmp_path / "log").read_text():
            assert starting.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.01)
        former.release()
        assert starting.stdout.readline() == "ready\n", (tmp_path / "log").read_text()
    finally:
        starting.terminate()
        starting.wait(30)
        starting.stdout.close()


@pytest.mark.parametrize("command", ["apiserver", "up"])
def test_an_address_of_another_machine_is_one_line_and_leaves_no_lock(tmp_path, command):
    done = allot(command, "--data-dir", str(tmp_path / "d"), "--port", "0", "--host", "192.0.2.1")
    assert done.returncode == 1
    where = "cannot listen on 192.0.2.1 port 0: this is no address of this machine"
    assert done.stderr == f"allot {command}: {where}\n"
    assert not list((tmp_path / "d").glob("*.lock"))


def test_a_name_server_that_does_not_answer_is_not_waited_for(tmp_path, monkeypatch, capsys):
    """Neither to begin nor to end."""
    asked, answered = threading.Event(), threading.Event()

    def look_up(*arguments, **options):
        asked.set()
        answered.wait(60)
        raise OSError("too late")

    monkeypatch.setattr("allot.apiserver.serving.accepting.LOOK_UP_S", 0.2)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    command = ["apiserver", "--data-dir", str(tmp_path / "d"), "--port", "0", "--store", "memory"]
    began_s = time.monotonic()
    assert main([*command, "--host", "slow.example"]) == 1
    assert asked.is_set() and time.monotonic() - began_s < 30
    answered.set()
    where = "cannot listen on slow.example port 0"
    assert capsys.readouterr().err.endswith(
        f"allot apiserver: {where}: no name server has told its address\n"
    )


@pytest.mark.parametrize("command", ["apiserver", "up"])
def test_a_file_in_place_of_the_data_directory_is_said_to_be_none(tmp_path, command):
    (tmp_path / "d").write_text("mine")
    done = allot(command, "--data-dir", str(tmp_path / "d"), "--port", "0")
    assert done.returncode == 1
    assert done.stderr == f"allot {command}: {tmp_path / 'd'}: is there, and is no directory\n"


def test_a_store_that_is_away_is_said_to_be_waited_for(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("allot.store.etcd.connection.PATIENCE_S", 0.5)
    monkeypatch.setattr("allot.apiserver.serving.process.START_PATIENCE_S", 2.0)
    log = logging.getLogger("allot.store.etcd.connection")
    log.addHandler(caplog.handler)  # whatever other tests have made of the loggers above it
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound and not listening: nobody else will answer there either
        where = f"127.0.0.1:{nobody.getsockname()[1]}"
        assert main(["apiserver", "--data-dir", str(tmp_path / "d"), "--store", f"etcd://{where}"]) == 1
    log.removeHandler(caplog.handler)
    lines = {id(one): one.getMessage() for one in caplog.records}.values()  # a record may arrive both ways
    waiting = [line for line in lines if "does not answer, trying on" in line]
    assert len(waiting) == 1 and where in waiting[0]


@pytest.mark.parametrize("first, second", [("sqlite", "sqlite"), ("sqlite", "memory"), ("memory", "sqlite")])
def test_a_second_server_on_the_same_data_is_refused_and_touches_nothing(tmp_path, first, second):
    """With another store it took over kubeconfig and socket of the one that runs."""
    folder = tmp_path / "d"
    server = ServerProcess(folder, store=first)
    try:
        before = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in owned(folder)}
        done = allot("apiserver", "--data-dir", str(folder), "--port", "0", "--store", second)
        assert done.returncode == 1
        pid = server.process.pid
        expected = f"{folder} is in use by process {pid} (--data-dir names another)"
        told, refused = done.stderr.splitlines()
        assert told.endswith(f"{expected}: waiting for its end")
        assert refused == f"allot apiserver: {expected}"
        assert {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in owned(folder)} == before
    finally:
        assert server.stop() == 0


def owned(folder):
    """What belongs to the server that runs there, and does not change while nobody asks it anything."""
    return [folder / "kubeconfig", folder / "api.sock", folder / "server.lock", *(folder / "pki").iterdir()]


def test_a_data_directory_is_free_again_when_its_server_was_killed(tmp_path):
    server = ServerProcess(tmp_path / "d", store="memory")
    server.kill()
    server.start()
    assert server.stop() == 0


@pytest.mark.parametrize("command", ["apiserver", "up"])
@pytest.mark.parametrize(
    "name, spoil, says",
    [
        ("server.key", lambda path: path.chmod(0o644), "others can read {}: make it 0600"),
        ("authority.json", lambda path: path.chmod(0o604), "others can read {}: make it 0600"),
        ("authority.json", lambda path: path.write_text("{}"), "{} cannot be read"),
        ("authority.json", lambda path: path.write_bytes(b"\xff\x00"), "{} cannot be read"),
        ("server.crt", lambda path: (path.unlink(), path.mkdir()), "{}: Is a directory"),
    ],
)
def test_key_files_that_cannot_be_used_are_one_line(tmp_path, command, name, spoil, says):
    folder = tmp_path / "d"
    assert ServerProcess(folder, store="memory").stop() == 0
    path = folder / "pki" / name
    spoil(path)
    done = allot(command, "--data-dir", str(folder), "--port", "0", "--store", "memory")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"allot {command}: {says.format(path)}"), line
