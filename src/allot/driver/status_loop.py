"""Writes what the author says of a device into its claim: `status.devices`, with server-side apply.

The driver owns its entries and nothing else, so that several drivers of one claim do not meet. A claim
is prepared whether or not this succeeds; what fails is tried again until the claim is unprepared, and
what is refused is said once.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from allot.api import errors, resource
from allot.base import Clock
from allot.client import Client
from allot.informers import Limits, Reconciler, Telemetry

from .claims import Claim, Given, Ready

log = logging.getLogger(__name__)

LIMITS = Limits(longest_s=30.0)


class Statuses:
    def __init__(self, driver: str, client: Client, clock: Clock, telemetry: Telemetry) -> None:
        self._driver = driver
        self._claims = client.of(resource.RESOURCE_CLAIM)
        self._wanted: dict[str, dict[str, Any]] = {}  # by claim uid: what to apply
        self._refused: set[str] = set()  # claims of which that was said
        self._loop = Reconciler("driver device status", self._apply, clock, telemetry, limits=LIMITS)

    def told(self, claim: Claim, given: Given) -> None:
        devices = entries(self._driver, claim, given)
        if devices:
            self._wanted[claim.uid] = {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": claim.name, "namespace": claim.namespace, "uid": claim.uid},
                "status": {"devices": devices},
            }
            self._loop.add(claim.uid)

    def forget(self, uid: str) -> None:
        self._wanted.pop(uid, None)
        self._refused.discard(uid)

    async def run(self) -> None:
        await self._loop.run()

    async def _apply(self, uid: str) -> None:
        wanted = self._wanted.get(uid)
        if wanted is None:
            return
        try:
            with suppress(errors.NotFound, errors.Conflict):  # it is gone, or another one has its name
                await self._claims.apply(wanted, field_manager=self._driver, force=True, subresource="status")
        except (errors.Forbidden, errors.Invalid) as refused:
            self._say(uid, wanted["metadata"], refused)
            raise
        if self._wanted.get(uid) is wanted:
            del self._wanted[uid]

    def _say(self, uid: str, claim: Mapping[str, str], refused: errors.ApiError) -> None:
        if uid in self._refused:
            return
        self._refused.add(uid)
        name = f"{claim['namespace']}/{claim['name']}"
        log.warning(
            "status.devices of claim %s is not written: %s",
            name,
            refused,
            extra={"driver": self._driver, "claim": name},
        )


def entries(driver: str, claim: Claim, given: Given) -> list[dict[str, Any]]:
    found = []
    for one in claim.devices:
        answer = given.get(one)
        if isinstance(answer, Ready) and answer.status is not None:
            named = {"driver": driver, "pool": one.pool, "device": one.device}
            share = {"shareID": one.share_id} if one.share_id else {}
            found.append({**named, **share, **answer.status.fields()})
    return found
