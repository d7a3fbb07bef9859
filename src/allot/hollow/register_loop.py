"""Writes a fleet into the API: nodes, leases, slices, classes, templates.

Every node registers itself and publishes its own slices, with the rights of a node. What
belongs to no node (pools on a fabric, device classes, examples) is written with the rights
of the hollow nodes' own component.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from allot.api import Object, age, errors, resource
from allot.client import Client, Resource
from allot.fleet import FLEET_LABEL, Fleet, Member
from allot.node import LEASE_NAMESPACE, lease, owner_reference

from .actors import Actors
from .registering import pool_changes, registered, superfluous

log = logging.getLogger(__name__)

Fields = dict[str, Any]

AT_ONCE = 64
"""Members that register at the same time: enough for the store to write many at once."""


class Registering:
    def __init__(self, actors: Actors, fleet: Fleet, version: str) -> None:
        self._actors = actors
        self._fleet = fleet
        self._version = version
        self._nodes: dict[str, Object] = {}
        self._leases: set[str] = set()
        self._pools: dict[tuple[str, str], list[Object]] = {}

    async def run(self) -> frozenset[str]:
        """Make it so, and return the nodes whose leases are fresh or known."""
        await self._look()
        await self._remove(superfluous(self._nodes.values(), self._fleet.names, self._fleet.name))
        await self._offer()
        members = self._fleet.members()
        while batch := tuple(islice(members, AT_ONCE)):
            await _all(self._register(member) for member in batch)
        await self._publish_shared()
        return frozenset(self._leases)

    async def _look(self) -> None:
        component = self._actors.component
        nodes = component.resource("", "v1", "nodes", namespaced=False)
        slices = _slices(component)
        leases = component.resource("coordination.k8s.io", "v1", "leases")
        async for page in nodes.pages(label_selector=FLEET_LABEL):
            self._nodes.update((node.name, node) for node in page.objects)
        async for page in leases.pages(LEASE_NAMESPACE):
            self._leases.update(one.name for one in page.objects)
        async for page in slices.pages(label_selector=FLEET_LABEL):
            for one in page.objects:
                self._pools.setdefault(resource.pools.pool_of(one.fields), []).append(one)

    async def _remove(self, nodes: Sequence[Object]) -> None:
        """Their slices, leases and pods follow: these are owned, or nobody's any more."""
        deleting = self._actors.component.resource("", "v1", "nodes", namespaced=False)
        for node in nodes:
            with contextlib.suppress(errors.NotFound):
                await deleting.delete(node.name, uid=node.uid)
            del self._nodes[node.name]

    async def _offer(self) -> None:
        """Classes and examples: made once, and the administrator's from then on."""
        component = self._actors.component
        for plural, objects, namespaced in (
            ("deviceclasses", self._fleet.classes, False),
            ("resourceclaimtemplates", self._fleet.templates, True),
        ):
            offering = component.resource("resource.k8s.io", "v1", plural, namespaced=namespaced)
            for one in objects:
                with contextlib.suppress(errors.AlreadyExists):
                    await offering.create(one)

    async def _register(self, member: Member) -> None:
        own = self._actors.of_node(member.name)
        node = self._nodes.get(member.name)
        if node is None:
            node = await self._introduce(member, own)
        if node is None:
            return
        if node.name not in self._leases:
            leases = own.resource("coordination.k8s.io", "v1", "leases")
            with contextlib.suppress(errors.AlreadyExists):
                await leases.create(lease(node, self._actors.clock.now(), self._actors.renewing))
            self._leases.add(node.name)
        owner = owner_reference(node)
        for pool, wanted in resource.pools.by_pool(member.slices).items():
            await _write(own, pool_changes(wanted, self._pools.pop(pool, []), owner))

    async def _introduce(self, member: Member, own: Client) -> Object | None:
        now = age.timestamp(self._actors.clock.now())
        nodes = own.resource("", "v1", "nodes", namespaced=False)
        try:
            return await nodes.create(registered(member.node, self._version, now))
        except errors.AlreadyExists:
            # REG2: somebody else has a node of this name, and it stays theirs.
            log.warning("node %s exists and is not hollow: it is left alone", member.name)
            return None

    async def _publish_shared(self) -> None:
        component = self._actors.component
        for pool, wanted in resource.pools.by_pool(self._fleet.shared).items():
            await _write(component, pool_changes(wanted, self._pools.pop(pool, []), None))
        # Pools that no node of the fleet has and no rack either. What nodes own goes with them.
        for known in self._pools.values():
            left = tuple(one for one in known if not _owner(one))
            await _write(component, resource.pools.Changes(delete=left))


def _slices(client: Client) -> Resource:
    return client.resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)


async def _write(client: Client, changes: resource.pools.Changes) -> None:
    slices = _slices(client)
    for one in changes.delete:
        with contextlib.suppress(errors.NotFound):
            await slices.delete(one.name, uid=one.uid, resource_version=one.resource_version)
    for new in changes.replace:
        await slices.update(new)
    for new in changes.create:
        try:
            await slices.create(new)
        except errors.AlreadyExists:  # somebody took its label away
            await slices.update(new)


def _owner(slice: Object) -> bool:
    return bool(slice.fields["metadata"].get("ownerReferences"))


async def _all(work: Iterable[Any]) -> None:
    """All of them; the first refusal ends the others too."""
    try:
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one)
    except* errors.ApiError as refused:
        raise refused.exceptions[0] from None
