"""Keeps the server's certificate from running out while the server runs."""

import asyncio
import logging
import ssl
from collections.abc import Sequence
from pathlib import Path

from allot.base import Clock

from ..security import Authority, open_serving

log = logging.getLogger(__name__)

EVERY_S = 6 * 3600.0


async def keep_renewed(
    context: ssl.SSLContext, data_dir: Path, authority: Authority, names: Sequence[str], clock: Clock
) -> None:
    """Until cancelled. Open connections keep the certificate they began with; new ones get the new."""
    while True:
        await asyncio.sleep(EVERY_S)
        try:
            renew(context, data_dir, authority, names, clock)
        except (OSError, ValueError) as error:
            log.error("the serving certificate could not be renewed and will be tried again: %s", error)


def renew(
    context: ssl.SSLContext, data_dir: Path, authority: Authority, names: Sequence[str], clock: Clock
) -> None:
    """Make a new certificate if the old one is about to run out, and serve what is there."""
    files = open_serving(data_dir, authority, names, clock.now())
    context.load_cert_chain(files.certificate, files.key)
