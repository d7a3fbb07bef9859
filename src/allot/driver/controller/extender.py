"""The autoscaler's extender over HTTP: JSON in, JSON out, one session a cycle.

    POST /start          {}                              {"Session": ID}
    POST /filter         ExtenderArgs, with whole nodes  ExtenderFilterResult
    POST /nodeselected   {"Pod": pod, "Node": node}      {"Error": ""}, or why not
    POST /nodeready      {"NodeName": name}              {"Ready": true or false}

All but the first carry the ID in the header `session`. What cannot be answered is an HTTP error whose body
is {"Error": why}: 400 for what makes no sense, 410 for a session that is not kept any more, which makes the
autoscaler begin a new cycle. It listens on loopback only; whoever calls from elsewhere comes through a proxy
that asks for credentials.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final, cast

import msgspec

from allot.allocation import BadNodeSelector, Node
from allot.api import Object, errors, meta
from allot.base import CannotListen, Ids, RandomIds, os_reason

from .calling import Controller
from .sessions import CannotPlace, Known, Recent, Session, filtered, is_known_to
from .values import Ask, NotUsable
from .views import Pod, claim_of, class_of
from .working import Working

log = logging.getLogger(__name__)

BODY_BYTES_MAX: Final = 64 * 1024 * 1024
"""Whole nodes come in, five thousand of them at a time."""
READS_AT_ONCE: Final = 16

Body = Mapping[str, Any]
Answered = tuple[int, Mapping[str, Any]]


class Wrong(Exception):
    """The request cannot be answered: a status and the reason."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class Extender:
    """The verbs, whatever carries them."""

    def __init__(self, controller: Controller, work: Working, ids: Ids | None = None) -> None:
        self._controller, self._work = controller, work
        self._ids = ids or RandomIds()
        self._sessions: Recent[tuple[Session, asyncio.Lock]] = Recent()
        self._verbs: dict[str, Callable[[Body, str], Awaitable[Body]]] = {
            "start": self._start,
            "filter": self._filter,
            "nodeselected": self._select,
            "nodeready": self._ready,
        }

    async def answer(self, verb: str, body: bytes, session: str) -> Answered:
        try:
            deed = self._verbs.get(verb)
            if deed is None:
                raise Wrong(HTTPStatus.NOT_FOUND, f"no verb {verb!r}; there are {', '.join(self._verbs)}")
            return HTTPStatus.OK, await deed(_decoded(body), session)
        except Wrong as why:
            return why.status, {"Error": str(why)}
        except (msgspec.ValidationError, BadNodeSelector) as why:
            return HTTPStatus.BAD_REQUEST, {"Error": str(why)}
        except Exception as bug:
            log.exception("the extender's verb %s failed", verb)
            return HTTPStatus.INTERNAL_SERVER_ERROR, {"Error": f"{type(bug).__name__}: {bug}"}

    async def _start(self, body: Body, session: str) -> Body:
        if not self._work.leading.is_set():
            raise Wrong(
                HTTPStatus.SERVICE_UNAVAILABLE, "this process does not lead: its state is not current"
            )
        known = await self._known()
        id, snapshot = self._ids.uid(), await self._work.calls.snapshot()
        self._sessions.add(id, (Session(self._controller.name, known, snapshot), asyncio.Lock()))
        return {"Session": id}

    async def _filter(self, body: Body, session: str) -> Body:
        pod = _pod(body)
        given = body.get("Nodes")
        items = given.get("items") if isinstance(given, dict) else None
        if not isinstance(items, list):
            raise Wrong(HTTPStatus.BAD_REQUEST, "Nodes: whole nodes are needed, since some may not exist")
        nodes = [_node(one) for one in items]
        found, turn = self._session(session)
        async with turn:
            failed = await asyncio.to_thread(found.failed, pod, nodes)
        return filtered(items, failed)

    async def _select(self, body: Body, session: str) -> Body:
        pod, node = _pod(body), _node(body.get("Node"))
        found, turn = self._session(session)
        try:
            async with turn:
                await asyncio.to_thread(found.select, pod, node)
        except CannotPlace as why:
            return {"Error": str(why)}
        return {"Error": ""}

    async def _ready(self, body: Body, session: str) -> Body:
        self._session(session)
        name = body.get("NodeName")
        if not isinstance(name, str) or not name:
            raise Wrong(HTTPStatus.BAD_REQUEST, "NodeName: the name of a node is needed")
        ready = self._controller.node_ready
        return {"Ready": True if ready is None else bool(await asyncio.to_thread(ready, name))}

    def _session(self, id: str) -> tuple[Session, asyncio.Lock]:
        if not id:
            raise Wrong(HTTPStatus.BAD_REQUEST, "the header `session` is needed: what `start` answered")
        found = self._sessions.get(id)
        if found is None:
            raise Wrong(
                HTTPStatus.GONE, f"session {id[:64]} is not kept any more, or never was: start a new one"
            )
        return found

    async def _known(self) -> dict[tuple[str, str], Known]:
        """The claims that this driver answers for, and what to ask about those that are to be allocated."""
        name, followed = self._controller.name, self._work.followed
        mine: list[tuple[Object, Any]] = []
        for one in followed.claims.cache:
            found = followed.classes.cache.get(claim_of(one).spec.resource_class_name)
            resource_class = class_of(found) if found is not None else None
            if is_known_to(name, claim_of(one), resource_class):
                mine.append((one, resource_class))
        places = asyncio.Semaphore(READS_AT_ONCE)

        async def ask(claim: Object) -> Ask | NotUsable:
            if claim_of(claim).status.allocation is not None:
                return NotUsable(f"claim {claim.namespace}/{claim.name} is allocated")
            try:
                async with places:
                    return await self._work.asking.ask(claim)
            except NotUsable as why:
                return why
            except errors.ApiError as why:
                return NotUsable(
                    f"claim {claim.namespace}/{claim.name}: its parameters cannot be read: {why}"
                )

        asks = await asyncio.gather(*(ask(claim) for claim, _ in mine))
        return {
            (claim.namespace, claim.name): Known(claim_of(claim), resource_class, asked)
            for (claim, resource_class), asked in zip(mine, asks, strict=True)
        }


@asynccontextmanager
async def extending(controller: Controller, work: Working, port: int) -> AsyncIterator[int]:
    """Serve while the block runs; 0 picks a free port. Yields the port. Raises CannotListen."""
    from uvicorn.config import Config  # dear to import, and few drivers answer autoscalers
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    from uvicorn.server import ServerState

    extender = Extender(controller, work)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        status, body = await _answered(extender, scope, receive)
        encoded = msgspec.json.encode(body)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(encoded)).encode())]
        await send({"type": "http.response.start", "status": int(status), "headers": headers})
        await send({"type": "http.response.body", "body": encoded})

    config = Config(
        cast(Any, application),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
    )
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    try:
        server = await loop.create_server(lambda: HttpToolsProtocol(config, state, {}), "127.0.0.1", port)
    except OSError as refused:
        why = os_reason(refused)
        raise CannotListen(f"cannot listen on 127.0.0.1 port {port}: {why} (0 picks a free one)") from refused
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for connection in list(state.connections):
            connection.shutdown()
        await server.wait_closed()


async def _answered(extender: Extender, scope: Any, receive: Any) -> Answered:
    if scope["method"] != "POST":
        return HTTPStatus.METHOD_NOT_ALLOWED, {"Error": "only POST"}
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return HTTPStatus.BAD_REQUEST, {"Error": "the request is not complete"}
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > BODY_BYTES_MAX:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"Error": f"more than {BODY_BYTES_MAX} bytes"}
        if not message.get("more_body"):
            break
    session = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"session"), "")
    return await extender.answer(scope["path"].rpartition("/")[2], b"".join(parts), session)


def _decoded(body: bytes) -> Body:
    if not body:
        return {}
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError as wrong:
        raise Wrong(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {wrong}") from None
    if not isinstance(found, dict):
        raise Wrong(HTTPStatus.BAD_REQUEST, "the body is not a JSON object")
    return found


def _pod(body: Body) -> Pod:
    found = body.get("Pod")
    if not isinstance(found, dict):
        raise Wrong(HTTPStatus.BAD_REQUEST, "Pod: a whole pod is needed")
    pod = meta.view(Pod, found)
    if not pod.metadata.name or not pod.metadata.namespace or not pod.metadata.uid:
        raise Wrong(HTTPStatus.BAD_REQUEST, "Pod: metadata.name, namespace and uid are needed")
    return pod


def _node(found: Any) -> Node:
    if not isinstance(found, dict):
        raise Wrong(HTTPStatus.BAD_REQUEST, "a whole node is needed, and not its name")
    metadata = meta.view(_Node, found).metadata
    if not metadata.name:
        raise Wrong(HTTPStatus.BAD_REQUEST, "a node without a name")
    return Node(metadata.name, metadata.labels)


class _Node(meta.View, frozen=True):
    metadata: meta.ObjectMeta = meta.ObjectMeta()
