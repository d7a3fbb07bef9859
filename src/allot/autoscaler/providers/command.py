"""A program as provider: it is run with what is to be done, and its exit status says whether it was.

    COMMAND resize GROUP COUNT     so many nodes are wanted, those that there are included
    COMMAND remove GROUP NODE      this one is not wanted any more

Nodes that it starts register with the label `autoscaler.allot.dev/group=GROUP`. It may be run again with the
same words, and is ended when it takes too long. What it writes on stderr is told when it fails.
"""

import asyncio
from collections.abc import Sequence

from allot.base import os_reason

from ..groups import GroupEntry
from .contract import ProviderFailed

ANSWER_S = 300.0
TOLD_MAX = 400


class CommandProvider:
    def __init__(self, command: Sequence[str], answer_s: float = ANSWER_S) -> None:
        self._command = tuple(command)
        self._answer_s = answer_s

    async def resize(self, group: GroupEntry, nodes: int) -> None:
        await self._run("resize", group.name, str(nodes))

    async def remove(self, group: GroupEntry, node: str) -> None:
        await self._run("remove", group.name, node)

    async def _run(self, *words: str) -> None:
        said = " ".join((*self._command, *words))
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as refused:
            raise ProviderFailed(f"{said}: {os_reason(refused)}") from None
        try:
            async with asyncio.timeout(self._answer_s):
                _, errors = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise ProviderFailed(f"{said}: no answer within {self._answer_s:g} s") from None
        if process.returncode:
            told = errors.decode(errors="replace").strip()[-TOLD_MAX:]
            raise ProviderFailed(f"{said}: exit status {process.returncode}: {told}")
