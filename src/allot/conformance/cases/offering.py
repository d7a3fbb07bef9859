"""Drivers of numeric parameters (KEP-4381): what they have, and claims that were given some of it."""

import asyncio
from contextlib import aclosing
from typing import Any, Final

import msgspec

from allot.api import encode, numeric
from allot.wire import CallFailed, capacity, classic

from ..stage import Broken, NotTried, Stage

TOLD_S: Final = 15.0
_COUNTER: Final = "counter.dra.config.k8s.io/"


async def capacity_can_be_published(stage: Stage) -> None:
    """Whoever asks is told at once what there is: instances with ids of their own, each with the type of its
    data, which is a JSON object; all within the limits of a NodeResourceCapacity."""
    seen = set()
    for one in await _told(stage):
        if not one.id or one.id in seen:
            raise Broken(f"the id {one.id!r} is given twice, or is none")
        seen.add(one.id)
        if not one.api_version or not one.kind:
            raise Broken(f"instance {one.id} does not say of what type it is")
        if len(one.id.encode()) > numeric.limits.INSTANCE_ID_MAX or len(one.data) > numeric.limits.DATA_MAX:
            raise Broken(f"instance {one.id} is too large to be published")
        if not isinstance(_json(one.data), dict):
            raise Broken(f"data of instance {one.id} is not a JSON object")


async def capacity_is_told_to_everybody(stage: Stage) -> None:
    """A second agent, as after a restart of the first, is told the same whole state while the first still
    listens."""
    async with aclosing(_messages(stage)) as first:
        await _next(first)
        again = await _told(stage)
    if again != await _told(stage):
        raise Broken("two who ask are told different things")


async def capacity_is_told_after_a_restart(stage: Stage) -> None:
    """A driver that begins anew tells the same instances as before."""
    before = {one.id for one in await _told(stage)}
    await stage.restart()
    after = {one.id for one in await _told(stage)}
    if before != after:
        raise Broken(f"before there were {sorted(before)}, and now {sorted(after)}")


async def prepares_what_was_reserved(stage: Stage) -> None:
    """A claim with a part of an instance is prepared, answered alike when asked again, and let go, twice."""
    handle = await _counted(stage)
    names = [await _prepared(stage, "held", handle) for _ in range(2)]
    if names[0] != names[1]:
        raise Broken(f"the second answer is {names[1]}, and the first was {names[0]}")
    for _ in range(2):
        await _let_go(stage, "held", names[0])


async def refuses_what_it_does_not_have(stage: Stage) -> None:
    """A claim whose instance is gone, or has shrunk below what was reserved, is not prepared: the pod waits
    until the resource is back."""
    handle = await _counted(stage)
    for wrong in ({"instance": "conformance-no-such-instance"}, {"count": 2**62}):
        try:
            await _prepared(stage, "gone", {**handle, **wrong})
        except Broken:
            continue
        finally:
            await _let_go(stage, "gone", ())
        raise Broken(f"a claim was prepared that has {wrong}")


# -- what they have in common


def _messages(stage: Stage) -> Any:
    if capacity.VERSION not in stage.info.supported_versions:
        raise NotTried(f"a driver that registers {capacity.VERSION}")
    return stage.channel.stream(capacity.WATCH, capacity.NodeWatchCapacityRequest())


async def _told(stage: Stage) -> tuple[capacity.Instance, ...]:
    async with aclosing(_messages(stage)) as messages:
        return await _next(messages)


async def _next(messages: Any) -> tuple[capacity.Instance, ...]:
    try:
        async with asyncio.timeout(TOLD_S):
            message = await anext(messages)
    except TimeoutError:
        raise Broken(f"nothing is told within {TOLD_S:.0f} seconds") from None
    except (CallFailed, StopAsyncIteration) as failed:
        raise Broken(f"the stream ends without a message: {failed}") from None
    return tuple(message.instances)


async def _counted(stage: Stage) -> dict[str, Any]:
    """An allocation of one piece of a counter."""
    for one in await _told(stage):
        data = _json(one.data)
        if one.api_version.startswith(_COUNTER) and isinstance(data, dict) and data.get("count"):
            return {
                "apiVersion": one.api_version,
                "kind": "Allocation",
                "instance": one.id,
                "count": 1,
                "nodeName": stage.settings.node,
                "resourceClass": {"metadata": {"name": "conformance"}, "driverName": stage.driver},
                "claimParameters": {"metadata": {"name": "conformance"}, "spec": {}},
            }
    raise NotTried("a counter with something left of it")


async def _prepared(stage: Stage, claim: str, handle: dict[str, Any]) -> tuple[str, ...]:
    asked = classic.NodePrepareResourceRequest("default", _uid(claim), claim, encode(handle).decode())
    try:
        answer = await stage.channel.call(classic.PREPARE, asked, timeout_s=stage.settings.call_s)
    except CallFailed as failed:
        raise Broken(f"NodePrepareResource failed: {failed}") from None
    return answer.cdi_devices


async def _let_go(stage: Stage, claim: str, names: tuple[str, ...]) -> None:
    asked = classic.NodeUnprepareResourceRequest("default", _uid(claim), claim, names)
    try:
        await stage.channel.call(classic.UNPREPARE, asked, timeout_s=stage.settings.call_s)
    except CallFailed as failed:
        raise Broken(f"NodeUnprepareResource failed: {failed}") from None


def _uid(claim: str) -> str:
    return f"allot-conformance-{claim}"


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
