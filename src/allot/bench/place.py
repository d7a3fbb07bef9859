"""The control plane that is measured: the real API server on a durable store, in this
process or in one of its own, and a way to it for everybody who takes part.

    async with open_place("socket", "sqlite", data_dir, gates) as place:
        client = Client(place.connect(identities.SCHEDULER))

Whoever connects has an identity of its own and that identity's rights, in process and
over the server's socket by name, over HTTPS by a certificate of the cluster's authority.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from allot.api import Gates, Transport, User
from allot.apiserver import ApiServer, Options, security
from allot.base import SystemClock
from allot.client import (
    Access,
    Credential,
    Fixed,
    HttpsTransport,
    InProcessTransport,
    Server,
    Socket,
    kubeconfig,
)
from allot.store import StoreError, open_store

from .cores import kept_to, ours, shares

TRANSPORTS = ("inprocess", "socket", "https")
_LIFETIME = timedelta(days=1)
_READY_S = 60.0
_END_S = 30.0

Connect = Callable[[User], Transport]


@dataclass(frozen=True, slots=True)
class Place:
    connect: Connect
    server_pid: int | None  # None: this process


class NotReady(Exception):
    """The server's process did not come up; the message has what it said."""


@asynccontextmanager
async def open_place(
    transport: str, store: str, data_dir: Path, gates: Sequence[str]
) -> AsyncIterator[Place]:
    if transport == "inprocess":
        opened = _in_process(store, data_dir, gates)
    else:
        opened = _in_a_process_of_its_own(store, data_dir, gates, _WAYS[transport])
    async with opened as place:
        connected: list[Transport] = []

        def connect(user: User) -> Transport:
            connected.append(place.connect(user))
            return connected[-1]

        try:
            yield Place(connect, place.server_pid)
        finally:
            for one in connected:
                await one.close()


@asynccontextmanager
async def _in_process(store: str, data_dir: Path, gates: Sequence[str]) -> AsyncIterator[Place]:
    try:
        opened = open_store(store, data_dir)
    except (ValueError, StoreError) as wrong:
        raise NotReady(str(wrong)) from None
    options = Options(gates=Gates(dict.fromkeys(gates, True)), watch_loop=False, claims_with_pods=True)
    api = ApiServer(opened, options)
    try:
        await api.start()
        yield Place(lambda user: InProcessTransport(api.handle, user), None)
    finally:
        await api.close()
        await opened.close()


@asynccontextmanager
async def _in_a_process_of_its_own(
    store: str, data_dir: Path, gates: Sequence[str], way: Callable[[Path], Connect]
) -> AsyncIterator[Place]:
    command = [sys.executable, "-m", "allot.cli", "apiserver", "--port", "0", "--data-dir", str(data_dir)]
    command += ["--store", store, "--feature-gates", ",".join(f"{gate}=true" for gate in gates)]
    command += ["--claims-with-pods"]  # as `allot up` has it
    log = data_dir / "apiserver.log"
    cores = shares(ours())
    with log.open("wb") as said, kept_to(cores.server):
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=said
        )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(_READY_S):
            line = await process.stdout.readline()
        if line != b"ready\n":
            raise NotReady(log.read_text(errors="replace")[-2000:])
        with kept_to(cores.others):
            yield Place(way(data_dir), process.pid)
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(_END_S):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()


def _certified(data_dir: Path) -> Connect:
    server: Server = kubeconfig.load(data_dir / "kubeconfig").server
    authority = security.read_authority(data_dir)
    assert authority is not None, "the server has made its keys"

    def connect(user: User) -> Transport:
        groups = security.identities.well_known_groups(user.name)
        pair = authority.client(user.name, groups, SystemClock().now(), _LIFETIME)
        return HttpsTransport(Access(server, Fixed(Credential(certificate=pair.certificate, key=pair.key))))

    return connect


def _named(data_dir: Path) -> Connect:
    """Everybody over one connection, as components of one process would."""
    return Socket(data_dir / "api.sock").transport


_WAYS: dict[str, Callable[[Path], Connect]] = {"socket": _named, "https": _certified}
