"""What the driver says of its devices: slices and health."""

import asyncio
from contextlib import aclosing, suppress
from typing import Final

from allot.api import resource
from allot.wire import CallFailed, health

from ..devices import newest
from ..stage import Broken, NotTried, Stage

REPORT_S: Final = 15.0


async def pools_are_complete(stage: Stage) -> None:
    """Of each pool as many slices are published as each of them announces."""
    pools = newest(await stage.slices())
    if not pools:
        raise Broken(f"no ResourceSlice of {stage.driver} is published")
    for name, own in pools.items():
        announced = {one.spec.pool.resource_slice_count for one in own}
        if announced != {len(own)}:
            raise Broken(f"pool {name} has {len(own)} slices and announces {sorted(announced)}")


async def deleted_slices_come_back(stage: Stage) -> None:
    """A kubelet deletes the slices of a driver that it lost sight of: the driver publishes them again."""
    slices = await stage.slices()
    node = stage.node(slices)
    wanted = {device.name for one in slices if one.spec.node_name == node for device in one.spec.devices}
    if not node or not wanted:
        raise NotTried("slices that belong to a node")
    own = stage.client().of(resource.RESOURCE_SLICE)
    await own.delete_collection(field_selector=f"spec.driver={stage.driver},spec.nodeName={node}")
    missing = wanted
    with suppress(TimeoutError):
        async with asyncio.timeout(stage.settings.come_back_s):
            while True:
                now = [one for one in await stage.slices() if one.spec.node_name == node]
                missing = wanted - {device.name for one in now for device in one.spec.devices}
                if not missing:
                    return
                await asyncio.sleep(0.2)
    lost, count = ", ".join(sorted(missing)[:5]), f"{len(missing)} of {len(wanted)}"
    after = f"{stage.settings.come_back_s:.0f} seconds after they were deleted"
    raise Broken(f"{after} {count} devices are in no slice: {lost}")


async def health_reports_can_be_read(stage: Stage) -> None:
    """A report of health names pool and device of everything in it, and a message has 1024 characters at
    most."""
    known = {version.name: version for version in health.VERSIONS}
    version = next((known[name] for name in stage.info.supported_versions if name in known), None)
    if version is None:
        raise NotTried("a driver that registers a health service")
    reports = stage.channel.stream(version.watch, health.NodeWatchResourcesRequest())
    async with aclosing(reports):  # type: ignore[type-var]
        try:
            async with asyncio.timeout(REPORT_S):
                report = await anext(reports)
        except TimeoutError:
            raise NotTried(f"a report within {REPORT_S:.0f} seconds") from None
        except (CallFailed, StopAsyncIteration) as failed:
            raise Broken(f"the watch ends without a report: {failed}") from None
    for one in report.devices:
        if one.device is None or not one.device.pool_name or not one.device.device_name:
            raise Broken("a device of the report has no name, or no pool")
        if len(one.message) > health.MESSAGE_LENGTH_MAX:
            raise Broken(f"the message for {one.device.device_name} has {len(one.message)} characters")
