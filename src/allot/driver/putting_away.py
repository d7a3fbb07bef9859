"""The end of a machine's work, in order: what a driver holds of the machine for claims is let go.

Nobody's container runs any more, and claims stay prepared for whoever begins anew. A driver that keeps
something of the machine for them, an attached device, say, lets go of it (`Driver.put_away`) and keeps what
the claim has stored. Such a claim counts as begun, like one of an earlier boot: whoever needs it has it
prepared again, and whoever gives it back has it undone. It is written down before anything is let go, so
that a crash in between leaves nothing that looks prepared and is not.
"""

import asyncio
import logging

from msgspec.structs import replace

from allot.base import Files, MachineFiles
from allot.wire import cdi

from .assembly import Driver, nothing
from .deeds import done
from .injecting import Injecting
from .metadata import DIRECTORY as METADATA
from .metadata import Metadata
from .places import Places
from .state import State, boot_id

log = logging.getLogger(__name__)


async def put_away(driver: Driver, places: Places, files: Files | None = None) -> None:
    """Once no container has a device of it and the driver itself has ended. Raises BadState, OSError."""
    if driver.put_away is nothing:
        return
    files = files or MachineFiles()
    state = State(places.data, boot_id(), files)
    metadata = Metadata(places.data / METADATA, driver.name, files)
    injecting = Injecting(cdi.SpecDirectory(places.cdi, files), driver.name, metadata)
    async with state.alone():
        prepared = [entry for entry in state.entries.values() if state.is_prepared(entry)]
        await state.put(replace(entry, boot="") for entry in prepared)
        for entry in prepared:
            try:
                await asyncio.to_thread(injecting.remove, entry.uid)
                await done(driver.put_away, entry)
            except Exception as problem:
                log.warning("claim %s keeps what it has of this machine: %s", entry, problem)
