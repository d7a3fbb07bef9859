"""Memory that goes back to the machine.

glibc asks the machine for large blocks one by one and gives each back when it is freed. But with every
such block it raises the size from which it does so, up to 32 MB: after a few large bodies all later
ones lie in the heap, between small blocks that stay, and what a burst of them took is kept for ever. A
bound that does not move keeps it from learning that.

Small blocks are another matter: they are given back when somebody asks, which takes milliseconds. Worth it
after many connections have gone, each of which leaves some 30 KB of them.
"""

import asyncio
import ctypes
from collections.abc import Callable
from typing import Any, Final

LARGE_BYTES: Final = 512 * 1024
"""More than what is taken for each piece that is read from a TLS connection (256 KiB, and cut to what came):
to ask the machine for that, and give it back, costs half as much as answering a small request."""
_SPARE_BYTES: Final = 4 * 1024 * 1024
"""What may stay unused at the end of the heap: less would be asked for and given back in turns."""

MANY: Final = 250
"""So many must have gone before memory is looked through for them."""
_LOOK_EVERY_S: Final = 3.0

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


def return_large_blocks() -> bool:
    """Once a process. False where the C library is another one, and does as it does."""
    mallopt = _of_libc("mallopt")
    if mallopt is None:
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)) and bool(mallopt(_M_TRIM_THRESHOLD, _SPARE_BYTES))


async def return_small_blocks(count: Callable[[], int], every_s: float = _LOOK_EVERY_S) -> None:
    """Until cancelled, whenever many of what `count` counts have gone. In a thread, so that nobody waits."""
    trim, most = _of_libc("malloc_trim"), 0
    while trim is not None:
        await asyncio.sleep(every_s)
        most = max(most, count())
        if most - count() >= MANY:
            most = count()
            await asyncio.to_thread(trim, 0)


def _of_libc(name: str) -> Any:
    """A function of the C library, or None if it has no such function."""
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
