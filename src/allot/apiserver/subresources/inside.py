"""exec, attach, port-forward, proxy and ephemeral containers: what reaches into a pod that runs.

None of them is there. Whoever asks is told so in words, and on a hollow node, that nothing runs there.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from allot.api import Kind, Response, errors

from ..reading.reader import not_found
from ..requests.call import Call
from ..storing.repository import Repository

_HOLLOW = "hollow://"
_REACHES = {
    "attach": "attach to",
    "exec": "run a command in",
    "portforward": "forward a port to",
    "proxy": "pass a request on to",
}

Verb = Callable[[Call], Awaitable[Response]]


def hollow_pod(pod: str, node: Mapping[str, Any], so: str) -> errors.BadRequest:
    """What is said of a pod on a hollow node; `so` is what follows from it."""
    return errors.BadRequest(
        f"pod {pod} is on {node['metadata']['name']}, a hollow node, where nothing really runs: {so}"
    )


def is_hollow(node: Mapping[str, Any]) -> bool:
    """As the node says of itself."""
    info = (node.get("status") or {}).get("nodeInfo") or {}
    return str(info.get("containerRuntimeVersion") or "").startswith(_HOLLOW)


class Inside:
    def __init__(self, repository: Repository, nodes: Kind) -> None:
        self._repository = repository
        self._nodes = nodes

    def verbs(self) -> Mapping[str, Mapping[str, Verb]]:
        """By subresource and method."""
        reaching = dict.fromkeys(("create", "get", "update", "patch", "delete"), self._no_way)
        added = dict.fromkeys(("get", "update", "patch"), self._nothing_added)
        return {**dict.fromkeys(_REACHES, reaching), "ephemeralcontainers": added}

    async def _no_way(self, call: Call) -> Response:
        name, subresource = call.target.name, call.target.subresource
        found = await self._repository.find(call.kind, call.target.namespace, name)
        if found.object is None:
            raise not_found(call.kind, name)
        node_name = (found.object.fields.get("spec") or {}).get("nodeName")
        if not node_name:
            raise errors.BadRequest(f"pod {name} does not have a host assigned")
        node = (await self._repository.find(self._nodes, "", node_name)).object
        if node is not None and is_hollow(node.fields):
            raise hollow_pod(name, node.fields, f"there is no container to {_REACHES[subresource]}")
        raise errors.BadRequest(f"this server has no way to {_REACHES[subresource]} pod {name}")

    async def _nothing_added(self, call: Call) -> Response:
        """Without the pod's name in it: kubectl takes that for a cluster that has no such containers."""
        raise errors.NotFound(
            "this server adds no containers to a pod that is there",
            group=call.kind.group,
            kind=call.kind.plural,
        )
