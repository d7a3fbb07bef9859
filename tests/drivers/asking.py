"""What a kubelet asks of a driver, for one claim."""

from allot.wire import UnixSockets, cdi, dra


async def prepared(world, places, claim):
    """The error, and what a container with all devices of the claim gets."""
    channel = UnixSockets().dial(str(places.service_socket))
    try:
        answer = (await dra.prepare(channel, dra.V1, [claim], timeout_s=60))[claim.uid]
    finally:
        await channel.close()
    names = [name for device in answer.devices for name in device.cdi_device_ids]
    return answer.error, cdi.catalogue([world.places.cdi]).edits(names) if names else None


async def unprepared(places, claim):
    channel = UnixSockets().dial(str(places.service_socket))
    try:
        return (await dra.unprepare(channel, dra.V1, [claim], timeout_s=60))[claim.uid].error
    finally:
        await channel.close()
