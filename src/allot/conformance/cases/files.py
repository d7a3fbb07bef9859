"""What containers get: CDI devices, and the files that they are in."""

import asyncio

from allot.wire import cdi

from ..stage import Broken, Made, NotTried, Stage


async def cdi_names_are_names(stage: Stage) -> None:
    """CDI devices are qualified names, and there is a spec for each of them that runtimes can read."""
    made = await stage.claim()
    answer = await stage.ready(made)
    ids = [name for one in answer.devices for name in one.cdi_device_ids]
    for name in ids:
        try:
            cdi.qualified_name(name)
        except ValueError as wrong:
            raise Broken(str(wrong)) from None
    resolved(stage, ids, "after prepare")


def resolved(stage: Stage, ids: list[str], when: str) -> None:
    try:
        stage.catalogue().edits(ids)
    except cdi.Unresolvable as missing:
        raise Broken(f"{when}: {missing}") from None


async def unprepare_removes_cdi_devices(stage: Stage) -> None:
    """CDI devices that were made for a claim are gone when it is unprepared."""
    before = set(stage.catalogue().offers)
    made = await stage.claim()
    answer = await stage.ready(made)
    own = {name for one in answer.devices for name in one.cdi_device_ids} - before
    await stage.released(made.claim)
    left = own & set(stage.catalogue().offers)
    if left:
        raise Broken(f"{', '.join(sorted(left))} can still be had")


async def lost_cdi_files_come_back(stage: Stage) -> None:
    """CDI files lie in a directory that a reboot empties: a prepare that is repeated writes them again."""
    made, ids = await without_files(stage)
    await stage.ready(made)
    resolved(stage, ids, "the files were lost, and prepare was repeated")


async def without_files(stage: Stage) -> tuple[Made, list[str]]:
    """A prepared claim whose own CDI files are gone."""
    known = {offer.file for offer in stage.catalogue().offers.values()}
    made = await stage.claim()
    answer = await stage.ready(made)
    ids = [name for one in answer.devices for name in one.cdi_device_ids]
    offers = stage.catalogue().offers
    files = {offers[name].file for name in ids if name in offers} - known
    if not files:
        raise NotTried("a driver that writes a CDI file for a claim")
    for file in files:
        await asyncio.to_thread(file.unlink)
    return made, ids
