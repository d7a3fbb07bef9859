"""The real programs that tests run against, and a real etcd to talk to.

`make components` fetches them. Where they cannot be had a test is skipped with that
reason, except where CI is set: there it fails, for a suite that silently leaves out
what it promises to try is worse than a red one.
"""

import asyncio
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

BIN = Path(__file__).parents[1] / ".cache" / "components" / "bin"
READY_S = 30.0


def binary(name: str) -> Path:
    """The path of a fetched program."""
    program = BIN / name
    if program.exists():
        return program
    reason = f"{name} is missing: run `make components`"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@dataclass
class Member:
    """One etcd process."""

    name: str
    command: Sequence[str]
    client: str  # HOST:PORT
    log: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None


@dataclass
class Etcd:
    members: list[Member]
    home: Path
    scheme_options: str = ""
    _names: Iterator[int] = field(default_factory=lambda: iter(range(1_000_000)))

    def url(self, prefix: str = "", members: Sequence[Member] | None = None) -> str:
        """For `open_store`; every call without a prefix gets a part of the key space of its own."""
        prefix = prefix or f"/test{next(self._names)}"
        return f"etcd://{','.join(m.client for m in members or self.members)}{prefix}{self.scheme_options}"

    def leader(self) -> Member:
        """The member that leads now."""
        from allot.store.etcd import Address
        from allot.store.etcd import allot_etcd_pb2 as pb
        from allot.store.etcd.connection import Connection, Method

        ask_status = Method("/etcdserverpb.Maintenance/Status", pb.StatusResponse)

        async def ask(member: Member) -> bool:
            connection = Connection(Address((member.client,)))
            try:
                status = await connection.read(ask_status, pb.StatusRequest())
            finally:
                await connection.close()
            return status.leader == status.header.member_id

        for member in self.members:
            if member.process is not None and asyncio.run(ask(member)):
                return member
        raise AssertionError("no member leads")


@contextmanager
def etcd(count: int = 1, extra: Sequence[str] = (), scheme: str = "http") -> Iterator[Etcd]:
    """A running etcd of `count` members on loopback, ended by process id."""
    program = binary("etcd")
    with tempfile.TemporaryDirectory(prefix="etcd-") as folder:
        cluster = Etcd(_members(program, Path(folder), count, extra, scheme), Path(folder))
        try:
            for member in cluster.members:
                member.start()
            for member in cluster.members:
                _await_ready(member)
            yield cluster
        finally:
            for member in cluster.members:
                member.kill()


def _members(program: Path, home: Path, count: int, extra: Sequence[str], scheme: str) -> list[Member]:
    ports = free_ports(2 * count)
    names = [f"m{i}" for i in range(count)]
    peers = ",".join(f"{name}=http://127.0.0.1:{ports[2 * i]}" for i, name in enumerate(names))
    members = []
    for i, name in enumerate(names):
        peer, client = f"http://127.0.0.1:{ports[2 * i]}", f"127.0.0.1:{ports[2 * i + 1]}"
        options = {
            "name": name,
            "data-dir": home / name,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "listen-client-urls": f"{scheme}://{client}",
            "advertise-client-urls": f"{scheme}://{client}",
            "initial-cluster": peers,
            "log-level": "error",
        }
        command = [str(program), *(f"--{key}={value}" for key, value in options.items()), *extra]
        members.append(Member(name, command, client, home / f"{name}.log"))
    return members


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on."""
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


def _await_ready(member: Member) -> None:
    host, port = member.client.split(":")
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        assert member.process is not None
        assert member.process.poll() is None, f"etcd ended: {member.log.read_text()[-2000:]}"
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.02)
    raise AssertionError(f"etcd is not ready: {member.log.read_text()[-2000:]}")
