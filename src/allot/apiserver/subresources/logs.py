"""pods/NAME/log: asked of the node that runs the pod.

The server knows where a node's agent listens (its addresses and its port in
status) and forwards the question; the answer streams through. How it gets there
is handed in (`Forward`), because the way to a node is a client's business.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from allot.api import Fields, Kind, Request, Response, errors

from ..reading.reader import not_found
from ..requests.call import Call
from ..storing.repository import Repository
from .inside import hollow_pod, is_hollow

_AGENT_PORT = 10250
_ADDRESSES = ("InternalIP", "Hostname", "ExternalIP")
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


@dataclass(frozen=True, slots=True)
class NodeAddress:
    node: str
    host: str
    port: int


Forward = Callable[[NodeAddress, Request], Awaitable[Response]]
"""Sends a request to a node's agent, over TLS that both sides verify."""


class Logs:
    def __init__(self, repository: Repository, nodes: Kind, forward: Forward | None) -> None:
        self._repository = repository
        self._nodes = nodes
        self._forward = forward

    async def get(self, call: Call) -> Response:
        target = call.target
        found = await self._repository.find(call.kind, target.namespace, target.name)
        if found.object is None:
            raise not_found(call.kind, target.name)
        pod = found.object.fresh()
        container = _container(pod, call.request.query.get("container", ""))
        node = (pod.get("spec") or {}).get("nodeName")
        if not node:
            raise errors.BadRequest(f"pod {target.name} does not have a host assigned")
        if self._forward is None:
            raise errors.Unavailable("this server has no way to the nodes")
        address = await self._address(node, target.name)
        query = {name: call.request.query[name] for name in _PASSED_ON if name in call.request.query}
        path = f"/containerLogs/{target.namespace}/{target.name}/{container}"
        answer = await self._forward(address, Request("GET", path, query))
        # Headers such as the length belong to the agent's connection, not to ours.
        return Response(answer.status, answer.body, answer.content_type, stream=answer.stream)

    async def _address(self, name: str, pod: str) -> NodeAddress:
        found = await self._repository.find(self._nodes, "", name)
        if found.object is None:
            raise errors.Unavailable(f'nodes "{name}" not found: the pod\'s node is gone')
        if is_hollow(found.object.fields):
            raise hollow_pod(pod, found.object.fields, "it has no logs")
        status = found.object.fields.get("status") or {}
        known = {one.get("type"): one.get("address") for one in status.get("addresses") or ()}
        host = next((known[kind] for kind in _ADDRESSES if known.get(kind)), None)
        if host is None:
            raise errors.Unavailable(f"node {name} does not say its address")
        endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
        return NodeAddress(name, host, endpoint.get("Port") or _AGENT_PORT)


def _container(pod: Fields, asked: str) -> str:
    spec = pod.get("spec") or {}
    names = [
        container["name"]
        for kind in ("containers", "initContainers", "ephemeralContainers")
        for container in spec.get(kind) or ()
    ]
    if asked:
        if asked not in names:
            raise errors.BadRequest(f"container {asked} is not valid for pod {pod['metadata']['name']}")
        return asked
    usual = (pod["metadata"].get("annotations") or {}).get("kubectl.kubernetes.io/default-container")
    if usual in names:
        return str(usual)
    regular = [container["name"] for container in spec.get("containers") or ()]
    if len(regular) > 1:
        choose = " ".join(regular)
        raise errors.BadRequest(
            f"a container name must be specified for pod {pod['metadata']['name']}, choose one of: [{choose}]"
        )
    return str(regular[0])
