"""Hollow nodes: a group grows by Node objects that whoever plays hollow nodes then plays.

Each is written as the node itself, with its slices; what it has is what its fleet in the catalogue has. Names
are `GROUP-0`, `GROUP-1` and so on, the lowest that are free.
"""

import contextlib
from collections.abc import Callable
from typing import Any

from allot.api import Object, errors, resource
from allot.client import Client
from allot.fleet import Member

from ..groups import LABEL, GroupEntry
from ..templates import provided
from .contract import ProviderFailed

PROVIDER_ID = "hollow://"
"""Before a node's name: how providers and autoscalers call it."""
Fields = dict[str, Any]


class HollowProvider:
    def __init__(self, client: Client, of_node: Callable[[str], Client]) -> None:
        self._nodes = client.resource("", "v1", "nodes", namespaced=False)
        self._of_node = of_node

    async def resize(self, group: GroupEntry, nodes: int) -> None:
        try:
            there = {
                node.name for node in (await self._nodes.list(label_selector=f"{LABEL}={group.name}")).objects
            }
            number = 0
            while len(there) < nodes:
                name = f"{group.name}-{number}"
                number += 1
                if name not in there and await self._made(group, name):
                    there.add(name)
        except errors.ApiError as refused:
            raise ProviderFailed(f"group {group.name}: {refused}") from refused

    async def remove(self, group: GroupEntry, node: str) -> None:
        try:
            with contextlib.suppress(errors.NotFound):
                await self._nodes.delete(node)
        except errors.ApiError as refused:
            raise ProviderFailed(f"node {node}: {refused}") from refused

    async def _made(self, group: GroupEntry, name: str) -> bool:
        """False where somebody else has a node of that name."""
        member, own = _member(group, name), self._of_node(name)
        try:
            made = await own.resource("", "v1", "nodes", namespaced=False).create(member.node)
        except errors.AlreadyExists:
            return False
        owner = {"apiVersion": "v1", "kind": "Node", "name": made.name, "uid": made.uid, "controller": True}
        slices = own.of(resource.RESOURCE_SLICE)
        for one in member.slices:
            with contextlib.suppress(errors.AlreadyExists):
                await slices.create({**one, "metadata": {**one["metadata"], "ownerReferences": [owner]}})
        return True


def _member(group: GroupEntry, name: str) -> Member:
    template = provided(group)
    if template is None:
        if not group.fleet:
            why = "it has no `fleet`, and neither a command nor a provider is named"
            raise ProviderFailed(f"group {group.name}: {why}")
        raise ProviderFailed(f"group {group.name}: no fleet of the catalogue is called {group.fleet!r}")
    more = template.named(name, group.name)
    node: Fields = {**more.node.fresh(), "metadata": {"name": name, "labels": more.node.metadata.labels}}
    node["spec"] = {**(node.get("spec") or {}), "providerID": f"{PROVIDER_ID}{name}"}
    return Member(node, tuple(_bare(one) for one in more.slices))


def _bare(slice: Object) -> Fields:
    fields = slice.fresh()
    return {**fields, "metadata": {"name": slice.name, "labels": {}}}
