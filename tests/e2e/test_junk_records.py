"""Records of the store that are junk: written by a hand that is not ours, or by a failing disk."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from allot.api import errors
from allot.client import Client
from e2e.process import ServerProcess
from e2e.test_sick_machine import log_of, readiness, with_client

PREFIX = "/objects/core/"
NAMES = {"configmaps": "default/good", "serviceaccounts": "default/robot", "namespaces": "kube-public"}


def garble(content: bytes) -> bytes:
    """In the middle: what begins and ends well need not be well."""
    middle = len(content) // 2
    return content[: middle - 10] + b"\x00\xff\x00\xff\x00\xff" + content[middle:]


JUNK: dict[str, Callable[[bytes], object]] = {
    "bytes": lambda content: b"\x00\x01\xff junk",
    "text": lambda content: "junk",
    "a number": lambda content: 7,
    "nothing": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "garbled": garble,
    "another thing": lambda content: b"[1, 2]",
}


def spoil(file: Path, key: str, junk: Callable[[bytes], object]) -> None:
    with sqlite3.connect(file) as db:
        (content,) = db.execute("SELECT value FROM log WHERE key = ? ORDER BY id DESC", [key]).fetchone()
        db.execute("UPDATE log SET value = ? WHERE key = ?", [junk(content), key])
    db.close()


@pytest.mark.parametrize("junk", JUNK)
def test_a_server_comes_up_beside_a_record_that_is_junk(tmp_path: Path, junk: str):
    """It hung at its start, and said nothing."""
    server = ServerProcess(tmp_path / "d")

    async def furnish(client: Client) -> None:
        for name in ("bad", "good"):
            await client.resource("", "v1", "configmaps").create(
                {"metadata": {"name": name}, "data": {"x": "." * 100}}, "default"
            )
        await client.resource("", "v1", "secrets").create({"metadata": {"name": "bad"}}, "default")

    with_client(server, furnish)
    assert server.stop() == 0
    spoilt = ["configmaps/default/bad", "secrets/default/bad"]
    for name in spoilt:
        spoil(server.data_dir / "allot.db", PREFIX + name, JUNK[junk])
    server.start()

    async def look(client: Client) -> None:
        for plural in ("configmaps", "secrets"):
            resource = client.resource("", "v1", plural)
            with pytest.raises(errors.Internal, match=f"{PREFIX}{plural}/default/bad"):
                await resource.get("bad", "default")
            for _ in range(2):
                listed = [one.name for one in (await resource.list("default")).objects]
                assert "bad" not in listed
        assert "good" in [
            one.name for one in (await client.resource("", "v1", "configmaps").list("default")).objects
        ]
        said = await readiness(client)
        for name in spoilt:
            assert PREFIX + name in said
        made = await client.resource("", "v1", "configmaps").create({"metadata": {"name": "new"}}, "default")
        assert made.name == "new"
        with pytest.raises(errors.ApiError):
            await client.resource("", "v1", "configmaps").create({"metadata": {"name": "bad"}}, "default")

    with_client(server, look)
    assert server.stop() == 0
    for name in spoilt:
        assert sum(PREFIX + name in line for line in log_of(server)) == 1, log_of(server)
    with sqlite3.connect(server.data_dir / "allot.db") as db:
        assert db.execute("SELECT count(*) FROM log WHERE key LIKE '%/bad'").fetchone() == (2,), (
            "nothing is deleted"
        )
    db.close()


@pytest.mark.parametrize("kind", ["namespaces/kube-public", "serviceaccounts/default/robot"])
def test_not_even_what_the_server_plants_itself_keeps_it_from_starting(tmp_path: Path, kind: str):
    server = ServerProcess(tmp_path / "d")

    async def furnish(client: Client) -> None:
        await client.resource("", "v1", "serviceaccounts").create({"metadata": {"name": "robot"}}, "default")

    with_client(server, furnish)
    server.stop()
    spoil(server.data_dir / "allot.db", PREFIX + kind, JUNK["bytes"])
    server.start()
    assert PREFIX + kind in with_client(server, readiness)
    server.stop()


@pytest.mark.parametrize("harm", ["junk", "hole", "gap", "key", "truncated"])
def test_a_file_that_is_damaged_is_one_line_and_a_status(tmp_path: Path, harm: str):
    server = ServerProcess(tmp_path / "d")
    server.stop()
    file = server.data_dir / "allot.db"
    content = bytearray(file.read_bytes())
    match harm:
        case "junk":
            file.write_bytes(b"junk" * 10_000)
        case "hole":
            content[8192 * 2 : 8192 * 5] = b"\xee" * (8192 * 3)
            file.write_bytes(content)
        case "truncated":
            file.write_bytes(content[: len(content) // 2])
        case "gap":
            change(file, "DELETE FROM log WHERE id = (SELECT max(id) - 65536 * 5 FROM log)")
        case "key":
            change(file, "UPDATE log SET key = x'ff00' WHERE id = (SELECT max(id) FROM log)")
    done = subprocess.run(
        [sys.executable, "-m", "allot.cli", "apiserver", "--data-dir", str(server.data_dir), "--port", "0"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("allot apiserver: ") and str(file) in line, line


def change(file: Path, statement: str) -> None:
    with sqlite3.connect(file) as db:
        assert db.execute(statement).rowcount == 1
    db.close()
