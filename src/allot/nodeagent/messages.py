"""Reads what containers left to be read when they ended, once for each attempt."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from . import logs, termination
from .runtimes import Attempt
from .starting import Place
from .views import Container


class Messages:
    def __init__(self, place: Place) -> None:
        self._place = place
        self._known: dict[str, dict[tuple[str, int], str]] = {}  # by pod

    def of(self, uid: str) -> Mapping[tuple[str, int], str]:
        return self._known.get(uid, {})

    async def read(self, attempt: Attempt, container: Container) -> None:
        known = self._known.setdefault(attempt.pod_uid, {})
        which = attempt.name, attempt.number
        if which in known:
            return
        path = self._place.message(attempt.pod_uid, attempt.name, attempt.number)
        written = await asyncio.to_thread(self._place.files.read, path, termination.FILE_BYTES_MAX)
        policy, code = container.termination_message_policy, attempt.exit_code or 0
        is_spoken_for = not written and code != 0 and policy == termination.FALLBACK
        printed = await _printed(attempt) if is_spoken_for else b""
        known[which] = termination.message(written or b"", printed, policy, code)

    def forget_pod(self, uid: str) -> None:
        self._known.pop(uid, None)


async def _printed(attempt: Attempt) -> bytes:
    """The end of its output."""
    if not attempt.log:
        return b""
    want = logs.Wanted(tail=termination.LOG_LINES_MAX)
    return b"".join([piece async for piece in logs.printed(Path(attempt.log), want, lambda: False)])
