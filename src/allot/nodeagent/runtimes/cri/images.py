"""Images by pull policy: there before a container is made of them, or a reason why not.

    Always         asked of its registry each time; what is there already is not fetched again
    IfNotPresent   asked for where it is missing
    Never          must be there

One that a pod could not pull is left alone for a while, longer each time; until then the pod reads that it
waits, and for what. Another pod may have another login, and waits for itself. The reasons are those that
kubelets give.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from allot.wire import CallFailed, cri

from ..contract import CannotStart, ContainerSpec, Login, Report
from .service import Service

ALWAYS, NEVER = "Always", "Never"
PULLING, PULLED = "Pulling", "Pulled"
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
        self._failures: dict[tuple[str, str], _Failure] = {}  # by pod and image

    async def present(self, container: ContainerSpec, report: Report) -> cri.Image:
        """Raises CannotStart."""
        name, policy = container.image, container.pull_policy
        if not _NAME.fullmatch(name):
            why = f'Failed to apply default image tag "{name}": invalid reference format'
            raise CannotStart(why, "InvalidImageName")
        found = await self._found(name)
        if found is None and policy == NEVER:
            why = f'Container image "{name}" is not present with pull policy of Never'
            raise CannotStart(why, "ErrImageNeverPull")
        if found is not None and policy != ALWAYS:
            report(PULLED, f'Container image "{name}" is on this machine')
            return found
        began_s = self._now_s()
        await self._pull(container, report)
        found = await self._found(name)
        if found is None:
            raise CannotStart(f'image "{name}" was pulled and is gone again', "ErrImagePull")
        took_s = self._now_s() - began_s
        report(PULLED, f'Image "{name}" was pulled in {took_s:.3f} s: {found.size} bytes')
        return found

    def forget(self, pod_uid: str) -> None:
        for key in [key for key in self._failures if key[0] == pod_uid]:
            del self._failures[key]

    async def _found(self, name: str) -> cri.Image | None:
        asked = cri.ImageStatusRequest(cri.ImageSpec(name))
        return (await self._service.call(cri.IMAGE_STATUS, asked, timeout_s=_ASK_S)).image

    async def _pull(self, container: ContainerSpec, report: Report) -> None:
        name, key = container.image, (container.pod_uid, container.image)
        before = self._failures.get(key)
        if before is not None and self._now_s() < before.until_s:
            why = f'Back-off pulling image "{name}": ErrImagePull: {before.why}'
            raise CannotStart(why, "ImagePullBackOff")
        report(PULLING, f'Pulling image "{name}"')
        why = await self._refused(name, container.logins)
        if why:
            times = before.times + 1 if before is not None else 1
            wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (times - 1))
            self._failures[key] = _Failure(times, self._now_s() + wait_s, why)
            raise CannotStart(why, "ErrImagePull")
        self._failures.pop(key, None)

    async def _refused(self, name: str, logins: Sequence[Login]) -> str:
        """Pull it as the first that may; empty: somebody could. Without a login it is asked for as nobody."""
        whys = dict[str, None]()
        for login in logins or (None,):
            auth = cri.AuthConfig(login.name, login.password) if login is not None else None
            asked = cri.PullImageRequest(cri.ImageSpec(name, user_specified_image=name), auth)
            try:
                await self._service.call(cri.PULL, asked, timeout_s=PULL_S)
                return ""
            except CallFailed as failed:
                if self._service.is_away(failed):
                    raise
                whys[failed.reason] = None
        return "; ".join(whys)
