"""Volumes of a pod on disk, with a server that answers as the story wants it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from allot.api import Object, encode, errors
from allot.base import MachineFiles, SystemClock
from allot.nodeagent.fields import Around
from allot.nodeagent.mounting import API_ACCESS, FailedMount, Sources, Volumes
from allot.nodeagent.views import Container, VolumeMount
from node.objects import pod

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
