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

from .classic import CALL_S, ClassicCalls
from .counting import Counts
from .keeping import Keeper
from .registry_loop import Registry
from .told import PREPARE, UNPREPARE, Batches, Device, Entry, require_registered, wanted


class Preparing:
    def __init__(
        self, keeper: Keeper, registry: Registry, counts: Counts, *, heeds_classic: bool = True
    ) -> None:
        """A node that does not heed classic claims still gives back those that it has prepared."""
        self._keeper = keeper
        self._heeds_classic = heeds_classic
        self._registry = registry
        self._counts = counts
        self.told = keeper.told
        self._classic = ClassicCalls(registry, keeper.told, counts)
        counts.holds(self.told.entries)

    async def prepare(self, pod: str, claims: Sequence[Object]) -> Devices:
        """Raises NotReady, and Unfinished once a driver may have been told."""
        with self._counts.operation("PrepareResources"):
            entries = [wanted(claim) for claim in claims]
            drivers = self._registry.drivers
            require_registered(entries, drivers.names, drivers.classic_names)
            if self.told.begin(pod, entries) and not self.told.to_prepare(pod):
                await self._keep()  # who uses it, though no driver is told: the last one out has to know
            await self.prepare_again(pod)
            self._counts.skipped(entries, PREPARE)
            return self.devices(pod)

    async def prepare_again(self, pod: str) -> None:
        """What this process has not yet heard the drivers' answer to. Raises Unfinished."""
        heeded = {entry.claim for entry in self.heeded(pod)}
        told = self.told.to_prepare(pod).items()
        found = {driver: tuple(one for one in claims if one in heeded) for driver, claims in told}
        batches = {driver: claims for driver, claims in found.items() if claims}
        if not batches:
            return
        await self._keep()
        failures = await self._each(batches, self._prepare, self._classic.prepare)
        await self._keep()
        _require_none(failures, Unfinished)

    def heeded(self, pod: str) -> tuple[Entry, ...]:
        """What the containers of a pod get their devices from."""
        return tuple(one for one in self.told.of(pod) if self._heeds_classic or not one.is_classic)

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
        entries = self.told.of(pod)
        if not entries:
            return
        with self._counts.operation("UnprepareResources"):
            self._counts.skipped((one for one in entries if one.pods == {pod}), UNPREPARE)
            batches = self.told.leave(pod)
            failures = await self._each(batches, self._unprepare, self._classic.unprepare)
            await self._keep()
            _require_none(failures, NotReady)

    async def _each(
        self,
        batches: Batches,
        together: Callable[[str, Sequence[ClaimRef]], Awaitable[list[str]]],
        one_by_one: Callable[[str, ClaimRef], Awaitable[list[str]]],
    ) -> list[list[str]]:
        """Each driver: of its structured claims in one call, of its classic ones in one call each."""
        calls = []
        for driver, claims in batches.items():
            classic = [one for one in claims if self.told.part(driver, one.uid).handle is not None]
            rest = [one for one in claims if one not in classic]
            calls += [together(driver, rest)] if rest else []
            calls += [one_by_one(driver, one) for one in classic]
        return await asyncio.gather(*calls)

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
        version = reached[1]
        path = (version.prepare if method is dra.prepare else version.unprepare).path
        try:
            with self._counts.call(driver, path):
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
        self._counts.holds(self.told.entries)
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
