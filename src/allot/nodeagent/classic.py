"""Classic claims on a node: one call for each to the plugin of its driver, with the handle that it left.

The plugin is the one that is registered under `status.driverName` of the claim; the class is not asked. What
it answers is the whole of what containers get, so its devices have no names besides those for the runtime.
"""

from allot.node import ClaimRef
from allot.wire import CallFailed, cdi, classic

from .counting import Counts
from .registry_loop import Registry
from .told import Device, Told

CALL_S = 45.0


class ClassicCalls:
    def __init__(self, registry: Registry, told: Told, counts: Counts) -> None:
        self._registry = registry
        self._told = told
        self._counts = counts

    async def prepare(self, driver: str, claim: ClaimRef) -> list[str]:
        """What did not go well, in words."""
        channel = self._registry.reach_classic(driver)
        if channel is None:
            return [_absent(driver)]
        handle = self._told.part(driver, claim.uid).handle or ""
        asked = classic.NodePrepareResourceRequest(claim.namespace, claim.uid, claim.name, handle)
        try:
            with self._counts.call(driver, classic.PREPARE.path):
                answer = await channel.call(classic.PREPARE, asked, timeout_s=CALL_S)
            for name in answer.cdi_devices:
                cdi.qualified_name(name)
        except (CallFailed, ValueError) as failed:
            return [_failed(driver, claim, failed)]
        devices = [Device("", "", cdi_ids=answer.cdi_devices)] if answer.cdi_devices else []
        self._told.answered(driver, claim.uid, devices)
        return []

    async def unprepare(self, driver: str, claim: ClaimRef) -> list[str]:
        channel = self._registry.reach_classic(driver)
        if channel is None:
            return [_absent(driver)]
        part = self._told.part(driver, claim.uid)
        names = tuple(name for device in part.devices for name in device.cdi_ids)
        asked = classic.NodeUnprepareResourceRequest(claim.namespace, claim.uid, claim.name, names)
        try:
            with self._counts.call(driver, classic.UNPREPARE.path):
                await channel.call(classic.UNPREPARE, asked, timeout_s=CALL_S)
        except CallFailed as failed:
            return [_failed(driver, claim, failed)]
        self._told.unprepared(driver, claim.uid)
        return []


def _absent(driver: str) -> str:
    return f"the resource plugin of driver {driver} is not registered on this node"


def _failed(driver: str, claim: ClaimRef, failed: Exception) -> str:
    return f"claim {claim.name}: resource plugin of driver {driver}: {failed}"
