"""One claim: prepared, again, at once, and let go."""

import asyncio
from typing import Final

from ..stage import Broken, Stage, shown

AT_ONCE: Final = 10


async def empty_batch(stage: Stage) -> None:
    """A call without claims is answered without claims."""
    await stage.prepare()
    await stage.unprepare()


async def prepares_what_was_allocated(stage: Stage) -> None:
    """An allocated claim is prepared: the answer has its devices of this driver, each with the name of the
    request that it is for."""
    made = await stage.claim()
    answer = await stage.ready(made)
    for one in answer.devices:
        wanted = {request for request, pool, device in made.devices if device == one.device_name}
        if one.request_names and not set(one.request_names) <= wanted:
            raise Broken(
                f"{one.device_name} is for {sorted(wanted)}, and the answer says {[*one.request_names]}"
            )


async def names_requests_without_alternatives(stage: Stage) -> None:
    """Where a request has alternatives, the answer names the request (`r`) and not the alternative (`r/a`):
    containers refer to requests."""
    made = await stage.claim(sub=True)
    for one in (await stage.ready(made)).devices:
        if any("/" in name for name in one.request_names):
            raise Broken(f"the answer says {[*one.request_names]}")


async def prepare_may_be_repeated(stage: Stage) -> None:
    """A prepare that is repeated, as after a restart of the kubelet, gives the same answer."""
    made = await stage.claim()
    first = await stage.ready(made)
    for _ in range(2):
        answer = (await stage.prepare(made.claim))[made.claim.uid]
        if answer != first:
            raise Broken(f"first {shown(first)}, then {shown(answer)}")


async def prepare_may_come_at_once(stage: Stage) -> None:
    """Prepares of one claim that arrive at the same time all get the same answer."""
    made = await stage.claim()
    answers = await asyncio.gather(*(stage.prepare(made.claim) for _ in range(AT_ONCE)))
    first = answers[0][made.claim.uid]
    for answer in answers:
        one = answer[made.claim.uid]
        if one.error or one != first:
            raise Broken(f"of {AT_ONCE} at once one was answered {shown(one)}, another {shown(first)}")


async def unprepare_may_be_repeated(stage: Stage) -> None:
    """A claim that is unprepared may be unprepared again."""
    made = await stage.claim()
    await stage.ready(made)
    await stage.released(made.claim)
    await stage.released(made.claim)


async def unprepare_without_prepare(stage: Stage) -> None:
    """Unprepare of a claim that was never prepared succeeds: a kubelet asks for it when a prepare failed."""
    made = await stage.claim()
    await stage.released(made.claim)


async def unprepare_of_unknown_claims(stage: Stage) -> None:
    """Unprepare of a claim that is not in the API, and perhaps never was, succeeds."""
    await stage.released(stage.unknown())


async def unprepare_after_deletion(stage: Stage) -> None:
    """A claim can be unprepared though it is gone from the API, as after a forced deletion."""
    made = await stage.claim()
    await stage.ready(made)
    await stage.delete(made.claim)
    await stage.released(made.claim)


async def prepare_again_after_unprepare(stage: Stage) -> None:
    """A claim that was unprepared can be prepared again."""
    made = await stage.claim()
    await stage.ready(made)
    await stage.released(made.claim)
    await stage.ready(made)
