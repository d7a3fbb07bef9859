"""The way from a pod to the agent of its node.

The server knows where a node's agent listens (its addresses and its port in status). How a request gets
there is handed in (`Forward`), because the way to a node is a client's business.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from allot.api import Fields, Kind, Object, Request, Response, errors

from ..reading.reader import not_found
from ..requests.call import Call
from ..storing.repository import Repository

_AGENT_PORT = 10250
_ADDRESSES = ("InternalIP", "Hostname", "ExternalIP")
_HOLLOW = "hollow://"
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class NodeAddress:
    node: str
    host: str
    port: int


Forward = Callable[[NodeAddress, Request], Awaitable[Response]]
"""Sends a request to a node's agent, over TLS that both sides verify."""


class Reaching:
    def __init__(self, repository: Repository, nodes: Kind, forward: Forward | None) -> None:
        self._repository = repository
        self._nodes = nodes
        self._forward = forward

    async def pod(self, call: Call) -> Fields:
        target = call.target
        found = await self._repository.find(call.kind, target.namespace, target.name)
        if found.object is None:
            raise not_found(call.kind, target.name)
        return found.object.fresh()

    async def node(self, pod: Fields) -> Object:
        """The node that a pod is on. Raises BadRequest and Unavailable."""
        name = (pod.get("spec") or {}).get("nodeName")
        if not name:
            raise errors.BadRequest(f"pod {pod['metadata']['name']} does not have a host assigned")
        found = await self._repository.find(self._nodes, "", name)
        if found.object is None:
            raise errors.Unavailable(f'nodes "{name}" not found: the pod\'s node is gone')
        return found.object

    async def ask(self, node: Object, request: Request) -> Response:
        """Raises Unavailable."""
        if self._forward is None:
            raise errors.Unavailable("this server has no way to the nodes")
        return await self._forward(address_of(node.name, node.fields), request)


def address_of(name: str, node: Mapping[str, Any]) -> NodeAddress:
    """Where its agent listens. Raises Unavailable."""
    status = node.get("status") or {}
    known = {one.get("type"): one.get("address") for one in status.get("addresses") or ()}
    host = next((known[kind] for kind in _ADDRESSES if known.get(kind)), None)
    if host is None:
        raise errors.Unavailable(f"node {name} does not say its address")
    endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
    return NodeAddress(name, host, endpoint.get("Port") or _AGENT_PORT)


def is_hollow(node: Mapping[str, Any]) -> bool:
    """As the node says of itself."""
    info = (node.get("status") or {}).get("nodeInfo") or {}
    return is_hollow_runtime(str(info.get("containerRuntimeVersion") or ""))


def is_hollow_runtime(version: str) -> bool:
    return version.startswith(_HOLLOW)


def hollow_pod(pod: str, node: str, so: str) -> errors.BadRequest:
    """What is said of a pod on a hollow node; `so` is what follows from it."""
    return errors.BadRequest(f"pod {pod} is on {node}, a hollow node, where nothing really runs: {so}")


def refused(node: str, answer: Response) -> errors.ApiError:
    """The agent's own words, as an error of the API."""
    said = answer.body.decode(errors="replace").strip() or f"status {answer.status}"
    return errors.from_status({"message": f"node {node}: {said}"}, answer.status)


def container_of(pod: Fields, asked: str) -> str:
    """The container that is meant. Raises BadRequest."""
    spec = pod.get("spec") or {}
    names = [container["name"] for kind in _CONTAINERS for container in spec.get(kind) or ()]
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
