"""What reaches into a pod that runs: whom it is asked of, who may, and how many."""

import asyncio
import json

import pytest

from allot.api import Action, Request, Response, streams
from allot.apiserver import ApiServer, NodeAddress, identities
from allot.apiserver.subresources import inside
from allot.store import MemoryStore

from ..serving.ground import until

HANDSHAKE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-version": "13",
    "sec-websocket-protocol": "v5.channel.k8s.io",
}
HOLLOW = "pod web is on n1, a hollow node, where nothing really runs: "
POD = "/api/v1/namespaces/default/pods/web"


def a_pod_on(api, node, runtime, **metadata):
    status = {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}
    status |= {"nodeInfo": {"containerRuntimeVersion": runtime}} if runtime else {}
    assert api("POST", "/api/v1/nodes", {"metadata": {"name": node}, "status": status}).status == 201
    body = {
        "metadata": {"name": "web", **metadata},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "x"}]},
    }
    assert api("POST", "/api/v1/namespaces/default/pods", body).status == 201
    return POD


@pytest.mark.parametrize(
    "subresource, what",
    [
        ("exec", "run a command in (annotation hollow.allot.dev/exec would be printed)"),
        ("attach", "attach to"),
        ("portforward", "forward a port to"),
        ("proxy", "pass a request on to"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_on_a_hollow_node_there_is_nothing_to_reach(api, subresource, what, method):
    path = a_pod_on(api, "n1", "hollow://0.1")
    answer = api(method, f"{path}/{subresource}")
    assert answer.status == 400
    assert answer.body["message"] == f"{HOLLOW}there is no container to {what}"
    assert api(method, f"{path.replace('web', 'none')}/{subresource}").body["details"]["name"] == "none"
    assert api(method, f"{path}/{subresource}", user=identities.user("ann")).status == 403


def test_nothing_is_passed_on_to_a_pod(api):
    path = a_pod_on(api, "n1", "containerd://2.0")
    assert api("GET", f"{path}/proxy").body["message"] == (
        "this server has no way to pass a request on to pod web"
    )


def test_without_a_way_to_the_nodes_the_server_says_so(api):
    path = a_pod_on(api, "n1", "containerd://2.0")
    answer = api("POST", f"{path}/exec", stdout="true", command="ls")
    assert (answer.status, answer.body["message"]) == (503, "this server has no way to the nodes")


def test_what_is_not_there_has_details_as_clients_expect(api):
    """kubectl looks into them without asking."""
    path = a_pod_on(api, "n1", "")
    assert api("GET", "/apis/nothing/v1/things").body["details"] == {}
    assert api("GET", f"{path}/nonsense").body["details"] == {}


class Node:
    """An agent that agrees to everything, and talks until it is let go."""

    def __init__(self):
        self.asked: list[tuple[NodeAddress, Request]] = []
        self.may_end = asyncio.Event()

    async def forward(self, address, request):
        self.asked.append((address, request))
        if request.path == "/healthz":
            return Response(200, b"ok", "text/plain")
        return Response(101, headers=(("Sec-WebSocket-Accept", "x"),), talk=self._talk)

    async def _talk(self, link):
        await self.may_end.wait()


class Server:
    """With one pod on one node."""

    async def __aenter__(self):
        self.store, self.node = MemoryStore(), Node()
        self.api = ApiServer(self.store, forward=self.node.forward)
        await self.api.start()
        status = {
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 1234}},
        }
        await self.write("/api/v1/nodes", {"metadata": {"name": "n1"}, "status": status})
        spec = {"nodeName": "n1", "containers": [{"name": "main", "image": "x"}]}
        await self.write("/api/v1/namespaces/default/pods", {"metadata": {"name": "web"}, "spec": spec})
        return self

    async def __aexit__(self, *why):
        self.node.may_end.set()
        await self.api.close()
        await self.store.close()

    async def write(self, path, body):
        request = Request("POST", path, {}, {"content-type": "application/json"}, json.dumps(body).encode())
        assert (await self.api.handle(request, identities.ADMIN)).status == 201

    async def ask(self, way, query=(), user=identities.ADMIN, headers=HANDSHAKE, method="GET", **more):
        more.setdefault("source", "127.0.0.1")
        return await self.api.handle(Request(method, f"{POD}/{way}", dict(query), headers, **more), user)

    async def let(self, user, verbs, resource):
        rules = [{"apiGroups": [""], "resources": [resource], "verbs": verbs}]
        base = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
        await self.write(f"{base}/roles", {"metadata": {"name": user}, "rules": rules})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user}
        subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]
        body = {"metadata": {"name": user}, "roleRef": role, "subjects": subjects}
        await self.write(f"{base}/rolebindings", body)
        action = Action(verbs[-1], "", "pods", resource.partition("/")[2], "default", "web", "v1")
        await until(lambda: self.api.authorizer.authorize(identities.user(user), action).allowed)


def play(story):
    async def whole():
        async with Server() as server:
            await story(server)

    asyncio.run(asyncio.wait_for(whole(), 60))


def message(response):
    return json.loads(response.body)["message"]


def test_the_agent_is_asked_by_names_that_were_looked_up():
    """INSIDE3: only what the handshake needs, and the options that there are, goes on."""

    async def story(server):
        query = {"stdout": "true", "stdin": "1", "tty": "false", "command": "c", "evil": "x"}
        more = {"repeated": {"command": ["a", "b", "c"]}}
        headers = {**HANDSHAKE, "authorization": "Bearer secret", "impersonate-user": ""}
        headers.pop("impersonate-user")
        assert (await server.ask("exec", query, headers=headers, **more)).status == 101
        address, asked = server.node.asked[-1]
        assert address == NodeAddress("n1", "10.0.0.1", 1234)
        assert (asked.path, asked.query) == ("/exec/default/web/main", {"input": "1", "output": "1"})
        assert asked.values("command") == ["a", "b", "c"]
        assert "authorization" not in asked.headers
        assert (await server.ask("attach", {"stdout": "true"})).status == 101
        assert server.node.asked[-1][1].path == "/attach/default/web/main"
        assert (await server.ask("portforward")).status == 101
        assert server.node.asked[-1][1].path == "/portForward/default/web"

    play(story)


@pytest.mark.parametrize("way", ["exec", "attach", "portforward"])
def test_reading_is_not_enough_to_reach_into_a_pod(way):
    """INSIDE1: the handshake of a WebSocket is a GET, and what follows is no reading."""

    async def story(server):
        await server.let("reader", ["get"], f"pods/{way}")
        await server.let("doer", ["get", "create"], f"pods/{way}")
        query = {"stdout": "true", "command": "ls"}
        refused = await server.ask(way, query, user=identities.user("reader"))
        assert refused.status == 403
        assert f'cannot create resource "pods/{way}"' in message(refused)
        assert not server.node.asked
        assert (await server.ask(way, query, user=identities.user("doer"))).status == 101

    play(story)


def test_the_right_to_one_way_is_none_to_another():
    async def story(server):
        await server.let("doer", ["get", "create"], "pods/portforward")
        query = {"stdout": "true", "command": "ls"}
        for way in ("exec", "attach"):
            assert (await server.ask(way, query, user=identities.user("doer"))).status == 403
        assert (await server.ask("portforward", user=identities.user("doer"))).status == 101

    play(story)


@pytest.mark.parametrize(
    "query, why",
    [
        ({"command": "ls"}, "you must specify at least one of stdin, stdout, stderr"),
        ({"stdout": "true"}, "you must specify a command for the container"),
        (
            {"stdout": "true", "command": "ls", "container": "other"},
            "container other is not valid for pod web",
        ),
    ],
)
def test_a_question_that_makes_no_sense_is_not_passed_on(query, why):
    async def story(server):
        refused = await server.ask("exec", query)
        assert (refused.status, message(refused)) == (400, why)
        assert not server.node.asked

    play(story)


def test_an_older_protocol_is_answered_with_what_is_spoken_here():
    """kubectl falls back to it; the node is asked first whether it is there at all."""

    async def story(server):
        headers = {"connection": "Upgrade", "upgrade": "SPDY/3.1"}
        query = {"stdout": "true", "command": "ls"}
        refused = await server.ask("exec", query, method="POST", headers=headers)
        assert refused.status == 400 and "ask for a WebSocket" in message(refused)
        assert [request.path for _, request in server.node.asked] == ["/healthz"]

    play(story)


@pytest.mark.parametrize("source", ["", "socket, process 12"])
def test_only_https_carries_such_a_connection(source):
    async def story(server):
        refused = await server.ask("exec", {"stdout": "true", "command": "ls"}, source=source)
        assert refused.status == 400 and "over HTTPS" in message(refused)
        assert not server.node.asked

    play(story)


def test_what_an_agent_refuses_is_told_in_its_words():
    async def story(server):
        async def no(address, request):
            return Response(400, b"this node is tired\n", "text/plain")

        server.node.forward = no
        api = ApiServer(server.store, forward=no)
        await api.start()
        request = Request("GET", f"{POD}/portforward", {}, HANDSHAKE, source="127.0.0.1")
        refused = await api.handle(request, identities.ADMIN)
        assert (refused.status, message(refused)) == (400, "node n1: this node is tired")
        await api.close()

    play(story)


def test_one_user_has_half_of_the_places_and_gives_them_back(monkeypatch):
    """INSIDE2."""
    monkeypatch.setattr(inside, "OPEN_MAX", 4)
    monkeypatch.setattr(inside, "OPEN_PER_USER_MAX", 2)

    async def story(server):
        await server.let("doer", ["get", "create"], "pods/portforward")
        doer = identities.user("doer")
        opened = [await server.ask("portforward", user=doer) for _ in range(2)]
        talking = [asyncio.create_task(one.talk(None)) for one in opened]
        refused = await server.ask("portforward", user=doer)
        assert refused.status == 429 and "2 of one user" in message(refused)
        assert (await server.ask("portforward")).status == 101
        server.node.may_end.set()
        await asyncio.gather(*talking)
        assert (await server.ask("portforward", user=doer)).status == 101

    play(story)


class Client:
    """The client's end of a connection, in memory."""

    def __init__(self):
        self.got = b""

    async def read(self):
        return b""

    async def write(self, data):
        self.got += data


def test_a_pod_on_a_hollow_node_may_say_what_commands_print():
    async def story(server):
        info = {"nodeInfo": {"containerRuntimeVersion": "hollow://0.1"}}
        await server.write("/api/v1/nodes", {"metadata": {"name": "h"}, "status": info})
        spec = {"nodeName": "h", "containers": [{"name": "main", "image": "x"}]}
        said = {"hollow.allot.dev/exec": "GPU 0: A100"}
        pod = {"metadata": {"name": "played", "annotations": said}, "spec": spec}
        await server.write("/api/v1/namespaces/default/pods", pod)
        path = "/api/v1/namespaces/default/pods/played/exec"
        query = {"stdout": "true", "command": "nvidia-smi"}
        request = Request("GET", path, query, HANDSHAKE, source="127.0.0.1")
        answer = await server.api.handle(request, identities.ADMIN)
        assert answer.status == 101 and not server.node.asked
        client = Client()
        await answer.talk(client)
        pieces = streams.websocket.Inbox(masked=False).feed(client.got)
        assert pieces[0].data == b"\1GPU 0: A100\n"
        assert json.loads(pieces[1].data[1:])["status"] == "Success"

    play(story)


def test_a_pod_on_a_hollow_node_may_say_what_its_logs_are(api):
    path = a_pod_on(api, "n1", "hollow://0.1")
    said = f"{HOLLOW}it has no logs (annotation hollow.allot.dev/logs would be shown)"
    assert api("GET", f"{path}/log").body["message"] == said
    patch = {"metadata": {"annotations": {"hollow.allot.dev/logs": "step 1\nstep 2"}}}
    assert api("PATCH", path, patch, media="application/merge-patch+json").status == 200
    assert api("GET", f"{path}/log").body == "step 1\nstep 2\n"
