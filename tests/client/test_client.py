"""What each verb says to the server, and what its answers become. A handler stands in for the server here:
what the real one does with the requests is tested in test_both_transports."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from allot.api import Object, Request, Response, User, errors
from allot.client import Client, InProcessTransport, Patch, Propagation, retry_on_conflict

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}


class Handler:
    """Answers with what it was given, and remembers what it was asked."""

    def __init__(self, *answers: Response) -> None:
        self.answers = list(answers)
        self.asked: list[Request] = []

    async def __call__(self, request: Request, user: User) -> Response:
        self.asked.append(request)
        return self.answers.pop(0) if self.answers else Response(200, json.dumps(POD).encode())


def client_of(handler: Handler, waited: list[float] | None = None) -> Client:
    async def sleep(seconds: float) -> None:
        if waited is not None:
            waited.append(seconds)

    return Client(InProcessTransport(handler, User("tester")), sleep=sleep)


def pods_of(handler: Handler, **options):
    return client_of(handler, **options).resource("", "v1", "pods")


def asked(verb) -> Request:
    """The one request that `verb(pods)` sends."""
    handler = Handler()
    asyncio.run(verb(pods_of(handler)))
    (request,) = handler.asked
    return request


def test_paths_follow_group_namespace_and_subresource():
    handler = Handler()

    async def story() -> None:
        client = client_of(handler)
        await client.resource("", "v1", "nodes", namespaced=False).get("n1")
        await client.resource("apps", "v1", "deployments").get("web", "shop", subresource="scale")
        await client.resource("", "v1", "pods").list("shop")
        await client.resource("", "v1", "pods").list()

    asyncio.run(story())
    assert [request.path for request in handler.asked] == [
        "/api/v1/nodes/n1",
        "/apis/apps/v1/namespaces/shop/deployments/web/scale",
        "/api/v1/namespaces/shop/pods",
        "/api/v1/pods",
    ]


@pytest.mark.parametrize("name", ["../secrets/key", "a/b", "..", "."])
def test_a_name_cannot_lead_elsewhere(name):
    with pytest.raises(ValueError, match="cannot be a name"):
        asked(lambda pods: pods.delete(name, "shop"))
    with pytest.raises(ValueError, match="cannot be a name"):
        asked(lambda pods: pods.get("web", name))


@pytest.mark.parametrize("name", ["../secrets/key", "a/b", "..", ".", ""])
def test_what_nothing_can_be_named_is_not_there(name):
    """References hold any text; whoever follows one hears the same of this as of others that lead nowhere."""
    with pytest.raises(errors.NotFound) as missing:
        asked(lambda pods: pods.get(name, "shop"))
    assert missing.value.name == name


def test_a_named_object_needs_its_namespace():
    with pytest.raises(ValueError, match="namespace is needed"):
        asked(lambda pods: pods.get("web"))


def test_options_that_are_not_given_are_not_sent():
    request = asked(lambda pods: pods.list("shop", label_selector="a=b", limit=3, continue_token="t"))
    assert request.query == {"labelSelector": "a=b", "limit": "3", "continue": "t"}
    assert asked(lambda pods: pods.list("shop", resource_version="0")).query == {"resourceVersion": "0"}


def test_a_patch_says_how_it_is_to_be_read():
    request = asked(lambda pods: pods.patch("web", [{"op": "remove", "path": "/x"}], "shop", type=Patch.JSON))
    assert (request.method, request.headers["content-type"]) == ("PATCH", "application/json-patch+json")
    assert json.loads(request.body) == [{"op": "remove", "path": "/x"}]


def test_apply_names_its_manager_and_may_force():
    request = asked(lambda pods: pods.apply(POD, field_manager="me", force=True, subresource="status"))
    assert request.path == "/api/v1/namespaces/shop/pods/web/status"
    assert request.headers["content-type"] == "application/apply-patch+yaml"
    assert request.query == {"fieldManager": "me", "force": "true"}


def test_delete_carries_preconditions_and_policy():
    request = asked(
        lambda pods: pods.delete(
            "web", "shop", uid="u", resource_version="5", propagation=Propagation.ORPHAN, grace_period_s=0
        )
    )
    assert json.loads(request.body) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "u", "resourceVersion": "5"},
        "propagationPolicy": "Orphan",
        "gracePeriodSeconds": 0,
    }
    assert asked(lambda pods: pods.delete("web", "shop")).body == b""


def test_binding_and_eviction_are_posted_to_the_pod():
    bind = asked(lambda pods: pods.bind("web", "shop", "n1", uid="u"))
    assert bind.path == "/api/v1/namespaces/shop/pods/web/binding"
    assert json.loads(bind.body)["target"]["name"] == "n1"
    assert json.loads(bind.body)["metadata"]["uid"] == "u"
    evict = asked(lambda pods: pods.evict("web", "shop", grace_period_s=3))
    assert json.loads(evict.body)["deleteOptions"] == {"gracePeriodSeconds": 3}


def test_an_object_is_sent_whole_with_fields_nobody_knows():
    stored = Object(b'{"metadata":{"name":"web","namespace":"shop"},"unknown":{"kept":1}}')
    request = asked(lambda pods: pods.update(stored.changed({"spec": {"x": 1}})))
    assert json.loads(request.body)["unknown"] == {"kept": 1}
    assert request.path == "/api/v1/namespaces/shop/pods/web"


def test_items_get_the_kind_that_their_list_says_for_them():
    """A real Kubernetes leaves kind and apiVersion out of the items of a list."""
    body = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"t",'
    body += b'"remainingItemCount":3},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}'
    page = asyncio.run(pods_of(Handler(Response(200, body))).list())
    assert [(o.kind, o.api_version, o.name) for o in page.objects] == [("Pod", "v1", "a"), ("Pod", "v1", "b")]
    assert (page.resource_version, page.continue_token, page.remaining) == ("9", "t", 3)


def test_pages_go_on_until_there_is_no_more():
    first = b'{"kind":"PodList","metadata":{"continue":"more"},"items":[{"metadata":{"name":"a"}}]}'
    second = b'{"kind":"PodList","metadata":{},"items":[{"metadata":{"name":"b"}}]}'
    handler = Handler(Response(200, first), Response(200, second))

    async def story() -> list[str]:
        return [o.name async for page in pods_of(handler).pages(limit=1) for o in page.objects]

    assert asyncio.run(story()) == ["a", "b"]
    assert handler.asked[1].query == {"limit": "1", "continue": "more"}


# -- refusals -----------------------------------------------------------------------------------


def status(code: int, reason: str, **more) -> Response:
    headers = more.pop("headers", ())
    body = {"kind": "Status", "code": code, "reason": reason, "message": "no", **more}
    return Response(code, json.dumps(body).encode(), headers=headers)


def test_a_refusal_is_raised_as_its_own_type():
    with pytest.raises(errors.AlreadyExists):
        asyncio.run(pods_of(Handler(status(409, "AlreadyExists"))).create(POD))


def test_an_answer_from_something_else_than_an_api_server_is_still_an_api_error():
    with pytest.raises(errors.Unavailable, match="upstream is down"):
        asyncio.run(pods_of(Handler(Response(503, b"upstream is down"))).get("web", "shop"))


def test_a_busy_server_is_asked_again_when_it_says_when():
    busy = status(429, "TooManyRequests", headers=(("Retry-After", "2"),))
    handler, waited = Handler(busy, busy), []
    asyncio.run(pods_of(handler, waited=waited).create(POD))
    assert (len(handler.asked), waited) == (3, [2, 2])


def test_a_busy_server_that_stays_busy_is_believed():
    busy = status(503, "ServiceUnavailable", headers=(("Retry-After", "1"),))
    handler, waited = Handler(*[busy] * 20), []
    with pytest.raises(errors.Unavailable) as refused:
        asyncio.run(pods_of(handler, waited=waited).get("web", "shop"))
    assert len(handler.asked) == 10
    assert refused.value.retry_after_s == 1


def test_an_eviction_that_has_to_wait_is_the_callers_to_repeat():
    """429 there means that a disruption budget is spent, not that the server is busy."""
    handler = Handler(status(429, "TooManyRequests", headers=(("Retry-After", "10"),)))
    with pytest.raises(errors.TooManyRequests):
        asyncio.run(pods_of(handler).evict("web", "shop"))
    assert len(handler.asked) == 1


def test_warnings_are_passed_on_as_text():
    headers = (("Warning", '299 - "say \\"please\\" next time"'), ("warning", "nonsense"))
    handler = Handler(Response(200, json.dumps(POD).encode(), headers=headers))
    warned: list[str] = []
    client = Client(InProcessTransport(handler, User("tester")), warn=warned.append)
    asyncio.run(client.resource("", "v1", "pods").create(POD))
    assert warned == ['say "please" next time']


def test_a_log_is_text_whether_it_streams_or_not():
    async def lines() -> AsyncIterator[bytes]:
        yield b"one\n"
        yield b"two\n"

    async def read(response: Response) -> bytes:
        pods = pods_of(Handler(response))
        return b"".join([chunk async for chunk in pods.log("web", "shop", container="c", follow=True)])

    assert asyncio.run(read(Response(200, b"all\n", "text/plain"))) == b"all\n"
    assert asyncio.run(read(Response(200, stream=lines()))) == b"one\ntwo\n"


def test_conflicts_are_retried_and_existing_objects_are_not():
    async def story() -> None:
        tries: list[float] = []

        async def sleep(seconds: float) -> None:
            tries.append(seconds)

        async def third_time() -> str:
            if len(tries) < 2:
                raise errors.Conflict("moved on")
            return "done"

        async def exists() -> None:
            raise errors.AlreadyExists("there")

        async def never() -> None:
            raise errors.Conflict("always")

        assert await retry_on_conflict(third_time, sleep=sleep) == "done"
        assert len(tries) == 2
        with pytest.raises(errors.AlreadyExists):
            await retry_on_conflict(exists, sleep=sleep)
        assert len(tries) == 2
        with pytest.raises(errors.Conflict):
            await retry_on_conflict(never, sleep=sleep)
        assert len(tries) == 2 + 4

    asyncio.run(story())


# -- streams in process -------------------------------------------------------------------------


def test_closing_an_in_process_client_ends_its_watches():
    """The watch ends as if the server had ended it, and the server's side is cleaned up."""
    cleaned = []

    async def quiet(request: Request, user: User) -> Response:
        async def stream() -> AsyncIterator[bytes]:
            try:
                yield b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n'
                await asyncio.sleep(30)
            finally:
                cleaned.append(True)

        return Response(200, stream=stream())

    async def story() -> list[str]:
        client = Client(InProcessTransport(quiet, User("tester")))

        async def names() -> list[str]:
            return [e.object.name async for e in client.resource("", "v1", "pods").watch()]

        watching = asyncio.ensure_future(names())
        await asyncio.sleep(0.01)
        await client.close()
        with pytest.raises(errors.Unavailable):
            await client.get("/version")
        return await asyncio.wait_for(watching, 1)

    assert asyncio.run(story()) == ["a"]
    assert cleaned == [True]


def test_cancelling_a_watcher_is_not_mistaken_for_the_end():
    async def quiet(request: Request, user: User) -> Response:
        async def stream() -> AsyncIterator[bytes]:
            await asyncio.sleep(30)
            yield b""

        return Response(200, stream=stream())

    async def story() -> None:
        pods = Client(InProcessTransport(quiet, User("tester"))).resource("", "v1", "pods")

        async def watch() -> None:
            async for _ in pods.watch():
                pass

        watching = asyncio.ensure_future(watch())
        await asyncio.sleep(0.01)
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching

    asyncio.run(story())
