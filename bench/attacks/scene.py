"""One attack: a fresh server, the people around it, and what came of it.

A class of attack is a function of a `Scene`. It prepares what it will send, then calls `begin`,
from where on the probe measures, and then it sends. Answers are counted, and what must never happen
is put down as `wrong`.

    mallory   attacks; may edit one namespace, as a user of a shared cluster may
    nobody    has a certificate and no rights
    stranger  has no certificate
    admin     prepares the scene
    alice     the probe; may edit another namespace
"""

import asyncio
import resource
import ssl
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from allot.apiserver import security
from apiserver import Server

from . import wire

NAMESPACE = "mallory"
HERE = f"/api/v1/namespaces/{NAMESPACE}"
RBAC = "rbac.authorization.k8s.io"
_ADDRESSES_MAX = 8 * 1024**3
"""What the server may ever ask the machine for: an attack that works shall not take the machine along."""
_SETTLE_S = 1.0
"""How long the probe goes on after the last answer: what was left behind may hold others too."""


class Unset(Exception):
    """The scene could not be set, so that nothing is known of the attack."""


@dataclass
class Scene:
    server: Server
    size: float  # 1 for the whole attack, less for a smaller one
    folder: Path
    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)  # by the probe
    _probe: "subprocess.Popen[str] | None" = None

    def __post_init__(self) -> None:
        authority = security.read_authority(self.server.data_dir)
        if authority is None:
            raise SystemExit(f"{self.server.data_dir} has no keys")
        self._authority = authority
        self._ca = self.folder / "ca.pem"
        self._ca.write_bytes(authority.ca.certificate)
        self.port = self.server.access()[0]
        self.stranger = ssl.create_default_context(cafile=str(self._ca))
        self.admin, self.mallory, self.nobody = map(self.person, ("allot-admin", "mallory", "nobody"))

    def of(self, count: int) -> int:
        """So many in the whole attack, fewer in a smaller one."""
        return max(1, round(count * self.size))

    def person(self, name: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self._ca))
        context.load_cert_chain(self._credential(name))
        return context

    def _credential(self, name: str) -> Path:
        groups = security.identities.well_known_groups(name)
        pair = self._authority.client(name, groups, datetime.now(UTC), timedelta(hours=1))
        path = self.folder / f"{name}.pem"
        path.write_bytes(pair.certificate + pair.key)
        return path

    # -- before --------------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """The namespaces and rights that every scene has."""
        for name in (NAMESPACE, "alice"):
            await self.made("/api/v1/namespaces", {"metadata": {"name": name}})
            await self.bind(name, "edit", name)

    async def made(self, path: str, content: dict[str, Any]) -> None:
        """By the administrator; must succeed."""
        await self.asked(wire.post(path, content))

    async def asked(self, request: bytes) -> wire.Answer:
        """The administrator's request; must succeed."""
        connection = await wire.Connection.open(self.port, self.admin)
        answer = await connection.ask(request)
        connection.close()
        if not answer.said.startswith("2"):
            raise Unset(f"{request[:80]!r} was answered {answer.said}: {answer.body[:400].decode()}")
        return answer

    async def bind(self, namespace: str, role: str, user: str) -> None:
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
        subject = {"apiGroup": RBAC, "kind": "User", "name": user}
        binding = {"metadata": {"name": f"{user}-{role}"}, "roleRef": reference, "subjects": [subject]}
        await self.made(f"/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings", binding)

    async def allow(self, group: str, resource: str) -> None:
        """Mallory may do everything with a resource of the whole cluster."""
        name = f"all-{resource}"
        rule = {"apiGroups": [group], "resources": [resource], "verbs": ["*"]}
        await self.made(f"/apis/{RBAC}/v1/clusterroles", {"metadata": {"name": name}, "rules": [rule]})
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
        subject = {"apiGroup": RBAC, "kind": "User", "name": "mallory"}
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
        await self.made(f"/apis/{RBAC}/v1/clusterrolebindings", binding)

    # -- the attack ----------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """From now on the probe measures."""
        if self._probe is not None:
            raise RuntimeError("the attack has begun already")
        options = {"--port": self.port, "--ca": self._ca, "--namespace": "alice"}
        options["--credential"] = self._credential("alice")
        command = [sys.executable, str(Path(__file__).with_name("probe.py"))]
        command += [str(part) for option in options.items() for part in option]
        await asyncio.to_thread(self._start, command)

    def _start(self, command: Sequence[str]) -> None:
        self._probe = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._probe.stdout is not None
        if self._probe.stdout.readline() != "ready\n":
            raise Unset("the probe did not start")

    async def bombard(
        self, who: ssl.SSLContext, requests: Sequence[bytes], connections: int = 1, seconds: float = 6.0
    ) -> None:
        """Every connection sends all requests, again and again until the time is over, and once at least."""
        until = time.monotonic() + seconds * self.size
        await asyncio.gather(*(self._volley(who, requests, until) for _ in range(connections)))

    async def _volley(self, who: ssl.SSLContext, requests: Sequence[bytes], until: float) -> None:
        connection: wire.Connection | None = None
        round_ = 0
        while round_ == 0 or time.monotonic() < until:
            for request in requests:
                if round_ and time.monotonic() > until:
                    break
                connection = connection or await wire.connected(self.port, who)
                answer = await connection.ask(request) if connection else wire.CUT
                self.answers[answer.reason] += 1
                if connection and (answer.said in ("cut", "silent") or _closes(answer)):
                    connection.close()
                    connection = None
                if connection is None or answer.said == "429":
                    await asyncio.sleep(0.02)  # a loop without a wait would measure the attacker
            round_ += 1
        if connection:
            connection.close()

    async def finish(self) -> None:
        """Let the probe go on for a moment, and hear what it saw."""
        if self._probe is None:
            raise RuntimeError("the attack never began")
        await asyncio.sleep(_SETTLE_S)
        said, _ = await asyncio.to_thread(self._probe.communicate, "end\n")
        self.seen = msgspec.json.decode(said)

    def stop(self) -> None:
        if self._probe is not None and self._probe.poll() is None:
            self._probe.kill()
            self._probe.wait()


def _closes(answer: wire.Answer) -> bool:
    return (wire.header(answer.head, b"connection") or "").lower() == "close"


@asynccontextmanager
async def scene(
    size: float, store: str = "sqlite", command: Sequence[str] = ("apiserver",)
) -> AsyncIterator[Scene]:
    """A fresh server; ended with all that was started, whatever happens."""
    with tempfile.TemporaryDirectory(prefix="allot-attack-") as name:
        folder = Path(name)
        server = Server(folder / "data", store, folder / "server.log", command)
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (_ADDRESSES_MAX, _ADDRESSES_MAX))
        made: Scene | None = None
        try:
            made = Scene(server, size, folder)
            await made.settle()
            yield made
        finally:
            if made is not None:
                made.stop()
            server.process.kill()
            server.process.wait()
