"""A whole cluster as a process, and people who do strange things to it.

`allot up` on SQLite: API server, controllers, scheduler and hollow nodes. Everybody comes over HTTPS
with the rights of their own:

    admin    everything
    editor   `edit` in one namespace
    node     the agent of one hollow node, by its certificate
    driver   a service account with the role of drivers, its token bound to a pod on that node
"""

import asyncio
import json
import os
import resource
import signal
import ssl
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from attacks import wire

from allot.apiserver import security

from .asking import ADMIN, DRIVER, EDITOR, NAMESPACES, NODE
from .requests import Sent
from .sound import THING

READY_S = 60.0
NODES = 3
_ADDRESSES_MAX = 4 * 1024**3
"""What the cluster may ever ask the machine for: whoever takes more has found something."""
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_GROUP = "rbac.authorization.k8s.io"
_QUOTA = {"pods": "100", "count/replicasets.apps": "200", "count/jobs.batch": "200"}
"""Without it one Deployment of two billion replicas, which is sound, is all that a round does. There
are more places on the nodes than all quotas together allow."""


class Failed(Exception):
    """What must not have happened, in words."""


class World:
    """Start it on a data directory as often as you like."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "up.log"
        self.people: dict[str, ssl.SSLContext] = {}
        self.token = ""
        self.nodes: list[str] = []
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    # -- the process ---------------------------------------------------------------------------------------

    async def start(self) -> float:
        """Seconds until it was ready."""
        began = time.monotonic()
        await asyncio.to_thread(self._start)
        try:
            await asyncio.wait_for(asyncio.to_thread(self._await_ready), READY_S)
        except TimeoutError:
            raise Failed(f"it was not ready after {READY_S:.0f} s: {self.said()[-600:]}") from None
        config = (self.folder / "data" / "kubeconfig").read_text()
        self.port = int(config.split('server: "', 1)[1].split('"', 1)[0].rpartition(":")[2])
        return time.monotonic() - began

    def _start(self) -> None:
        data = self.folder / "data"
        options = {
            "--data-dir": data,
            "--port": 0,
            "--nodes": NODES,
            "--fleet": "gpu",
            "--start-delay": "10ms",
        }
        command = [sys.executable, "-m", "allot.cli", "up"]
        command += [str(part) for option in options.items() for part in option]
        with self.log.open("a") as said:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True)
        resource.prlimit(self._process.pid, resource.RLIMIT_AS, (_ADDRESSES_MAX, _ADDRESSES_MAX))

    def _await_ready(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise Failed(f"it did not start: {self.said()[-1500:]}")

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def require_alive(self) -> None:
        if not self.alive():
            code = self._process.returncode if self._process is not None else None
            raise Failed(f"it ended by itself with {code}: {self.said()[-1500:]}")

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def peak_mb(self) -> float:
        """Of both processes together."""
        assert self._process is not None
        pid = self._process.pid
        pids = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
        lines = [line for one in pids for line in Path(f"/proc/{one}/status").read_text().splitlines()]
        return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))

    async def end(self, *, kindly: bool) -> None:
        """Ask it to stop, or kill it in the middle of whatever it does."""
        self.require_alive()
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM if kindly else signal.SIGKILL)
        try:
            code = await asyncio.to_thread(self._process.wait, 30)
        except subprocess.TimeoutExpired:
            raise Failed("it did not end within 30 s of being asked to") from None
        if kindly and code != 0:
            raise Failed(f"it ended with {code}: {self.said()[-1500:]}")

    def clear(self) -> None:
        if self.alive():
            assert self._process is not None
            self._process.kill()
            self._process.wait()

    # -- the people ----------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Make the people, and what they need."""
        authority = security.read_authority(self.folder / "data")
        assert authority is not None
        ca = self.folder / "ca.pem"
        ca.write_bytes(authority.ca.certificate)

        def person(user: str) -> ssl.SSLContext:
            groups = security.identities.well_known_groups(user)
            pair = authority.client(user, groups, datetime.now(UTC), timedelta(hours=2))
            path = self.folder / "person.pem"
            path.write_bytes(pair.certificate + pair.key)
            context = ssl.create_default_context(cafile=str(ca))
            context.load_cert_chain(path)
            os.unlink(path)
            return context

        self.people[ADMIN], self.people[EDITOR] = person("allot-admin"), person("editor")
        listed = await self.must("GET", "/api/v1/nodes")
        self.nodes = sorted(one["metadata"]["name"] for one in listed["items"])
        self.people[NODE] = person(f"system:node:{self.nodes[0]}")
        self.people[DRIVER] = ssl.create_default_context(cafile=str(ca))
        for namespace in (*NAMESPACES, "drivers"):
            await self.must("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            quota = {"metadata": {"name": "enough"}, "spec": {"hard": _QUOTA}}
            await self.must("POST", f"/api/v1/namespaces/{namespace}/resourcequotas", quota)
        await self._bind("rolebindings", NAMESPACES[0], "edit", {"kind": "User", "name": "editor"})
        await self.must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", THING)
        for number in range(2):
            selector = {"cel": {"expression": "device.driver == 'd.example.com'"}}
            made = {"metadata": {"name": f"c-{number}"}, "spec": {"selectors": [selector]}}
            await self.must("POST", "/apis/resource.k8s.io/v1/deviceclasses", made)
        await self._driver()

    async def _driver(self) -> None:
        account = {"kind": "ServiceAccount", "namespace": "drivers", "name": "driver"}
        await self.must(
            "POST", "/api/v1/namespaces/drivers/serviceaccounts", {"metadata": {"name": "driver"}}
        )
        await self._bind("clusterrolebindings", "", "allot:driver", account)
        container = {"name": "c", "image": "i"}
        spec = {"serviceAccountName": "driver", "nodeName": self.nodes[0], "containers": [container]}
        pod = {"metadata": {"name": "driver"}, "spec": spec}
        made = await self.must("POST", "/api/v1/namespaces/drivers/pods", pod)
        bound = {"kind": "Pod", "apiVersion": "v1", "name": "driver", "uid": made["metadata"]["uid"]}
        wanted = {"spec": {"boundObjectRef": bound, "expirationSeconds": 7200}}
        path = "/api/v1/namespaces/drivers/serviceaccounts/driver/token"
        self.token = (await self.must("POST", path, wanted))["status"]["token"]

    async def _bind(self, plural: str, namespace: str, role: str, subject: dict[str, str]) -> None:
        group = {} if subject["kind"] == "ServiceAccount" else {"apiGroup": _GROUP}
        content = {
            "metadata": {"name": f"fuzz-{role.replace(':', '-')}"},
            "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role},
            "subjects": [{**subject, **group}],
        }
        within = f"/namespaces/{namespace}" if namespace else ""
        await self.must("POST", f"{_RBAC}{within}/{plural}", content)

    # -- asking --------------------------------------------------------------------------------------------

    async def connect(self, actor: str) -> wire.Connection | None:
        return await wire.connected(self.port, self.people[actor])

    def request(self, sent: Sent) -> bytes:
        headers = [f"Authorization: Bearer {self.token}"] if sent.actor == DRIVER else []
        headers.append(f"Content-Length: {len(sent.body)}")
        return wire.request_head(sent.method, sent.path, sent.media, *headers) + sent.body

    async def must(self, method: str, path: str, content: Any = None) -> Any:
        """The administrator's request, which has to succeed."""
        answer = await self.ask(method, path, content)
        if not answer.said.startswith("2"):
            raise Failed(
                f"{method} {path} was answered {answer.said}: {answer.body[:400].decode(errors='replace')}"
            )
        return json.loads(answer.body) if answer.body[:1] in (b"{", b"[") else answer.body

    async def send(self, sent: Sent) -> wire.Answer:
        """Over a connection of its own."""
        connection = await self.connect(sent.actor)
        if connection is None:
            raise Failed(f"it lets nobody in any more: {self.said()[-600:]}")
        answer = await connection.ask(self.request(sent))
        connection.close()
        return answer

    async def ask(self, method: str, path: str, content: Any = None, actor: str = ADMIN) -> wire.Answer:
        body = b"" if content is None else wire.encoded(content)
        return await self.send(Sent(actor, method, path, body))
