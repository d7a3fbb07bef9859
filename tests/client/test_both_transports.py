"""One suite over every transport: what a client can say does not depend on how it is carried.

The server is the real one, on a memory store; over HTTPS it is reached through
the kubeconfig that it writes, over its socket by anybody's name.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from allot.api import Object, errors
from allot.apiserver import Options, ServingOptions, identities, serve
from allot.base import SystemClock
from allot.client import (
    Client,
    EventType,
    HttpsTransport,
    LeadershipLost,
    LeaseSettings,
    Patch,
    Propagation,
    Socket,
    kubeconfig,
    lead,
    member_of,
    retry_on_conflict,
)  # fmt: skip
from allot.testing import api_server

NS = "default"
Story = Callable[[Client], Awaitable[None]]


@contextlib.asynccontextmanager
async def in_process(folder: Path) -> AsyncIterator[Client]:
    async with api_server() as server:
        yield server.client()


@contextlib.asynccontextmanager
async def over_https(folder: Path) -> AsyncIterator[Client]:
    serving = await serve(ServingOptions(folder / "data", store="memory"))
    client = Client(HttpsTransport(kubeconfig.load(serving.kubeconfig)))
    try:
        yield client
    finally:
        await client.close()
        await serving.close()


@contextlib.asynccontextmanager
async def over_the_socket(folder: Path) -> AsyncIterator[Client]:
    serving = await serve(ServingOptions(folder / "data", store="memory"))
    client = Client(Socket(serving.socket).transport(identities.ADMIN))
    try:
        yield client
    finally:
        await client.close()
        await serving.close()


@pytest.fixture(params=[in_process, over_https, over_the_socket], ids=["in-process", "https", "socket"])
def tell(request, tmp_path):
    """Tell a story to a client of a fresh server."""

    def run(story: Story) -> None:
        async def whole() -> None:
            async with request.param(tmp_path) as client:
                await asyncio.wait_for(story(client), 30)

        asyncio.run(whole())

    return run


def config_map(name: str, **data: str):
    metadata = {"name": name, "namespace": NS}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def pod(name: str, **spec):
    body = {"containers": [{"name": "main", "image": "example/app:1"}], **spec}
    metadata = {"name": name, "namespace": NS, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


def maps_of(client: Client):
    return client.resource("", "v1", "configmaps")


def test_an_object_lives_from_create_to_delete(tell):
    async def story(client: Client) -> None:
        maps = maps_of(client)
        made = await maps.create(config_map("m", a="1"))
        assert made.uid and made.resource_version
        assert (await maps.get("m", NS)).raw == made.raw
        changed = await maps.update(made.changed({"data": {"a": "2"}}))
        assert changed.fields["data"] == {"a": "2"}
        with pytest.raises(errors.Conflict):
            await maps.update(made.changed({"data": {"a": "3"}}))
        with pytest.raises(errors.AlreadyExists):
            await maps.create(config_map("m"))
        await maps.delete("m", NS, uid=made.uid)
        with pytest.raises(errors.NotFound):
            await maps.get("m", NS)

    tell(story)


def test_every_way_to_patch(tell):
    async def story(client: Client) -> None:
        maps = maps_of(client)
        await maps.create(config_map("m", a="1", b="1"))
        await maps.patch("m", {"data": {"a": None}}, NS)
        await maps.patch("m", [{"op": "replace", "path": "/data/b", "value": "2"}], NS, type=Patch.JSON)
        await maps.patch("m", {"metadata": {"labels": {"x": "y"}}}, NS, type=Patch.STRATEGIC)
        seen = await maps.get("m", NS)
        assert seen.fields["data"] == {"b": "2"}
        assert seen.metadata.labels == {"x": "y"}

    tell(story)


def test_apply_respects_other_managers_until_it_is_forced(tell):
    async def story(client: Client) -> None:
        maps = maps_of(client)
        await maps.create(config_map("m", b="2"))
        seen = await maps.apply(config_map("m", c="3"), field_manager="tester")
        assert seen.fields["data"] == {"b": "2", "c": "3"}
        with pytest.raises(errors.Conflict):
            await maps.apply(config_map("m", b="9"), field_manager="tester")
        forced = await maps.apply(config_map("m", b="9"), field_manager="tester", force=True)
        assert forced.fields["data"] == {"b": "9"}

    tell(story)


def test_lists_come_in_pages_and_by_selector(tell):
    async def story(client: Client) -> None:
        pods = client.resource("", "v1", "pods")
        for n in range(7):
            await pods.create(pod(f"p{n}"))
        pages = [page async for page in pods.pages(NS, limit=3)]
        assert [len(page.objects) for page in pages] == [3, 3, 1]
        assert {page.resource_version for page in pages} == {pages[0].resource_version}
        assert pages[0].objects[0].kind == "Pod"
        chosen = await pods.list(NS, label_selector="app in (p1,p2)")
        assert [o.name for o in chosen.objects] == ["p1", "p2"]
        assert len((await pods.list(NS, field_selector="status.phase=Pending")).objects) == 7
        assert (await pods.list(NS, field_selector="spec.nodeName=n1")).objects == ()

    tell(story)


def test_a_list_is_whole_however_long_it_is(tell):
    """The server lets a long answer leave in pieces; that is not the reader's concern."""

    async def story(client: Client) -> None:
        maps = client.resource("", "v1", "configmaps")
        for n in range(3):
            await maps.create({"metadata": {"name": f"m{n}"}, "data": {"large": "x" * 700_000}}, NS)
        assert [one.name for one in (await maps.list(NS)).objects] == ["m0", "m1", "m2"]

    tell(story)


def test_a_watch_sees_every_change_in_order(tell):
    async def story(client: Client) -> None:
        maps = maps_of(client)
        start = (await maps.list(NS)).resource_version
        made = await maps.create(config_map("w", a="1"))
        await maps.patch("w", {"data": {"a": "2"}}, NS)
        await maps.delete("w", NS)
        seen = []
        async for event in maps.watch(NS, resource_version=start):
            if event.object.name == "w":
                seen.append((event.type, (event.object.fields.get("data") or {}).get("a")))
            if event.type is EventType.DELETED:
                break
        assert seen == [(EventType.ADDED, "1"), (EventType.MODIFIED, "2"), (EventType.DELETED, "2")]
        assert made.name == "w"

    tell(story)


def test_a_watch_can_begin_with_what_is_there(tell):
    async def story(client: Client) -> None:
        maps = maps_of(client)
        await maps.create(config_map("before"))
        found = []
        async for event in maps.watch(NS, initial_events=True):
            if event.type is EventType.BOOKMARK:
                break
            found.append(event.object.name)
        assert "before" in found

    tell(story)


def test_a_watch_ends_when_its_time_is_up(tell):
    async def story(client: Client) -> None:
        async for event in maps_of(client).watch(NS, timeout_s=1, resource_version=""):
            assert event.type in EventType

    tell(story)


def test_closing_the_client_ends_a_watch(tell):
    async def story(client: Client) -> None:
        async def watch() -> None:
            async for _ in maps_of(client).watch(NS):
                pass

        watching = asyncio.ensure_future(watch())
        await asyncio.sleep(0.1)
        await client.close()
        with contextlib.suppress(errors.ApiError):
            await asyncio.wait_for(watching, 2)

    tell(story)


def test_a_rule_that_is_broken_names_its_field(tell):
    async def story(client: Client) -> None:
        with pytest.raises(errors.Invalid) as refused:
            await client.resource("", "v1", "pods").create(pod("bad", containers=[{"name": "Main"}]))
        fields = [cause.field for cause in refused.value.causes]
        assert fields == ["spec.containers[0].name", "spec.containers[0].image"]

    tell(story)


def test_a_field_that_no_view_knows_survives_and_one_that_no_kind_has_is_refused_when_strict(tell):
    """S3: what the client does not know by name is carried along; what the server does not, is dropped."""

    async def story(client: Client) -> None:
        pods = client.resource("", "v1", "pods")
        known = {"searches": ["a", "b"]}
        made = await pods.create(pod("future", dnsConfig=known, fromTheFuture={"deep": [1]}))
        assert "fromTheFuture" not in made.fields["spec"]
        labelled = await pods.update(made.changed({"metadata": {"labels": {"seen": "yes"}}}))
        patched = await pods.patch("future", {"metadata": {"labels": {"seen": "twice"}}}, NS)
        assert labelled.fields["spec"]["dnsConfig"] == patched.fields["spec"]["dnsConfig"] == known
        with pytest.raises(errors.BadRequest, match="fromTheFuture"):
            await pods.create(pod("strict", fromTheFuture={}), field_validation="Strict")

    tell(story)


def test_status_is_written_apart(tell):
    async def story(client: Client) -> None:
        pods = client.resource("", "v1", "pods")
        made = await pods.create(pod("s"))
        ran = await pods.update_status(made.changed({"status": {"phase": "Running"}}))
        assert ran.fields["status"]["phase"] == "Running"
        patched = await pods.patch("s", {"status": {"message": "hi"}}, NS, subresource="status")
        assert patched.fields["status"]["message"] == "hi"
        await pods.patch("s", {"status": {"phase": "Failed"}}, NS)
        assert (await pods.get("s", NS)).fields["status"]["phase"] == "Running"

    tell(story)


def test_a_pod_is_bound_once(tell):
    async def story(client: Client) -> None:
        pods = client.resource("", "v1", "pods")
        made = await pods.create(pod("b"))
        await pods.bind("b", NS, "node-1", uid=made.uid)
        assert (await pods.get("b", NS)).fields["spec"]["nodeName"] == "node-1"
        assert [o.name for o in (await pods.list(field_selector="spec.nodeName=node-1")).objects] == ["b"]
        with pytest.raises(errors.Conflict):
            await pods.bind("b", NS, "node-2")

    tell(story)


def test_scale_goes_through_its_subresource(tell):
    async def story(client: Client) -> None:
        deployments = client.resource("apps", "v1", "deployments")
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        metadata = {"name": "d", "namespace": NS}
        await deployments.create(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
        )
        await deployments.scale("d", NS, 4)
        assert (await deployments.get("d", NS)).fields["spec"]["replicas"] == 4
        assert (await deployments.get("d", NS, subresource="scale")).kind == "Scale"

    tell(story)


def test_a_collection_goes_at_once(tell):
    async def story(client: Client) -> None:
        maps = maps_of(client)
        for n in range(3):
            await maps.create(
                {
                    **config_map(f"m{n}"),
                    "metadata": {"name": f"m{n}", "namespace": NS, "labels": {"k": str(n % 2)}},
                }
            )
        await maps.delete_collection(NS, label_selector="k=0", propagation=Propagation.BACKGROUND)
        left = [o.name for o in (await maps.list(NS)).objects if o.name.startswith("m")]
        assert left == ["m1"]

    tell(story)


def test_a_dry_run_changes_nothing(tell):
    async def story(client: Client) -> None:
        await maps_of(client).create(config_map("dry"), dry_run=True)
        with pytest.raises(errors.NotFound):
            await maps_of(client).get("dry", NS)

    tell(story)


def test_conflicting_writers_all_get_their_turn(tell):
    async def story(client: Client) -> None:
        maps = maps_of(client)
        await maps.create(config_map("counter", n="0"))

        async def increase() -> Object:
            seen = await maps.get("counter", NS)
            return await maps.update(seen.changed({"data": {"n": str(int(seen.fields["data"]["n"]) + 1)}}))

        async def patiently() -> None:
            for _ in range(20):
                with contextlib.suppress(errors.Conflict):
                    await retry_on_conflict(increase)
                    return

        await asyncio.gather(*(patiently() for _ in range(8)))
        assert (await maps.get("counter", NS)).fields["data"] == {"n": "8"}

    tell(story)


def test_other_documents_can_be_read(tell):
    async def story(client: Client) -> None:
        assert "gitVersion" in await client.get("/version")
        names = {resource["name"] for resource in (await client.get("/api/v1"))["resources"]}
        assert {"pods", "pods/status", "pods/binding", "nodes"} <= names
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
        }
        answer = await client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        assert answer.fields["status"]["allowed"] is True

    tell(story)


def test_a_service_account_gets_a_token(tell):
    async def story(client: Client) -> None:
        accounts = client.resource("", "v1", "serviceaccounts")
        metadata = {"name": "robot", "namespace": NS}
        await accounts.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        for _ in range(50):  # tokens are made from the server's cache, which may be a moment behind
            with contextlib.suppress(errors.NotFound):
                answer = await accounts.token("robot", NS, expires_s=600)
                break
            await asyncio.sleep(0.02)
        assert answer.fields["status"]["token"].count(".") == 2

    tell(story)


WAYS = {
    "https": lambda serving: HttpsTransport(kubeconfig.load(serving.kubeconfig)),
    "socket": lambda serving: Socket(serving.socket).transport(identities.ADMIN),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_client_survives_its_server(tmp_path, way):
    """Kept connections are stale after a restart; nobody but the watch need notice."""

    async def story() -> None:
        serving = await serve(ServingOptions(tmp_path / "data", store="sqlite"))
        port = int(serving.url.rpartition(":")[2])
        client = Client(way(serving))
        maps = maps_of(client)
        made = await maps.create(config_map("m", a="1"))
        broken = asyncio.ensure_future(_drain(maps.watch(NS, resource_version=made.resource_version)))
        await asyncio.sleep(0.1)
        await serving.close()
        with contextlib.suppress(errors.Unavailable):
            assert await asyncio.wait_for(broken, 5) == []
        with pytest.raises((errors.Unavailable, errors.Timeout)):
            await maps.create(config_map("lost"))

        serving = await serve(ServingOptions(tmp_path / "data", store="sqlite", port=port))
        try:
            assert (await maps.get("m", NS)).raw == made.raw
            await maps.patch("m", {"data": {"a": "2"}}, NS)
            watch = maps.watch(NS, resource_version=made.resource_version)
            assert (await anext(watch)).object.fields["data"] == {"a": "2"}
        finally:
            await client.close()
            await serving.close()

    asyncio.run(asyncio.wait_for(story(), 60))


async def _drain(watch) -> list[str]:
    return [event.object.name async for event in watch if event.type is not EventType.BOOKMARK]


# -- leading ------------------------------------------------------------------------------------

QUICK = {"duration_s": 3, "renew_deadline_s": 2, "retry_period_s": 0.1}


def test_one_leads_and_hands_over_when_it_is_done(tell):
    async def story(client: Client) -> None:
        leases = client.resource("coordination.k8s.io", "v1", "leases")
        order: list[str] = []

        async def candidate(name: str) -> None:
            async def work() -> None:
                order.append(f"{name} begins")
                await asyncio.sleep(0.3)
                order.append(f"{name} ends")

            await lead(LeaseSettings("lock", NS, name, **QUICK), leases, work, SystemClock())

        await asyncio.gather(candidate("a"), candidate("b"))
        first, second = order[0][0], order[2][0]
        assert order == [f"{first} begins", f"{first} ends", f"{second} begins", f"{second} ends"]
        lease = await leases.get("lock", NS)
        assert lease.fields["spec"].get("holderIdentity", "") == ""
        assert lease.fields["spec"]["leaseTransitions"] >= 1

    tell(story)


def test_a_lease_is_given_back_although_a_renewal_was_cut_short(tell):
    """The server carried it out, and the leader never heard: what it knows of the lease is old."""

    async def story(client: Client) -> None:
        leases = client.resource("coordination.k8s.io", "v1", "leases")

        async def work() -> None:
            held = await leases.get("lock", NS)
            later = {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}
            await leases.patch("lock", {"metadata": {"resourceVersion": held.resource_version}, **later}, NS)

        settings = LeaseSettings("lock", NS, "me", duration_s=60, renew_deadline_s=40, retry_period_s=20)
        await lead(settings, leases, work, SystemClock())
        assert (await leases.get("lock", NS)).fields["spec"].get("holderIdentity", "") == ""

    tell(story)


def test_a_leader_whose_lease_is_taken_stops(tell):
    async def story(client: Client) -> None:
        leases = client.resource("coordination.k8s.io", "v1", "leases")
        ended = asyncio.Event()

        async def work() -> None:
            try:
                await asyncio.sleep(30)
            finally:
                ended.set()

        leading = asyncio.ensure_future(
            lead(LeaseSettings("lock", NS, "me", **QUICK), leases, work, SystemClock())
        )
        await asyncio.sleep(0.3)
        await leases.patch("lock", {"spec": {"holderIdentity": "usurper"}}, NS)
        with pytest.raises(LeadershipLost):
            await asyncio.wait_for(leading, 5)
        assert ended.is_set()
        assert (await leases.get("lock", NS)).fields["spec"]["holderIdentity"] == "usurper"

    tell(story)


def test_several_writes_are_carried_out_together_or_not_at_all(tell):
    async def story(client: Client) -> None:
        configs = client.resource("", "v1", "configmaps")
        writes = configs.writes
        made, changed = await client.together(
            [
                writes.create(config_map("a")),
                writes.patch("a", {"data": {"x": "1"}}, NS, field_manager="me & you"),
            ]
        )
        assert made.name == "a" and changed.fields["data"] == {"x": "1"}
        managers = [one["manager"] for one in changed.fields["metadata"]["managedFields"]]
        assert "me & you" in managers
        assert (await configs.get("a", NS)).resource_version == changed.resource_version
        with pytest.raises(errors.AlreadyExists) as refused:
            await client.together([writes.create(config_map("b")), writes.create(config_map("a"))])
        assert member_of(refused.value) == 1
        with pytest.raises(errors.NotFound):
            await configs.get("b", NS)
        (rehearsed,) = await client.together([writes.create(config_map("c"))], dry_run=True)
        assert rehearsed.name == "c" and [one.name for one in (await configs.list(NS)).objects] == ["a"]
        await client.together([writes.delete("a", NS, uid=made.uid), writes.create(config_map("d"))])
        assert [one.name for one in (await configs.list(NS)).objects] == ["d"]
        assert client.has_transactions

    tell(story)


def test_a_delete_that_asks_for_nothing_is_carried_out_with_others(tell):
    async def story(client: Client) -> None:
        configs = client.resource("", "v1", "configmaps")
        await client.together([configs.writes.create(config_map(name)) for name in "ab"])
        await client.together([configs.writes.delete("a", NS), configs.writes.create(config_map("c"))])
        assert [one.name for one in (await configs.list(NS)).objects] == ["b", "c"]

    tell(story)


def test_a_member_that_is_not_found_says_nothing_about_the_server(tell):
    """One claim that has gone meanwhile would else be the end of all transactions."""

    async def story(client: Client) -> None:
        writes = maps_of(client).writes
        with pytest.raises(errors.NotFound) as refused:
            await client.together([writes.create(config_map("a")), writes.patch("gone", {"data": {}}, NS)])
        assert member_of(refused.value) == 1 and client.has_transactions

    tell(story)


def test_a_member_that_is_forbidden_says_nothing_about_the_server():
    async def whole() -> None:
        async with api_server() as server:
            client = server.client(identities.controller("resource-claim-controller"))
            with pytest.raises(errors.Forbidden) as refused:
                await client.together([maps_of(client).writes.create(config_map("a"))])
            assert member_of(refused.value) == 0 and client.has_transactions

    asyncio.run(whole())


def test_a_server_without_transactions_says_so_once():
    async def whole() -> None:
        async with api_server(options=Options(transactions=False)) as server:
            client = server.client()
            with pytest.raises(errors.NotFound) as refused:
                await client.together(
                    [client.resource("", "v1", "configmaps").writes.create(config_map("a"))]
                )
            assert member_of(refused.value) is None and not client.has_transactions

    asyncio.run(whole())
