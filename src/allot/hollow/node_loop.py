"""Keeps nodes alive: their leases, and the word that they are ready.

One task renews for all nodes: whoever is due is written together, so that the store commits
many renewals at once. A node that a controller has given up on says that it is there.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from allot.api import Object, age, errors
from allot.client import level_of
from allot.informers import Change, Deleted, Informer, Reconciler, Telemetry
from allot.node import Renewals

from .actors import LEASE_NAMESPACE, Actors, lease, renewed
from .registering import awake, is_awake, is_hollow

log = logging.getLogger(__name__)

TOGETHER_S = 0.25
"""How long renewals gather before they are written."""


class Nodes:
    def __init__(
        self, actors: Actors, nodes: Informer, telemetry: Telemetry, leased: frozenset[str] = frozenset()
    ) -> None:
        """`leased` have a lease that is fresh, or will be looked at as if it were."""
        self._actors = actors
        self._nodes = nodes
        self._leased = leased
        self._renewals = Renewals(actors.renewing.every_s)
        self._joined = asyncio.Event()
        self.waking: Reconciler[str] = Reconciler("hollow_nodes", self._wake, actors.clock, telemetry)

    def __len__(self) -> int:
        return len(self._renewals)

    def on_node(self, change: Change) -> None:
        node = change.object
        if isinstance(change, Deleted) or not is_hollow(node):
            self._renewals.leave(node.name)
            return
        now_s = self._actors.clock.monotonic_s()
        self._renewals.join(node.name, now_s, at_once=node.name not in self._leased)
        self._joined.set()
        if not is_awake(node):
            self.waking.add(node.name)

    async def _wake(self, name: str) -> None:
        node = self._nodes.cache.get(name)
        if node is None or not is_hollow(node) or is_awake(node):
            return
        metadata = {"uid": node.uid, "resourceVersion": node.resource_version}
        conditions = awake(node.fields, age.timestamp(self._actors.clock.now()))
        patch: Mapping[str, Any] = {"metadata": metadata, "status": {"conditions": conditions}}
        nodes = self._actors.of_node(name).resource("", "v1", "nodes", namespaced=False)
        try:
            await nodes.patch(name, patch, subresource="status")
        except errors.NotFound:
            return  # told in a moment

    async def renew(self) -> None:
        """For ever."""
        clock = self._actors.clock
        while True:
            names = self._renewals.due(clock.monotonic_s())
            if names:
                spec = renewed(clock.now(), self._actors.renewing)
                await asyncio.gather(*(self._renew(name, spec) for name in names))
            await self._until_due()

    async def _until_due(self) -> None:
        next_s = self._renewals.next_s()
        if next_s is None:
            self._joined.clear()
            await self._joined.wait()
            return
        await asyncio.sleep(max(TOGETHER_S, next_s - self._actors.clock.monotonic_s()))

    async def _renew(self, name: str, spec: Mapping[str, Any]) -> None:
        leases = self._actors.of_node(name).resource("coordination.k8s.io", "v1", "leases")
        try:
            await leases.patch(name, {"spec": spec}, LEASE_NAMESPACE)
        except errors.NotFound:
            await self._lease_anew(name)
        except errors.ApiError as refused:
            self._failed(name, refused)

    async def _lease_anew(self, name: str) -> None:
        node: Object | None = self._nodes.cache.get(name)
        if node is None:
            return
        leases = self._actors.of_node(name).resource("coordination.k8s.io", "v1", "leases")
        try:
            await leases.create(lease(node, self._actors.clock.now(), self._actors.renewing))
        except errors.ApiError as refused:
            self._failed(name, refused)

    def _failed(self, name: str, refused: errors.ApiError) -> None:
        log.log(level_of(refused, logging.WARNING), "a lease was not renewed: %s: %s", name, refused)
        self._renewals.failed(name, self._actors.clock.monotonic_s())
