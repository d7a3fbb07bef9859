"""Volumes of a pod on disk, with a server that answers as the story wants it."""

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from allot.api import Object, encode, errors
from allot.base import MachineFiles, SystemClock, mounts
from allot.nodeagent.fields import Around
from allot.nodeagent.mounting import API_ACCESS, FailedMount, Sources, Volumes
from allot.nodeagent.views import Container, VolumeMount
from node.objects import pod
from rights import needs_root

AROUND = Around("10.0.0.1")
MAIN = Container(name="main")
ANSWER = {"status": {"token": "t0ken", "expirationTimestamp": "2099-01-01T00:00:00Z"}}


class Server:
    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), list[tuple[str, int]]()

    async def lookup(self, plural: str, namespace: str, name: str) -> Object:
        raise errors.NotFound(f'{plural} "{name}" not found')

    async def token(self, pod: Object, audience: str, seconds: int) -> Object:
        self.asked.append((audience, seconds))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Object(encode(answer))


def volumes(root: Path, server: Server) -> Volumes:
    sources = Sources(server.lookup, server.token, b"authority")
    return Volumes(root, MachineFiles(), sources, SystemClock())


def account(**spec: Any) -> Object:
    return pod(spec={"serviceAccountName": "robot", **spec})


def test_the_token_of_the_account_is_mounted_and_asked_for_once(tmp_path):
    server = Server(ANSWER)
    made = volumes(tmp_path, server)
    for _ in range(2):
        asyncio.run(made.make(account(), AROUND))
    (mount,) = made.mounts(account(), MAIN, {})
    assert (mount.container_path, mount.read_only, mount.is_optional) == (API_ACCESS, True, True)
    where = Path(mount.host_path)
    assert {one: (where / one).read_text() for one in ("token", "ca.crt", "namespace")} == {
        "token": "t0ken",
        "ca.crt": "authority",
        "namespace": "default",
    }
    assert server.asked == [("", 3607)]


@pytest.mark.parametrize("answer", [errors.Forbidden("no"), errors.NotFound("none"), errors.BadRequest("?")])
def test_where_the_server_issues_no_token_a_pod_starts_without(tmp_path, answer):
    made = volumes(tmp_path, Server(answer))
    asyncio.run(made.make(account(), AROUND))
    assert made.mounts(account(), MAIN, {}) == ()


def test_a_pod_waits_for_a_server_that_is_away(tmp_path):
    made = volumes(tmp_path, Server(errors.Unavailable("away"), ANSWER))
    with pytest.raises(FailedMount, match="away"):
        asyncio.run(made.make(account(), AROUND))
    asyncio.run(made.make(account(), AROUND))
    assert len(made.mounts(account(), MAIN, {})) == 1


def test_a_token_that_the_pod_asks_for_is_waited_for(tmp_path):
    token = {"serviceAccountToken": {"path": "token"}}
    asks = account(
        automountServiceAccountToken=False,
        volumes=[{"name": "v", "projected": {"sources": [token]}}],
    )
    with pytest.raises(FailedMount, match='volume "v" : no'):
        asyncio.run(volumes(tmp_path, Server(errors.Forbidden("no"))).make(asks, AROUND))


def test_who_mounts_something_there_or_wants_nothing_gets_no_token(tmp_path):
    server = Server()
    made = volumes(tmp_path, server)
    own = Container(name="main", volume_mounts=(VolumeMount(name="v", mount_path=f"{API_ACCESS}/"),))
    nobody = account(automountServiceAccountToken=False)
    asyncio.run(made.make(nobody, AROUND))
    assert made.mounts(nobody, MAIN, {}) == () and server.asked == []
    one = account(volumes=[{"name": "v", "emptyDir": {}}])
    assert [mount.container_path for mount in made.mounts(one, own, {})] == [f"{API_ACCESS}/"]


def empty(**more: Any) -> Object:
    limit = {"resources": {"limits": {"memory": "64Mi"}}}
    return pod(
        spec={
            "volumes": [{"name": "v", "emptyDir": more}],
            "containers": [{"name": "main", **limit}],
        }
    )


@needs_root("only root mounts")
@pytest.mark.parametrize(("limit", "bytes_max"), [({"sizeLimit": "1Mi"}, 2**20), ({}, 64 * 2**20)])
def test_a_volume_in_memory_is_no_larger_than_it_may_and_goes_with_its_pod(tmp_path, limit, bytes_max):
    made, asked = volumes(tmp_path, Server()), empty(medium="Memory", **limit)
    asyncio.run(made.make(asked, AROUND))
    where = tmp_path / asked.uid / "volumes" / "v"
    try:
        (where / "kept").write_text("x")
        asyncio.run(volumes(tmp_path, Server()).make(asked, AROUND))  # another agent
        assert (where / "kept").exists(), "mounted once"
        found = os.statvfs(where)
        assert found.f_blocks * found.f_frsize == bytes_max
        assert where.stat().st_mode & 0o777 == 0o777
        assert asyncio.run(made.oversized(asked)) == ""
    finally:
        asyncio.run(made.remove(asked.uid))
    assert mounts.mounts_at(tmp_path) == [] and not (tmp_path / asked.uid).exists()


def test_a_volume_that_cannot_be_in_memory_is_on_disk_and_that_is_said_once(tmp_path, monkeypatch, caplog):
    def refuse(path: Path, mode: int, size: int | None) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(mounts, "mount_memory", refuse)
    made, asked = volumes(tmp_path, Server()), empty(medium="Memory", sizeLimit="10Ki")
    for _ in range(2):
        asyncio.run(made.make(asked, AROUND))
    assert [one for one in caplog.messages if "volume v of pod" in one and "lies on disk" in one] == [
        caplog.messages[0]
    ]
    (tmp_path / asked.uid / "volumes" / "v" / "x").write_bytes(bytes(20_000))
    assert "more than its sizeLimit of 10240" in asyncio.run(made.oversized(asked)), "disk has no wall"


def test_a_medium_that_this_node_does_not_have_is_an_error(tmp_path):
    with pytest.raises(FailedMount, match="no medium HugePages"):
        asyncio.run(volumes(tmp_path, Server()).make(empty(medium="HugePages"), AROUND))


def test_what_lies_in_a_volume_counts_wherever_it_lies_and_links_are_not_followed(tmp_path):
    made, asked = volumes(tmp_path, Server()), empty(sizeLimit="100Ki")
    asyncio.run(made.make(asked, AROUND))
    where = tmp_path / asked.uid / "volumes" / "v"
    (where / "a" / "b").mkdir(parents=True)
    (tmp_path / "large").write_bytes(bytes(2**20))
    (where / "a" / "link").symlink_to(tmp_path / "large")
    (where / "a" / "round").symlink_to(where)
    assert asyncio.run(made.oversized(asked)) == ""
    (where / "a" / "b" / "file").write_bytes(bytes(200_000))
    assert "emptyDir" in asyncio.run(made.oversized(asked))


@needs_root("only root mounts")
def test_what_somebody_else_mounted_in_a_volume_is_unmounted_and_not_deleted(tmp_path):
    """A privileged container may have, and left it."""
    made, asked = volumes(tmp_path, Server()), empty()
    asyncio.run(made.make(asked, AROUND))
    theirs, inside = tmp_path / "theirs", tmp_path / asked.uid / "volumes" / "v" / "in side"
    theirs.mkdir()
    (theirs / "precious").write_text("x")
    inside.mkdir()
    subprocess.run(["mount", "--bind", theirs, inside], check=True)
    asyncio.run(made.remove(asked.uid))
    assert (theirs / "precious").exists()
    assert mounts.mounts_at(tmp_path) == [] and not (tmp_path / asked.uid).exists()
