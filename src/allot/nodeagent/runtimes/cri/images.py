"""Images by pull policy: there before a container is made of them, or a reason why not.

    Always         asked of its registry each time; what is there already is not fetched again
    IfNotPresent   asked for where it is missing
    Never          must be there

One that could not be pulled is left alone for a while, longer each time; until then whoever wants it reads
that it waits, and for what. The reasons are those that kubelets give.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from allot.wire import CallFailed, cri

from ..contract import CannotStart
from .service import Service

ALWAYS, NEVER = "Always", "Never"
FIRST_WAIT_S, LONGEST_WAIT_S = 10.0, 300.0
PULL_S: Final = 1800.0
_ASK_S: Final = 30.0

_NAME: Final = re.compile(
    # registry/path:tag@digest, of which only the path must be there
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?/|\[[0-9a-fA-F:]+\](?::[0-9]+)?/)?"
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
    r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
)


class _Failure(NamedTuple):
    times: int
    until_s: float
    why: str


class Images:
    def __init__(self, service: Service, now_s: Callable[[], float]) -> None:
        self._service = service
        self._now_s = now_s
        self._failures: dict[str, _Failure] = {}

    async def present(self, name: str, policy: str) -> cri.Image:
        """Raises CannotStart."""
        if not _NAME.fullmatch(name):
            why = f'Failed to apply default image tag "{name}": invalid reference format'
            raise CannotStart(why, "InvalidImageName")
        found = await self._found(name)
        if found is None and policy == NEVER:
            why = f'Container image "{name}" is not present with pull policy of Never'
            raise CannotStart(why, "ErrImageNeverPull")
        if found is not None and policy != ALWAYS:
            return found
        await self._pull(name)
        found = await self._found(name)
        if found is None:
            raise CannotStart(f'image "{name}" was pulled and is gone again', "ErrImagePull")
        return found

    async def _found(self, name: str) -> cri.Image | None:
        asked = cri.ImageStatusRequest(cri.ImageSpec(name))
        return (await self._service.call(cri.IMAGE_STATUS, asked, timeout_s=_ASK_S)).image

    async def _pull(self, name: str) -> None:
        before = self._failures.get(name)
        if before is not None and self._now_s() < before.until_s:
            why = f'Back-off pulling image "{name}": ErrImagePull: {before.why}'
            raise CannotStart(why, "ImagePullBackOff")
        try:
            asked = cri.PullImageRequest(cri.ImageSpec(name, user_specified_image=name))
            await self._service.call(cri.PULL, asked, timeout_s=PULL_S)
        except CallFailed as failed:
            if self._service.is_away(failed):
                raise
            times = before.times + 1 if before is not None else 1
            wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (times - 1))
            self._failures[name] = _Failure(times, self._now_s() + wait_s, failed.reason)
            raise CannotStart(failed.reason, "ErrImagePull") from None
        self._failures.pop(name, None)
