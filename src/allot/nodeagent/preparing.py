"""Tells drivers to prepare and to unprepare, in the order that a crash cannot spoil.

    prepare      all drivers there? · written down · each driver told, in one call · answers written down
    unprepare    each driver told · written down

A claim is on disk before any driver hears of it, and until each of them has let go of it (N6); whatever was
not written down is told again, which drivers answer as before (N3).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from allot.api import Object
from allot.base import os_reason
from allot.node import ClaimRef, Devices, NotReady, Unfinished
from allot.wire import CallFailed, Channel, dra

from .keeping import Keeper
from .registry_loop import Registry
from .told import Device, require_registered, wanted

CALL_S = 45.0


class Preparing:
    def __init__(self, keeper: Keeper, registry: Registry) -> None:
        self._keeper = keeper
        self._registry = registry
        self.told = keeper.told

    async def prepare(self, pod: str, claims: Sequence[Object]) -> Devices:
        """Raises NotReady, and Unfinished once a driver may have been told."""
        entries = [wanted(claim) for claim in claims]
        require_registered(entries, self._registry.drivers.names)
        self.told.begin(pod, entries)
        await self.prepare_again(pod)
        return self.devices(pod)

    async def prepare_again(self, pod: str) -> None:
        """What this process has not yet heard the drivers' answer to. Raises Unfinished."""
        batches = self.told.to_prepare(pod)
        if not batches:
            return
        await self._keep()
        failures = await asyncio.gather(*(self._prepare(*batch) for batch in batches.items()))
        await self._keep()
        _require_none(failures, Unfinished)

    def devices(self, pod: str) -> Devices:
        """By claim, the names by which a runtime knows what was prepared."""
        return {
            entry.claim.uid: tuple(
                name for part in entry.parts.values() for device in part.devices for name in device.cdi_ids
            )
            for entry in self.told.of(pod)
        }

    async def unprepare(self, pod: str) -> None:
        """Raises NotReady."""
        if not self.told.of(pod):
            return
        batches = self.told.leave(pod)
        failures = await asyncio.gather(*(self._unprepare(*batch) for batch in batches.items()))
        await self._keep()
        _require_none(failures, NotReady)

    async def _prepare(self, driver: str, claims: Sequence[ClaimRef]) -> list[str]:
        answers, failures = await self._call(driver, claims, dra.prepare)
        for uid, answer in answers.items():
            devices = [
                Device(
                    one.pool_name,
                    one.device_name,
                    tuple(name.partition("/")[0] for name in one.request_names),
                    one.cdi_device_ids,
                    one.share_id or "",
                )
                for one in answer.devices
            ]
            self.told.answered(driver, uid, devices)
        return failures

    async def _unprepare(self, driver: str, claims: Sequence[ClaimRef]) -> list[str]:
        answers, failures = await self._call(driver, claims, dra.unprepare)
        for uid in answers:
            self.told.unprepared(driver, uid)
        return failures

    async def _call(
        self,
        driver: str,
        claims: Sequence[ClaimRef],
        method: Callable[..., Awaitable[Mapping[str, Any]]],
    ) -> tuple[Mapping[str, Any], list[str]]:
        """What went well, by claim, and what did not, in words."""
        reached = self._registry.reach(driver)
        if reached is None:
            return {}, [f"DRA driver {driver} is not registered on this node"]
        try:
            answers = await _told(method, *reached, claims)
        except CallFailed as failed:
            return {}, [f"DRA driver {driver}: {failed}"]
        failures = []
        for claim in claims:
            if claim.uid not in answers:
                failures.append(f"claim {claim.name}: DRA driver {driver} did not answer for it")
            elif answers[claim.uid].error:
                failures.append(f"claim {claim.name}: DRA driver {driver}: {answers[claim.uid].error}")
        asked = {claim.uid for claim in claims}
        well = {uid: one for uid, one in answers.items() if uid in asked and not one.error}
        return well, failures

    async def _keep(self) -> None:
        try:
            await self._keeper.keep()
        except OSError as failed:
            why = f"{failed.filename}: {os_reason(failed)}"
            raise Unfinished(f"what drivers are told cannot be written down: {why}") from None


async def _told(
    method: Callable[..., Awaitable[Mapping[str, Any]]],
    channel: Channel,
    version: dra.Version,
    claims: Sequence[ClaimRef],
) -> Mapping[str, Any]:
    asked = [dra.Claim(claim.namespace, claim.uid, claim.name) for claim in claims]
    return await method(channel, version, asked, timeout_s=CALL_S)


def _require_none(failures: Sequence[Sequence[str]], otherwise: type[NotReady]) -> None:
    said = [one for of_driver in failures for one in of_driver]
    if said:
        raise otherwise("; ".join(said))
