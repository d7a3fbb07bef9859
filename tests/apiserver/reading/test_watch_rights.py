"""A watch ends when its time is up, and when whoever watches may no longer do so."""

import asyncio
import json
import ssl

import pytest

from allot.api import Action, Request, Response, User, errors
from allot.apiserver import ApiServer, ServingOptions, identities, serve
from allot.apiserver.reading import listoptions, watching
from allot.apiserver.reading.listoptions import read_watch_options
from allot.apiserver.reading.rights import WatchRights
from allot.apiserver.security.authorizer import Authorizer
from allot.apiserver.serving import listener
from allot.store import MemoryStore

from ..serving.ground import Ground, until

RBAC = "/apis/rbac.authorization.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
EVE = User("eve", ("system:authenticated",))
WATCH = Action("watch", "", "configmaps", "", "default", "", "v1")


def role(namespace="default"):
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["watch", "list"]}]
    return {"metadata": {"name": "reader", "namespace": namespace}, "rules": rules}


def binding(*subjects):
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    listed = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name} for name in subjects]
    return {"metadata": {"name": "readers"}, "roleRef": ref, "subjects": listed}


async def ask(api, method, path, body=None, user=identities.ADMIN, headers=None, **query):
    raw = b"" if body is None else json.dumps(body).encode()
    return await api.handle(Request(method, path, query, headers or {}, raw), user)


async def with_rights(api):
    roles = f"{RBAC}/namespaces/default/roles"
    bindings = f"{RBAC}/namespaces/default/rolebindings"
    assert (await ask(api, "POST", roles, role())).status == 201
    assert (await ask(api, "POST", bindings, binding("eve", "adam"))).status == 201
    await until(lambda: api.authorizer.authorize(EVE, WATCH).allowed)


async def read_to_the_end(response, pieces=None):
    assert response.status == 200, response.body
    async for piece in response.stream:
        if pieces is not None:
            pieces.append(piece)


ENDINGS = {
    "its binding is deleted": ("DELETE", f"{RBAC}/namespaces/default/rolebindings/readers", None),
    "its role is deleted": ("DELETE", f"{RBAC}/namespaces/default/roles/reader", None),
    "it is taken off the binding": (
        "PUT",
        f"{RBAC}/namespaces/default/rolebindings/readers",
        binding("adam"),
    ),
}


@pytest.mark.parametrize("why", ENDINGS)
@pytest.mark.parametrize("activity", ["idle", "busy"])
def test_a_watch_ends_when(why, activity):
    """Another user's goes on, and nothing is told of what happened after the right was gone."""

    async def story():
        api = ApiServer(MemoryStore())
        await api.start()
        await with_rights(api)
        evil = await ask(api, "GET", MAPS, user=EVE, watch="true", timeoutSeconds="9999999999")
        other = await ask(api, "GET", MAPS, watch="true", timeoutSeconds="9999999999")
        pieces = []
        readers = [asyncio.create_task(read_to_the_end(*one)) for one in ((evil, pieces), (other,))]
        await until(lambda: len(api.laggards) == 2)
        assert (await ask(api, "POST", MAPS, {"metadata": {"name": "seen"}})).status == 201
        await until(lambda: b'"seen"' in b"".join(pieces))
        assert (await ask(api, *ENDINGS[why])).status == 200
        await until(lambda: not api.authorizer.authorize(EVE, WATCH).allowed)
        if activity == "busy":
            assert (await ask(api, "POST", MAPS, {"metadata": {"name": "secret"}})).status == 201
        await asyncio.wait_for(readers[0], 20)
        assert b'"secret"' not in b"".join(pieces)
        assert not readers[1].done()
        readers[1].cancel()
        assert (await ask(api, "GET", MAPS, user=EVE, watch="true")).status == 403
        await api.close()

    asyncio.run(story())


def test_a_watch_as_somebody_else_ends_with_the_right_to_act_as_them():
    async def story():
        api = ApiServer(MemoryStore())
        await api.start()
        await with_rights(api)
        rules = [{"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]}]
        made = await ask(api, "POST", f"{RBAC}/clusterroles", {"metadata": {"name": "actor"}, "rules": rules})
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "actor"}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}
        bound = {"metadata": {"name": "actors"}, "roleRef": ref, "subjects": [subject]}
        assert made.status == 201
        assert (await ask(api, "POST", f"{RBAC}/clusterrolebindings", bound)).status == 201
        mallory = User("mallory", ("system:authenticated",))
        act = Action("impersonate", "", "users", "", "", "adam", "v1")
        await until(lambda: api.authorizer.authorize(mallory, act).allowed)
        response = await ask(
            api, "GET", MAPS, user=mallory, headers={"impersonate-user": "adam"}, watch="true"
        )
        assert response.status == 200, response.body
        reader = asyncio.create_task(read_to_the_end(response))
        await until(lambda: len(api.laggards) == 1)
        assert (await ask(api, "DELETE", f"{RBAC}/clusterrolebindings/actors")).status == 200
        await asyncio.wait_for(reader, 20)
        await api.close()

    asyncio.run(story())


def test_a_node_stops_watching_what_none_of_its_pods_uses_any_more(monkeypatch):
    """No role gives the right, so none that changes says that it is gone: it is asked about now and then."""
    monkeypatch.setattr(watching, "_LOOK_AGAIN_S", 0.0)
    node = User("system:node:n1", ("system:nodes", "system:authenticated"))
    pods = "/api/v1/namespaces/default/pods"
    spec = {
        "nodeName": "n1",
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "configMap": {"name": "settings"}}],
    }

    async def story():
        api = ApiServer(MemoryStore())
        await api.start()
        created = await ask(api, "POST", pods, {"metadata": {"name": "reader"}, "spec": spec})
        assert created.status == 201
        await until(
            lambda: (
                api.authorizer.authorize(
                    node, Action("watch", "", "configmaps", "", "default", "settings", "v1")
                ).allowed
            )
        )
        response = await ask(
            api, "GET", MAPS, user=node, watch="true", fieldSelector="metadata.name=settings"
        )
        assert response.status == 200
        reader = asyncio.create_task(read_to_the_end(response))
        await until(lambda: len(api.laggards) == 1)
        await asyncio.sleep(0)
        assert not reader.done()
        await ask(api, "DELETE", f"{pods}/reader", gracePeriodSeconds="0")
        await asyncio.wait_for(reader, 20)
        await api.close()

    asyncio.run(story())


def test_the_rights_of_those_who_are_no_nodes_are_asked_about_when_a_role_changes_and_not_before():
    authorizer = Counting()
    rights = WatchRights(authorizer, [(EVE, WATCH)])
    authorizer.policy.observe("roles", "default", "reader", role())
    assert not rights.look_again()
    asked = authorizer.asked

    assert not rights.look_again()
    assert authorizer.asked == asked == 1


class Counting(Authorizer):
    asked = 0

    def authorize(self, user, action):
        self.asked += 1
        return super().authorize(user, action)


def test_a_watch_lives_an_hour_at_most():
    def lifetime(**query):
        return read_watch_options(Request("GET", MAPS, {"watch": "true", **query}))[0].timeout_s

    assert lifetime(timeoutSeconds="9999999999") == listoptions.WATCH_S_MAX
    assert lifetime(timeoutSeconds="17") == 17


def test_watches_that_name_no_time_do_not_end_together(api):
    lifetimes = [api.server._reader._lifetime_s() for _ in range(100)]
    assert min(lifetimes) >= listoptions.WATCH_S_MAX / 2 and max(lifetimes) <= listoptions.WATCH_S_MAX
    assert len({int(one / 60) for one in lifetimes}) == 30  # some in each minute


def test_a_stream_ends_when_its_reader_is_nobody_any_more(tmp_path, monkeypatch):
    monkeypatch.setattr(listener, "LOOK_AGAIN_S", 0.05)
    known, ended = {"a", "b"}, []

    def who(request, peer):
        if request.headers["authorization"] not in known:
            raise errors.Unauthorized("Unauthorized")
        return User(request.headers["authorization"])

    async def pieces(user):
        try:
            while True:
                yield b"x"
                await asyncio.sleep(3600)
        finally:
            ended.append(user.name)

    async def streaming(request, user):
        return Response(200, stream=pieces(user))

    async def story():
        async with Ground(tmp_path, streaming, who) as ground:
            connections = {}
            for name in ("a", "b"):
                reader, writer = connections[name] = await ground.connect()
                writer.write(b"GET / HTTP/1.1\r\nAuthorization: %b\r\n\r\n" % name.encode())
                await asyncio.wait_for(reader.readuntil(b"x\r\n"), 20)
            known.discard("a")
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await asyncio.wait_for(connections["a"][0].readexactly(1), 20)
            await until(lambda: ended == ["a"])
            for _, writer in connections.values():
                writer.transport.abort()

    asyncio.run(story())


def test_a_watch_ends_with_the_account_of_its_token(tmp_path, monkeypatch):
    """Over HTTPS, with a real token: `timeoutSeconds` of years, then the account is deleted."""
    monkeypatch.setattr(listener, "LOOK_AGAIN_S", 0.1)

    async def story():
        serving = await serve(ServingOptions(tmp_path / "data", store="memory"))
        api = serving.api
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        assert (await ask(api, "POST", accounts, {"metadata": {"name": "eve"}})).status == 201
        assert (await ask(api, "POST", f"{RBAC}/namespaces/default/roles", role())).status == 201
        subject = {"kind": "ServiceAccount", "name": "eve", "namespace": "default"}
        bound = {**binding(), "subjects": [subject]}
        bindings = f"{RBAC}/namespaces/default/rolebindings"
        assert (await ask(api, "POST", bindings, bound)).status == 201
        minted = await ask(api, "POST", f"{accounts}/eve/token", {"spec": {}})
        token = json.loads(minted.body)["status"]["token"]
        context = ssl.create_default_context(cadata=serving.authority.ca.certificate.decode())
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", int(serving.url.rpartition(":")[2]), ssl=context, server_hostname="localhost"
        )
        path = f"{MAPS}?watch=true&timeoutSeconds=9999999999&allowWatchBookmarks=true"
        head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
        await until(lambda: bool(api.authorizer.policy._bindings))
        writer.write(head.encode())
        assert (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)).startswith(b"HTTP/1.1 200")
        assert (await ask(api, "DELETE", f"{accounts}/eve")).status == 200
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            while True:
                await asyncio.wait_for(reader.readexactly(1), 20)
        writer.transport.abort()
        await serving.close()

    asyncio.run(story())


def test_a_continue_token_gives_nobody_more():
    """It says where to go on; what may be seen is asked with every page."""

    async def story():
        api = ApiServer(MemoryStore())
        await api.start()
        await with_rights(api)
        namespace = {"metadata": {"name": "other"}}
        assert (await ask(api, "POST", "/api/v1/namespaces", namespace)).status == 201
        elsewhere = MAPS.replace("default", "other")
        for path in (MAPS, elsewhere):
            for number in range(4):
                body = {"metadata": {"name": f"{'mine' if path == MAPS else 'theirs'}-{number}"}}
                assert (await ask(api, "POST", path, body)).status == 201

        async def page(path, user, **query):
            answer = await ask(api, "GET", path, user=user, limit="2", **query)
            found = json.loads(answer.body)
            return answer.status, [one["metadata"]["name"] for one in found.get("items", ())], found

        _, _, all_maps = await page("/api/v1/configmaps", identities.ADMIN)
        _, _, others = await page(elsewhere, identities.ADMIN)
        for stolen in (all_maps["metadata"]["continue"], others["metadata"]["continue"]):
            assert (await page(elsewhere, EVE, **{"continue": stolen}))[0] == 403
            status, names, _ = await page(MAPS, EVE, **{"continue": stolen})
            assert status == 200 and all(name.startswith(("mine", "kube-root")) for name in names)
        _, _, own = await page(MAPS, EVE)
        assert (await ask(api, "DELETE", f"{RBAC}/namespaces/default/rolebindings/readers")).status == 200
        await until(lambda: not api.authorizer.authorize(EVE, WATCH).allowed)
        assert (await page(MAPS, EVE, **{"continue": own["metadata"]["continue"]}))[0] == 403
        await api.close()

    asyncio.run(story())
