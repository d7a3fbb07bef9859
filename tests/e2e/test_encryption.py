"""Secrets in the store of a real server: what lies on the disk and in etcd, and who can still start."""

import asyncio
import base64
import os
import subprocess
import sys

import pytest

from components import etcd
from e2e.crashes import client_of
from e2e.process import ServerProcess

OPEN, HIDDEN = "an-open-marker-for-all-to-see", "a-hidden-marker-for-nobody-to-see"


@pytest.fixture(params=["sqlite", "etcd"])
def place(request, tmp_path):
    """(--store, the folder whose files hold what is stored)"""
    if request.param == "sqlite":
        yield "sqlite", tmp_path / "d"
        return
    with etcd() as cluster:
        yield cluster.url(), cluster.home


def new_key(path, *older):
    lines = [base64.b64encode(os.urandom(32)), *(file.read_bytes() for file in older)]
    path.write_bytes(b"\n".join(lines))
    path.chmod(0o600)
    return path


def files_with(folder, text):
    wanted = text.encode()
    files = [file for file in folder.rglob("*") if file.is_file() and "pki" not in file.parts]
    return sorted(file.name for file in files if wanted in file.read_bytes())


def secrets_of(server, use):
    async def story():
        client, transport = client_of(server)
        try:
            return await use(client.resource("", "v1", "secrets"))
        finally:
            await transport.close()

    return asyncio.run(story())


def write(server, name, text):
    """Something that anybody may find, and something that nobody may."""

    async def use(secrets):
        body = {"metadata": {"name": name, "labels": {"say": "x"}}, "stringData": {"key": text}}
        await secrets.create(body, "default")

    secrets_of(server, use)


def read(server, name):
    async def use(secrets):
        found = await secrets.get(name, "default")
        listed = await secrets.list("default")
        assert name in [one.name for one in listed.objects]
        return base64.b64decode(found.fields["data"]["key"]).decode()

    return secrets_of(server, use)


@pytest.fixture
def start(tmp_path):
    """Starts servers, and leaves none behind."""
    servers = []

    def started(store, *more, folder="d"):
        servers.append(ServerProcess(tmp_path / folder, store, 0, *more))
        return servers[-1]

    yield started
    for server in servers:
        if server.process.poll() is None:
            server.stop()


def refused_start(tmp_path, store, *more):
    command = [
        sys.executable,
        "-m",
        "allot.cli",
        "apiserver",
        "--data-dir",
        str(tmp_path / "d"),
        "--port",
        "0",
    ]
    done = subprocess.run([*command, "--store", store, *more], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stdout == "" and "Traceback" not in done.stderr, done.stderr
    return done.stderr.splitlines()[-1]


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def test_a_secret_is_not_found_where_it_is_stored_and_only_the_key_opens_it(tmp_path, place, start):
    store, folder = place
    key = new_key(tmp_path / "key")
    server = start(store, "--encryption-key", str(key))
    write(server, "one", HIDDEN)

    async def use_maps():
        client, transport = client_of(server)
        await client.resource("", "v1", "configmaps").create(
            {"metadata": {"name": "m"}, "data": {"key": OPEN}}, "default"
        )
        await transport.close()

    asyncio.run(use_maps())
    assert read(server, "one") == HIDDEN
    assert files_with(folder, OPEN)  # so we would find it
    assert files_with(folder, encoded(HIDDEN)) == files_with(folder, HIDDEN) == []
    server.kill()
    assert "no --encryption-key was given" in refused_start(tmp_path, store)
    other = new_key(tmp_path / "other")
    says = refused_start(tmp_path, store, "--encryption-key", str(other))
    assert "is encrypted with key" in says and "the key file has" in says
    server = start(store, "--encryption-key", str(key))
    assert read(server, "one") == HIDDEN
    server.stop()


def test_what_was_plain_is_rewritten_and_a_key_is_replaced(tmp_path, place, start):
    store, folder = place
    server = start(store)
    write(server, "one", HIDDEN)
    server.stop()
    assert files_with(folder, encoded(HIDDEN))
    first = new_key(tmp_path / "first")
    server = start(store, "--encryption-key", str(first), "--encryption-rewrite")
    assert read(server, "one") == HIDDEN
    write(server, "two", HIDDEN)
    server.stop()
    if store == "sqlite":  # of etcd's files etcd takes care: etcdctl defrag
        assert not files_with(folder, encoded(HIDDEN))
    both = new_key(tmp_path / "both", first)
    server = start(store, "--encryption-key", str(both), "--encryption-rewrite")
    server.stop()
    assert "is encrypted with key" in refused_start(tmp_path, store, "--encryption-key", str(first))
    second = tmp_path / "second"
    second.write_bytes(both.read_bytes().splitlines()[0])
    second.chmod(0o600)
    server = start(store, "--encryption-key", str(second))
    assert (read(server, "one"), read(server, "two")) == (HIDDEN, HIDDEN)
    server.stop()


def test_two_servers_share_secrets_and_the_authority_in_etcd(tmp_path, start):
    key = new_key(tmp_path / "key")
    with etcd() as cluster:
        url = cluster.url()
        servers = [start(url, "--encryption-key", str(key), folder=name) for name in "ab"]
        write(servers[0], "one", HIDDEN)
        assert read(servers[1], "one") == HIDDEN
        assert not files_with(cluster.home, "PRIVATE KEY") and not files_with(cluster.home, encoded(HIDDEN))
        for server in servers:
            server.stop()


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--encryption-rewrite"], "--encryption-rewrite needs --encryption-key"),
        (["--encryption-key", "{folder}/none"], "none: No such file or directory"),
        (["--encryption-key", "{folder}/short"], "line 1 is a key of 3 bytes: 32 are wanted"),
    ],
)
def test_a_key_that_cannot_be_used_is_one_line(tmp_path, arguments, says):
    (tmp_path / "short").write_bytes(b"YWJj")
    (tmp_path / "short").chmod(0o600)
    given = [argument.format(folder=tmp_path) for argument in arguments]
    assert says in refused_start(tmp_path, "sqlite", *given)
