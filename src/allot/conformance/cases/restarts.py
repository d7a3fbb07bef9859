"""The driver ends and begins anew."""

import asyncio
from contextlib import suppress
from typing import Final

from ..stage import Broken, NotTried, Stage, shown
from .files import resolved, without_files

SOON_S: Final = (0.01, 0.1)
"""After a call began: while it is under way, or nearly so."""


async def a_restarted_driver_knows_its_claims(stage: Stage) -> None:
    """A driver that was restarted answers for prepared claims as before, and unprepares them."""
    made = await stage.claim()
    first = await stage.ready(made)
    await stage.restart()
    answer = (await stage.prepare(made.claim))[made.claim.uid]
    if answer != first:
        raise Broken(f"before the restart {shown(first)}, after it {shown(answer)}")
    await stage.restart()
    await stage.released(made.claim)


async def a_restart_between_prepare_and_answer(stage: Stage) -> None:
    """A driver that ends in the middle of a prepare prepares the claim when it is asked again."""
    if stage.settings.restart is None:
        raise NotTried("a way to restart the driver: --restart")
    made = await stage.claim()
    for after_s in SOON_S:
        call = asyncio.ensure_future(stage.prepare(made.claim))
        await asyncio.sleep(after_s)
        await stage.restart()
        with suppress(Broken):
            await call
        await stage.ready(made)
        await stage.released(made.claim)


async def a_reboot_is_survived(stage: Stage) -> None:
    """After a reboot, with its CDI files gone, a driver prepares again what it is asked to."""
    if stage.settings.restart is None:
        raise NotTried("a way to restart the driver: --restart")
    made, _ = await without_files(stage)
    await stage.restart()
    answer = await stage.ready(made)
    ids = [name for one in answer.devices for name in one.cdi_device_ids]
    resolved(stage, ids, "the files were lost, the driver restarted, and prepare was repeated")
