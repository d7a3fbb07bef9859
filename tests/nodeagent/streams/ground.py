"""A real API server, the agent's own server, and real kubectl; containers are what the test runs for them.

The agent has its real TLS, its real answers and its real protocols. What it runs is `Commands`, a runtime
that starts commands on this machine and keeps what became of them, so that a test can look.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime

from allot.api import Object
from allot.apiserver import ServingOptions, identities, serve
from allot.base import SystemClock
from allot.client import Client, Credential, HttpsTransport, kubeconfig
from allot.cluster import way_to_nodes
from allot.nodeagent import Attempt, serving
from allot.nodeagent.answering import Answering
from allot.nodeagent.registering import burden
from allot.nodeagent.runtimes.contract import Usage
from allot.nodeagent.using import Using
from components import binary

NODE, POD = "worker", "web"
WITHIN_S = 60


class Commands:
    """Runs commands on this machine, for whoever asks."""

    def __init__(self):
        self.began: list[asyncio.subprocess.Process] = []
        self.sizes: list[tuple[int, int]] = []
        self.sent = 0  # bytes that were taken from commands
        self.uses: list[Usage] = []

    async def stream(self, attempt, command, ends):
        process = await asyncio.create_subprocess_exec(
            *(command or ["cat"]),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        self.began.append(process)
        tasks = [
            asyncio.create_task(self._feed(process, ends)),
            asyncio.create_task(self._resize(ends)),
        ]
        try:
            await asyncio.gather(
                self._show(process.stdout, ends.write_out), self._show(process.stderr, ends.write_err)
            )
            return await process.wait()
        finally:
            for task in tasks:
                task.cancel()
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                await asyncio.gather(process.stdout.read(), process.stderr.read())  # else it never ends
                await process.wait()

    async def _feed(self, process, ends):
        if ends.stdin is not None:
            async for data in ends.stdin:
                process.stdin.write(data)
                await process.stdin.drain()
        process.stdin.close()

    async def _resize(self, ends):
        if ends.resizes is not None:
            async for size in ends.resizes:
                self.sizes.append(size)

    async def _show(self, pipe, write):
        while data := await pipe.read(65536):
            self.sent += len(data)
            await write(data)

    async def connect(self, pod_uid, port):
        return await asyncio.open_connection("127.0.0.1", port)

    async def usage(self):
        return self.uses


class Machine:
    """Where every container named `main` runs."""

    def running(self, uid, container):
        return Attempt(uid, container, 0, 1.0) if container == "main" else None


def _heeding_interrupts():
    """Also where whoever runs the tests in the background does not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Ground:
    def __init__(self, server, client, runtime, port, folder):
        self.server, self.client, self.runtime, self.port, self.folder = server, client, runtime, port, folder
        self.kubectl_binary = binary("kubectl")

    async def start(self, *arguments, kubeconfig=None, **more):
        """kubectl, as a process that the test may kill."""
        command = [self.kubectl_binary, "--kubeconfig", kubeconfig or self.server.kubeconfig, *arguments]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
        return await asyncio.create_subprocess_exec(
            *command, **{"preexec_fn": _heeding_interrupts, **pipes, **more}
        )

    async def kubectl(self, *arguments, input=b"", **more):
        """Its exit code, what it printed, and what it complained of."""
        process = await self.start(*arguments, **more)
        out, err = await asyncio.wait_for(process.communicate(input), WITHIN_S)
        return process.returncode, out, err.decode()


@asynccontextmanager
async def ground(folder, **options) -> AsyncIterator[Ground]:
    async with AsyncExitStack() as stack:
        server = await serve(ServingOptions(folder / "data", "memory", way_to_nodes=way_to_nodes, **options))
        stack.push_async_callback(server.close)
        transport = HttpsTransport(kubeconfig.load(server.kubeconfig))
        stack.push_async_callback(transport.close)
        client, runtime, clock = Client(transport), Commands(), SystemClock()
        pods = client.resource("", "v1", "pods")
        known: dict[tuple[str, str], Object] = {}
        using = Using(runtime, burden, clock)
        answering = Answering(lambda *which: known.get(which), Machine(), runtime, using, clock)
        user = identities.node(NODE)
        pair = server.authority.client(user.name, user.groups, datetime.now(UTC))
        credential = Credential(certificate=pair.certificate, key=pair.key)
        tls = serving.context(credential, server.authority.ca.certificate)
        port = await stack.enter_async_context(serving.served(answering.answer, "127.0.0.1", 0, tls))
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        nodes = client.resource("", "v1", "nodes", namespaced=False)
        await nodes.create({"metadata": {"name": NODE}, "status": status})
        spec = {"nodeName": NODE, "containers": [{"name": "main", "image": "x", "stdin": True}]}
        await pods.create({"metadata": {"name": POD, "labels": {"app": "web"}}, "spec": spec}, "default")
        running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        running["containerStatuses"] = [
            {
                "name": "main",
                "ready": True,
                "restartCount": 0,
                "image": "x",
                "imageID": "",
                "state": {"running": {}},
            }
        ]
        pod = await pods.patch(POD, {"status": running}, "default", subresource="status")
        known["default", POD] = pod
        yield Ground(server, client, runtime, port, folder)
        await until(lambda: all(process.returncode is not None for process in runtime.began))


def tell(folder, play, **options):
    async def whole():
        async with ground(folder, **options) as here:
            await play(here)

    asyncio.run(asyncio.wait_for(whole(), 3 * WITHIN_S))


async def until(is_so, within_s=30.0):
    deadline = asyncio.get_running_loop().time() + within_s
    while not is_so():
        assert asyncio.get_running_loop().time() < deadline, "it did not come to pass"
        await asyncio.sleep(0.02)


def memory_bytes():
    """What this process has in memory."""
    with open("/proc/self/statm") as sizes:
        return int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
