"""allot credentials revoke, list and restore, against real servers that share an etcd."""

import subprocess
import sys

import pytest

from components import binary, etcd

from .process import Kubectl, ServerProcess


def credentials(server, *arguments, code=0):
    done = ran(server, *arguments)
    assert done.returncode == code and "Traceback" not in done.stderr, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def noted(server, *arguments):
    """What is said beside the answer."""
    done = ran(server, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stderr


def ran(server, *arguments):
    command = [
        sys.executable,
        "-m",
        "allot.cli",
        "credentials",
        *arguments,
        "--data-dir",
        str(server.data_dir),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def rows(server):
    return [line.split() for line in credentials(server, "list").splitlines()[1:]]


def kubectl_of(server, user, *more):
    path = credentials(server, user, *more, "--out", str(server.data_dir / f"{user}.conf")).strip()
    return Kubectl(binary("kubectl"), server.data_dir.parent / path)


@pytest.fixture
def pair(tmp_path):
    with etcd() as cluster:
        url = cluster.url()
        servers = [ServerProcess(tmp_path / name, url) for name in ("one", "two")]
        yield servers
        for server in servers:
            server.stop()


def test_a_user_is_put_out_of_every_server_and_let_in_again(pair):
    here, there = pair
    group = ("--group", "allot:cluster-admins")
    ann_here, ann_there = (kubectl_of(server, "ann", *group) for server in pair)
    ann_here("create", "configmap", "seen")
    watching = ann_there.start("get", "configmaps", "--watch", "-o", "name")
    try:
        assert watching.stdout.readline() == "configmap/seen\n"
        assert (
            credentials(here, "revoke", "ann", "--reason", "left\nus")
            == "every certificate of ann is revoked\n"
        )
        watching.wait(60)
    finally:
        watching.kill()
        watching.stdout.close()
    for kubectl in (ann_here, ann_there):
        assert "must be logged in" in kubectl("get", "namespaces", fails=True)
    assert rows(here)[-1][1:3] == ["ann", "allot:cluster-admins"]
    assert rows(here)[-1][-3:] == ["revoked:", "left", "us"]
    assert credentials(there, "revoke", "ann") == "every certificate of ann was revoked before\n"
    assert credentials(there, "restore", "ann") == "the certificates of ann count again\n"
    assert "default" in ann_there("get", "namespaces")
    assert "are not revoked" in credentials(here, "restore", "ann", code=1)


def test_one_certificate_is_taken_back_and_the_next_one_works(tmp_path):
    server = ServerProcess(tmp_path / "d", "memory")
    try:
        group = ("--group", "allot:cluster-admins")
        lost = kubectl_of(server, "ann", *group)
        (serial,) = [row[0] for row in rows(server) if row[1] == "ann"]
        spelled = ":".join(serial.upper().rjust(40, "0")[at : at + 2] for at in range(0, 40, 2))
        assert "is revoked" in credentials(server, "revoke", "--serial", spelled)
        assert "must be logged in" in lost("get", "namespaces", fails=True)
        found = kubectl_of(server, "ann", *group)
        assert "default" in found("get", "namespaces")
        assert [row[-1] for row in rows(server) if row[1] == "ann"] == ["revoked", "valid"]
    finally:
        server.stop()


@pytest.mark.parametrize("socket", ["--socket", "--no-socket"])
def test_the_administrator_who_revoked_themselves_gets_back_in(tmp_path, socket):
    """Break-glass: by the socket, or with a credential above all roles under another name."""
    server = ServerProcess(tmp_path / "d", "memory", 0, socket)
    try:
        admin = Kubectl(binary("kubectl"), server.kubeconfig)
        assert "is revoked" in credentials(server, "revoke", "allot-admin")
        assert "must be logged in" in admin("get", "namespaces", fails=True)
        if socket == "--socket":
            credentials(server, "restore", "allot-admin")
        else:
            assert "Unauthorized" in credentials(server, "restore", "allot-admin", code=1)
            fixer = kubectl_of(server, "fixer", "--group", "system:masters")
            fixer("delete", "credentialrevocations", "--all")
        assert "default" in admin("get", "namespaces")
    finally:
        server.stop()


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["revoke"], "revoke USER, or revoke --serial S"),
        (["revoke", "ann", "--serial", "1a"], "revoke USER, or revoke --serial S"),
        (["restore"], "restore USER, or restore --serial S"),
        (["revoke", "ann", "bob"], "one USER is wanted, not 'ann' 'bob'"),
        (["ann", "bob"], "one USER is wanted"),
        (["list", "ann"], "it takes no USER"),
        (["issue"], "whose credential?"),
        (["revoke", "ann"], "cannot reach the server at https://127.0.0.1:"),
    ],
)
def test_what_cannot_be_done_is_one_line(tmp_path, arguments, says):
    server = ServerProcess(tmp_path / "d", "memory")
    server.stop()
    said = credentials(server, *arguments, code=1)
    assert says in said and said.count("\n") == 1, said


def test_a_list_without_a_server_says_what_it_does_not_know(tmp_path):
    server = ServerProcess(tmp_path / "d", "memory")
    credentials(server, "ann", "--duration", "1h")
    server.stop()
    assert [row[1] for row in rows(server)] == ["allot-admin", "ann"]


def test_revoking_somebody_who_was_given_nothing_is_done_and_said(tmp_path):
    """A slip of the pen left the certificate that was meant valid, and the answer sounded like success."""
    server = ServerProcess(tmp_path / "d", "memory")
    try:
        credentials(server, "ann")
        assert noted(server, "revoke", "ann") == ""
        assert "has made no certificate of an (" in noted(server, "revoke", "an")
        assert "has made no certificate with the serial number 1a (" in noted(
            server, "revoke", "--serial", "1a"
        )
        assert sorted(row[1] for row in rows(server) if row[-1] == "revoked") == ["an", "ann", "revoked"]
    finally:
        server.stop()
