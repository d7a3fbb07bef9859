"""pods/NAME/exec, attach and portforward: what reaches into a pod that runs.

The client asks for a WebSocket; the question is passed on to the agent of the pod's node, and once that
agrees, bytes go both ways through this server as they are (`Forward`). What is said there is between the
client and the agent: see `streams` of the API.

What it promises
    INSIDE1  Whoever looks into a pod may change it: besides the right to `get`, which the handshake of a
             WebSocket looks like, the right to `create` is asked for.
    INSIDE2  One user has half of the places at most, and all together OPEN_MAX.
    INSIDE3  Nothing of a node is reached by this way but the pods on it: what is asked of an agent is made
             here, of names that were looked up.
"""

from collections.abc import Awaitable, Callable, Mapping

from allot.api import (
    SOCKET,
    Action,
    Decision,
    Duplex,
    Fields,
    Object,
    Request,
    Response,
    Talk,
    User,
    errors,
    streams,
)
from allot.base import Metrics

from ..requests.call import Call
from ..security.authorizer import refusal
from .hollow import EXEC, run_in, says_what_it_prints
from .reaching import Reaching, container_of, hollow_pod, is_hollow, refused

OPEN_MAX = 512
OPEN_PER_USER_MAX = OPEN_MAX // 2

_REACHES = {
    "attach": "attach to",
    "exec": "run a command in",
    "portforward": "forward a port to",
    "proxy": "pass a request on to",
}
_COMPLETED = ("Succeeded", "Failed")
_HANDSHAKE = ("sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol")
_STREAMS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
"""An option of ours, and what an agent calls it."""

Verb = Callable[[Call], Awaitable[Response]]
Authorize = Callable[[User, Action], Decision]


class Inside:
    def __init__(self, reaching: Reaching, authorize: Authorize, metrics: Metrics) -> None:
        self._reaching = reaching
        self._authorize = authorize
        self._open: dict[str, int] = {}  # by user
        metrics.reading(
            "allot_pod_streams", "Connections into pods: exec, attach, port-forward.", lambda: self._count
        )

    def verbs(self) -> Mapping[str, Mapping[str, Verb]]:
        """By subresource and method."""
        reach = dict.fromkeys(("create", "get"), self._reach)
        never = dict.fromkeys(("create", "get", "update", "patch", "delete"), self._no_way)
        return {"attach": reach, "exec": reach, "portforward": reach, "proxy": never}

    async def _reach(self, call: Call) -> Response:
        target, request = call.target, call.request
        pod = await self._reaching.pod(call)
        node = await self._reaching.node(pod)
        what = _REACHES[target.subresource]
        plays = target.subresource == "exec" and says_what_it_prints(pod)
        if is_hollow(node.fields) and not plays:
            hint = f" (annotation {EXEC} would be printed)" if target.subresource == "exec" else ""
            raise hollow_pod(target.name, node.name, f"there is no container to {what}{hint}")
        asked = _asked(call, pod)
        self._require_create(call)
        self._require_room(call.user)
        if not streams.websocket.is_asked_for(request.headers):
            raise await self._not_spoken(node, what)
        _require_https(request, what)
        if is_hollow(node.fields):
            answer = run_in(pod, request.headers)
        else:
            answer = await self._reaching.ask(node, asked)
        if answer.talk is None:
            raise refused(node.name, answer)
        return Response(
            answer.status, headers=answer.headers, talk=self._counted(call.user.name, answer.talk)
        )

    async def _not_spoken(self, node: Object, what: str) -> errors.ApiError:
        """kubectl asks a second time, in an older protocol, when a WebSocket failed, and shows this answer
        alone: if the node cannot be reached, that is what its user wants to know. Raises Unavailable."""
        if not is_hollow(node.fields):
            await self._reaching.ask(node, Request("GET", "/healthz"))
        return errors.BadRequest(
            f"to {what} a pod, ask for a WebSocket, as kubectl 1.31 and newer do; nothing else is spoken here"
        )

    async def _no_way(self, call: Call) -> Response:
        pod = await self._reaching.pod(call)
        node, what = await self._reaching.node(pod), _REACHES[call.target.subresource]
        if is_hollow(node.fields):
            raise hollow_pod(call.target.name, node.name, f"there is no container to {what}")
        raise errors.BadRequest(f"this server has no way to {what} pod {call.target.name}")

    def _require_create(self, call: Call) -> None:
        """INSIDE1."""
        target = call.target
        action = Action(
            "create",
            target.group,
            target.plural,
            target.subresource,
            target.namespace,
            target.name,
            target.version,
        )
        decision = self._authorize(call.user, action)
        if not decision.allowed:
            raise refusal(call.user, action, decision)

    # -- how many -------------------------------------------------------------------------------

    @property
    def _count(self) -> int:
        return sum(self._open.values())

    def _require_room(self, user: User) -> None:
        """INSIDE2."""
        if self._count >= OPEN_MAX or self._open.get(user.name, 0) >= OPEN_PER_USER_MAX:
            raise errors.TooManyRequests(
                f"too many connections into pods: there are {OPEN_MAX}, and {OPEN_PER_USER_MAX} of one user",
                retry_after_s=1,
            )

    def _counted(self, user: str, talk: Talk) -> Talk:
        self._open[user] = self._open.get(user, 0) + 1

        async def counted(link: Duplex) -> None:
            try:
                await talk(link)
            finally:
                self._open[user] -= 1
                if not self._open[user]:
                    del self._open[user]

        return counted


def _asked(call: Call, pod: Fields) -> Request:
    """What the agent is asked. Raises BadRequest."""
    target, request = call.target, call.request
    headers = {name: request.headers[name] for name in _HANDSHAKE if name in request.headers}
    headers |= {"upgrade": "websocket", "connection": "Upgrade"}
    where = f"{target.namespace}/{target.name}"
    if target.subresource == "portforward":
        return Request("GET", f"/portForward/{where}", headers=headers)
    container = container_of(pod, request.query.get("container", ""))
    phase = (pod.get("status") or {}).get("phase")
    if phase in _COMPLETED:
        doing = "exec into" if target.subresource == "exec" else "attach"
        raise errors.BadRequest(f"cannot {doing} a container in a completed pod; current phase is {phase}")
    query = {theirs: "1" for ours, theirs in _STREAMS.items() if request.asks_for(ours)}
    if not query.keys() & {"input", "output", "error"}:
        raise errors.BadRequest("you must specify at least one of stdin, stdout, stderr")
    if target.subresource == "attach":
        return Request("GET", f"/attach/{where}/{container}", query, headers)
    command = request.values("command")
    if not command:
        raise errors.BadRequest("you must specify a command for the container")
    return Request("GET", f"/exec/{where}/{container}", query, headers, repeated={"command": command})


def _require_https(request: Request, what: str) -> None:
    """What the other ways into the server carry are requests and answers."""
    if not request.source or request.source.startswith(SOCKET):
        raise errors.BadRequest(f"to {what} a pod, ask over HTTPS: the connection becomes a WebSocket")
