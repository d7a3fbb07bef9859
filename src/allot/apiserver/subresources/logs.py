"""pods/NAME/log: asked of the node that runs the pod; the answer streams through."""

from allot.api import Request, Response

from ..requests.call import Call
from .hollow import logs_of
from .reaching import Reaching, container_of, is_hollow, refused

_PASSED_ON = (
    "follow",
    "previous",
    "sinceSeconds",
    "sinceTime",
    "timestamps",
    "tailLines",
    "limitBytes",
    "stream",
)


class Logs:
    def __init__(self, reaching: Reaching) -> None:
        self._reaching = reaching

    async def get(self, call: Call) -> Response:
        target = call.target
        pod = await self._reaching.pod(call)
        container = container_of(pod, call.request.query.get("container", ""))
        node = await self._reaching.node(pod)
        if is_hollow(node.fields):
            return logs_of(pod, node.name)
        query = {name: call.request.query[name] for name in _PASSED_ON if name in call.request.query}
        path = f"/containerLogs/{target.namespace}/{target.name}/{container}"
        answer = await self._reaching.ask(node, Request("GET", path, query))
        if answer.status != 200:
            raise refused(node.name, answer)
        # Headers such as the length belong to the agent's connection, not to ours.
        return Response(answer.status, answer.body, answer.content_type, stream=answer.stream)
