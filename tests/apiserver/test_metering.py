"""metrics.k8s.io: what nodes and pods use, from their agents or from what hollow pods say."""

import asyncio
import json

import pytest

from allot.api import Action, Request, Response, errors, usage
from allot.apiserver import ApiServer, identities
from allot.store import MemoryStore

from .serving.ground import until

BASE = "/apis/metrics.k8s.io/v1beta1"


class Server:
    def __init__(self):
        self.said: dict[str, usage.Machine | Exception] = {}
        self.asked: list[str] = []

    async def __aenter__(self):
        self.store = MemoryStore()
        self.api = ApiServer(self.store, forward=self._forward)
        await self.api.start()
        return self

    async def __aexit__(self, *why):
        await self.api.close()
        await self.store.close()

    async def _forward(self, address, request):
        assert request.path == "/usage"
        self.asked.append(address.node)
        said = self.said[address.node]
        if isinstance(said, Exception):
            raise said
        return Response(200, usage.encode(said))

    async def write(self, path, body, method="POST", sub=""):
        media = "application/json" if method == "POST" else "application/merge-patch+json"
        request = Request(method, path, {}, {"content-type": media}, json.dumps(body).encode())
        response = await self.api.handle(request, identities.ADMIN)
        assert response.status in (200, 201), response.body
        return json.loads(response.body)

    async def node(self, name, runtime="process://1"):
        status = {
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"containerRuntimeVersion": runtime},
        }
        await self.write(
            "/api/v1/nodes", {"metadata": {"name": name, "labels": {"at": name}}, "status": status}
        )
        await self.known("nodes", name, lambda fields: True)

    async def pod(self, name, node, phase="Running", containers=("main",), **metadata):
        spec = {"nodeName": node, "containers": [{"name": one, "image": "x"} for one in containers]}
        path = "/api/v1/namespaces/default/pods"
        made = await self.write(path, {"metadata": {"name": name, **metadata}, "spec": spec})
        await self.write(f"{path}/{name}/status", {"status": {"phase": phase}}, "PATCH")
        await self.known("pods", name, lambda fields: fields["status"].get("phase") == phase)
        return made["metadata"]["uid"]

    async def known(self, plural, name, is_so):
        """The caches hear of what was written a moment later."""
        cache = await self.api.caches.of(self.api.registry.kind("", plural))
        await until(lambda: any(one.name == name and is_so(one.fields) for one in cache.objects.values()))

    async def get(self, path, user=identities.ADMIN, method="GET", **query):
        response = await self.api.handle(Request(method, f"{BASE}{path}", query), user)
        warnings = [value for name, value in response.headers if name == "Warning"]
        return response.status, json.loads(response.body), warnings


def play(story):
    async def whole():
        async with Server() as server:
            await story(server)

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_nodes_and_pods_use_what_their_agents_say():
    async def story(server):
        await server.node("n1")
        uid = await server.pod("web", "n1", labels={"app": "web"})
        await server.pod("quiet", "n1")
        containers = (usage.Container(uid, "main", 250_000_000, 10 << 20),)
        server.said["n1"] = usage.Machine("2026-05-01T12:00:00Z", 15.0, 1_500_000_000, 4 << 30, containers)
        _, listed, warnings = await server.get("/nodes")
        assert listed["kind"] == "NodeMetricsList" and warnings == []
        [node] = listed["items"]
        assert node["metadata"]["name"] == "n1" and node["metadata"]["labels"] == {"at": "n1"}
        assert node["usage"] == {"cpu": "1500m", "memory": "4Gi"}
        assert (node["timestamp"], node["window"]) == ("2026-05-01T12:00:00Z", "15.000s")
        _, listed, _ = await server.get("/namespaces/default/pods")
        [pod] = listed["items"]  # of the other one the agent says nothing
        assert (pod["metadata"]["name"], pod["metadata"]["namespace"]) == ("web", "default")
        assert pod["containers"] == [{"name": "main", "usage": {"cpu": "250m", "memory": "10Mi"}}]
        assert server.asked == ["n1"]  # once: what was just said is good for a while
        assert (await server.get("/namespaces/default/pods/web"))[1]["kind"] == "PodMetrics"
        assert (await server.get("/nodes/n1"))[1]["kind"] == "NodeMetrics"
        status, refused, _ = await server.get("/namespaces/default/pods/quiet")
        assert (status, refused["reason"]) == (404, "NotFound")

    play(story)


def test_only_what_is_asked_for_is_shown_and_only_its_nodes_are_asked():
    async def story(server):
        for name in ("n1", "n2"):
            await server.node(name)
            uid = await server.pod(f"on-{name}", name, labels={"on": name})
            server.said[name] = usage.Machine(
                "t", 1.0, 1, 1, (usage.Container(uid, "main", 1_000_000, 1 << 20),)
            )
        _, listed, _ = await server.get("/pods", labelSelector="on=n2")
        assert [one["metadata"]["name"] for one in listed["items"]] == ["on-n2"]
        assert server.asked == ["n2"]
        _, listed, _ = await server.get("/pods", fieldSelector="metadata.name=on-n1")
        assert [one["metadata"]["name"] for one in listed["items"]] == ["on-n1"]
        _, listed, _ = await server.get("/namespaces/other/pods")
        assert listed["items"] == []
        assert (await server.get("/pods", fieldSelector="spec.nodeName=n1"))[0] == 400

    play(story)


def test_an_agent_that_does_not_answer_costs_what_it_would_have_said():
    async def story(server):
        await server.node("n1")
        await server.node("n2")
        server.said["n1"] = errors.Unavailable("away")
        server.said["n2"] = usage.Machine("t", 1.0, 1_000_000, 1 << 20)
        _, listed, _ = await server.get("/nodes")
        assert [one["metadata"]["name"] for one in listed["items"]] == ["n2"]

    play(story)


def test_hollow_nodes_use_what_their_pods_say_and_else_nothing():
    async def story(server):
        await server.node("h1", "hollow://0.1")
        await server.node("h2", "hollow://0.1")
        says = {"hollow.allot.dev/cpu-usage": "250m", "hollow.allot.dev/memory-usage": "1Gi"}
        await server.pod("played", "h1", containers=("a", "b"), annotations=says)
        await server.pod("more", "h1", annotations={"hollow.allot.dev/cpu-usage": "1"})
        await server.pod("silent", "h1")
        _, listed, warnings = await server.get("/nodes")
        [node] = listed["items"]
        assert node["usage"] == {"cpu": "1250m", "memory": "1Gi"}
        assert "node h2 is hollow, where nothing really runs" in warnings[0]
        _, listed, warnings = await server.get("/namespaces/default/pods")
        by_name = {one["metadata"]["name"]: one["containers"] for one in listed["items"]}
        assert by_name["played"][0]["usage"] == {"cpu": "250m", "memory": "1Gi"}
        assert by_name["played"][1]["usage"] == {"cpu": "0", "memory": "0"}
        assert by_name.keys() == {"played", "more"}
        assert "pod silent is on a hollow node" in warnings[0]
        status, refused, _ = await server.get("/namespaces/default/pods/silent")
        assert status == 404 and "its node is hollow" in refused["message"]
        assert (await server.get("/nodes/h2"))[1]["message"].endswith("nothing is used)")
        assert server.asked == []

    play(story)


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "PATCH"])
def test_nothing_of_it_can_be_written(method):
    async def story(server):
        assert (await server.get("/nodes/n1", method=method))[0] == 405

    play(story)


def test_who_may_view_pods_may_view_what_they_use_and_others_may_not():
    async def story(server):
        await server.node("n1")
        server.said["n1"] = usage.Machine("t", 1.0, 1, 1)
        ann = identities.user("ann")
        assert (await server.get("/namespaces/default/pods", ann))[0] == 403
        rbac = "rbac.authorization.k8s.io"
        role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "view"}
        subjects = [{"apiGroup": rbac, "kind": "User", "name": "ann"}]
        body = {"metadata": {"name": "ann"}, "roleRef": role, "subjects": subjects}
        await server.write(f"/apis/{rbac}/v1/namespaces/default/rolebindings", body)
        action = Action("list", "metrics.k8s.io", "pods", "", "default", "", "v1beta1")
        await until(lambda: server.api.authorizer.authorize(ann, action).allowed)
        assert (await server.get("/namespaces/default/pods", ann))[0] == 200
        assert (await server.get("/nodes", ann))[0] == 403

    play(story)


def test_discovery_names_it_and_the_core_group_comes_first(api):
    assert "metrics.k8s.io" in [one["name"] for one in api("GET", "/apis").body["groups"]]
    resources = api("GET", BASE).body["resources"]
    assert [(one["name"], one["kind"], one["verbs"]) for one in resources] == [
        ("nodes", "NodeMetrics", ["get", "list"]),
        ("pods", "PodMetrics", ["get", "list"]),
    ]
