"""Keeps nodes alive: their leases, and the word that they are ready.

One task renews for all nodes: whoever is due is written together, so that the store commits
many renewals at once. A node that a controller has given up on says that it is there.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allot.api import Object, age, errors
from allot.client import Resource, level_of
from allot.informers import Change, Deleted, Reconciler

from .hosts import Heard, Hosts, owner_reference
from .renewals import Renewals

log = logging.getLogger(__name__)

Fields = dict[str, Any]
Awake = Callable[[Object, str], list[Fields] | None]
"""The conditions of a node that is there, as of a moment; None if it says so already."""

LEASE_NAMESPACE = "kube-node-lease"
TOGETHER_S = 0.25
"""How long renewals gather before they are written."""


@dataclass(frozen=True, slots=True)
class Renewing:
    """A node says once a minute that it is there; nobody worries for four."""

    every_s: float = 60.0
    duration_s: int = 240


def lease(node: Object, now: datetime, renewing: Renewing) -> Fields:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": node.name,
            "namespace": LEASE_NAMESPACE,
            "ownerReferences": [owner_reference(node)],
        },
        "spec": {"holderIdentity": node.name, **_renewed(now, renewing)},
    }


def _renewed(now: datetime, renewing: Renewing) -> Fields:
    """What a renewal says. The duration too: it may have been another one before."""
    return {"leaseDurationSeconds": renewing.duration_s, "renewTime": age.micro_timestamp(now)}


class LeaseLoop:
    def __init__(
        self,
        hosts: Hosts,
        heard: Heard,
        renewing: Renewing,
        awake: Awake,
        leased: frozenset[str] = frozenset(),
    ) -> None:
        """`leased` have a lease that is fresh, or will be looked at as if it were."""
        self._hosts = hosts
        self._heard = heard
        self._renewing = renewing
        self._awake = awake
        self._leased = leased
        self._renewals = Renewals(renewing.every_s)
        self._joined = asyncio.Event()
        self.waking: Reconciler[str] = Reconciler(
            f"{hosts.name}_nodes", self._wake, hosts.clock, hosts.telemetry
        )

    def __len__(self) -> int:
        return len(self._renewals)

    def on_node(self, change: Change) -> None:
        node = change.object
        if isinstance(change, Deleted) or not self._hosts.is_ours(node):
            self._renewals.leave(node.name)
            return
        now_s = self._hosts.clock.monotonic_s()
        self._renewals.join(node.name, now_s, at_once=node.name not in self._leased)
        self._joined.set()
        if self._awake(node, "") is not None:
            self.waking.add(node.name)

    async def _wake(self, name: str) -> None:
        node = self._heard.node(name)
        if node is None or not self._hosts.is_ours(node):
            return
        conditions = self._awake(node, age.timestamp(self._hosts.clock.now()))
        if conditions is None:
            return
        metadata = {"uid": node.uid, "resourceVersion": node.resource_version}
        patch: Mapping[str, Any] = {"metadata": metadata, "status": {"conditions": conditions}}
        nodes = self._hosts.client(name).resource("", "v1", "nodes", namespaced=False)
        try:
            await nodes.patch(name, patch, subresource="status")
        except errors.NotFound:
            return  # told in a moment

    async def renew(self) -> None:
        """For ever."""
        clock = self._hosts.clock
        while True:
            names = self._renewals.due(clock.monotonic_s())
            if names:
                spec = _renewed(clock.now(), self._renewing)
                await asyncio.gather(*(self._renew(name, spec) for name in names))
            await self._until_due()

    async def _until_due(self) -> None:
        next_s = self._renewals.next_s()
        if next_s is None:
            self._joined.clear()
            await self._joined.wait()
            return
        await asyncio.sleep(max(TOGETHER_S, next_s - self._hosts.clock.monotonic_s()))

    async def _renew(self, name: str, spec: Mapping[str, Any]) -> None:
        try:
            await self._leases(name).patch(name, {"spec": spec}, LEASE_NAMESPACE)
        except errors.NotFound:
            await self._lease_anew(name)
        except errors.ApiError as refused:
            self._failed(name, refused)

    async def _lease_anew(self, name: str) -> None:
        node = self._heard.node(name)
        if node is None:
            return
        try:
            await self._leases(name).create(lease(node, self._hosts.clock.now(), self._renewing))
        except errors.ApiError as refused:
            self._failed(name, refused)

    def _leases(self, name: str) -> Resource:
        return self._hosts.client(name).resource("coordination.k8s.io", "v1", "leases")

    def _failed(self, name: str, refused: errors.ApiError) -> None:
        log.log(level_of(refused, logging.WARNING), "a lease was not renewed: %s: %s", name, refused)
        self._renewals.failed(name, self._hosts.clock.monotonic_s())
