"""Which runtime, by the word that a person writes: `process`, or `cri://` and the path of a socket."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from allot.wire import Sockets

from .contract import Runtime
from .cri import CriRuntime
from .process import ProcessRuntime

_CRI: Final = "cri://"


@asynccontextmanager
async def attached(
    name: str, root: Path, cdi_directories: Sequence[Path], sockets: Sockets, *, ends_pods: bool = False
) -> AsyncIterator[Runtime]:
    """Containers go on when the block ends; or nothing does, and what is known of pods stays.

    Raises UnfitRuntime, and OSError."""
    if name.startswith(_CRI):
        path = name.removeprefix(_CRI)
        async with CriRuntime(path, root, cdi_directories, sockets).attached() as cri:
            try:
                yield cri
            finally:
                if ends_pods:
                    await cri.end_pods()
    else:
        async with ProcessRuntime(root / "containers").attached() as process:
            yield process
