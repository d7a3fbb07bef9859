"""Logs travel from the node's agent through the API server to the reader."""

import asyncio
import ssl
from datetime import UTC, datetime
from urllib.parse import urlencode

import pytest

from allot.api import Request, errors
from allot.apiserver import Authority, NodeAddress, ServingOptions, identities, serve
from allot.base import SystemClock
from allot.client import Client, HttpsTransport, kubeconfig
from allot.cluster import way_to_nodes

LOG = b"one\ntwo\nthree\n"
PASSED_ON = {
    "follow": "true",
    "previous": "true",
    "sinceSeconds": "60",
    "sinceTime": "2026-05-01T12:00:00Z",
    "timestamps": "true",
    "limitBytes": "100",
    "stream": "Stderr",
}
"""What kubectl may ask for besides the last lines."""


class Agent:
    """What an agent on a node does with a question for logs, over TLS that both sides verify."""

    def __init__(self, authority: Authority, folder) -> None:
        user = identities.node("n1")
        pair = authority.client(user.name, user.groups, datetime.now(UTC))
        pem = folder / "agent.pem"
        pem.write_bytes(pair.certificate + pair.key)
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(pem)
        self._context.load_verify_locations(cadata=authority.ca.certificate.decode())
        self._context.verify_mode = ssl.CERT_REQUIRED
        self.refuses = b""
        self.asked: list[str] = []
        self.callers: list[str] = []

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, ssl=self._context)
        return self._server.sockets[0].getsockname()[1]

    async def _answer(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        status, said = (b"200 OK", LOG) if not self.refuses else (b"400 Bad Request", self.refuses)
        self.asked.append(head.split(b" ")[1].decode())
        subject = writer.get_extra_info("ssl_object").getpeercert()["subject"]
        self.callers += [value for part in subject for name, value in part if name == "commonName"]
        writer.write(
            b"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % (status, len(said))
            + said
        )
        await writer.drain()
        writer.close()

    async def close(self) -> None:
        self._server.close()
        await self._server.wait_closed()


def test_logs_are_asked_of_the_node_that_runs_the_pod(tmp_path):
    async def story():
        serving = await serve(ServingOptions(tmp_path / "data", "memory", way_to_nodes=way_to_nodes))
        agent = Agent(serving.authority, tmp_path)
        port = await agent.start()
        transport = HttpsTransport(kubeconfig.load(serving.kubeconfig))
        client = Client(transport)
        nodes, pods = (
            client.resource("", "v1", name, namespaced=name == "pods") for name in ("nodes", "pods")
        )
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        await nodes.create({"metadata": {"name": "n1"}, "status": status})
        containers = [{"name": "main", "image": "app:1"}, {"name": "side", "image": "app:1"}]
        for name, spec in (("web", {"nodeName": "n1"}), ("waiting", {})):
            body = {"metadata": {"name": name}, "spec": {**spec, "containers": containers}}
            await pods.create(body, "default")

        path = "/api/v1/namespaces/default/pods/web/log"
        answer = await client.send("GET", path, {"container": "main", "tailLines": "3"})
        assert answer.body == LOG
        assert agent.asked == ["/containerLogs/default/web/main?tailLines=3"]
        assert agent.callers == ["allot:apiserver-to-node"]
        for name, value in PASSED_ON.items():
            await client.send("GET", path, {"container": "side", name: value, "pretty": "true"})
            assert agent.asked[-1] == f"/containerLogs/default/web/side?{urlencode({name: value})}"

        for wrong, query in (
            (path, {}),
            (path, {"container": "other"}),
            (path.replace("web", "waiting"), {"container": "main"}),
        ):
            with pytest.raises(errors.BadRequest):
                await client.send("GET", wrong, query)
        agent.refuses = b"it has not run"
        for query in ({"container": "main"}, {"container": "main", "follow": "true"}):
            with pytest.raises(errors.BadRequest, match=r"^node n1: it has not run$"):
                await client.send("GET", path, query)
        await agent.close()
        with pytest.raises((errors.Unavailable, errors.Timeout)):
            await client.send("GET", path, {"container": "main"}, wait_when_busy=False)
        await transport.close()
        await serving.close()

    asyncio.run(story())


@pytest.mark.parametrize(
    "answer, status, says",
    [
        (b"nonsense\r\n\r\n", 503, "it does not speak HTTP: 'nonsense'"),
        (b"", 503, "cannot reach the agent"),
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 6\r\n\r\ntired\n", 400, "node n1: tired"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "node n1: ok"),
    ],
    ids=["junk", "nothing", "refusal", "no upgrade"],
)
def test_an_agent_that_does_not_agree_is_told_of(tmp_path, answer, status, says):
    """exec asks it for a WebSocket; whatever else it says is an error that names it."""

    class Odd(Agent):
        async def _answer(self, reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
            writer.close()

    async def story():
        serving = await serve(ServingOptions(tmp_path / "data", "memory", way_to_nodes=way_to_nodes))
        agent = Odd(serving.authority, tmp_path)
        forward = way_to_nodes(serving.authority, SystemClock())
        handshake = {"connection": "Upgrade", "upgrade": "websocket"}
        address = NodeAddress("n1", "127.0.0.1", await agent.start())
        try:
            found = await forward(address, Request("GET", "/exec/a/b/c", headers=handshake))
            assert (
                found.talk is None and found.status == status and says.endswith(found.body.decode().strip())
            )
        except errors.Unavailable as refused:
            assert status == 503 and says in str(refused)
        await agent.close()
        await serving.close()

    asyncio.run(story())
