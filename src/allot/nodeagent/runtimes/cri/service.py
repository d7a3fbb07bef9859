"""A runtime at its socket: is it fit for us, and what if it is away for a while.

A daemon that was killed or is replaced is back after a moment, and its containers have gone on. So nothing
is given up because nobody answers: a deed is tried again from its beginning, where it first looks at what
is there.
"""

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from allot.wire import CallFailed, Channel, Code, Message, Unary, cri

from . import seen

log = logging.getLogger(__name__)

T = TypeVar("T")
Asked = TypeVar("Asked", bound=Message)
Told = TypeVar("Told", bound=Message)

CONTAINERD_MIN: Final = (1, 7)
STOP_S: Final = 120.0
_ASK_S: Final = 30.0
_AGAIN_S: Final = 0.1
_SAY_S: Final = 5.0
_NOT_YET: Final = "server is not initialized yet"


class UnfitRuntime(OSError):
    """The message says what it lacks, and what would help."""


class Service:
    def __init__(self, channel: Channel, path: str) -> None:
        self._channel = channel
        self.path = path
        self.name = "cri"  # as container IDs begin; known once it was asked

    async def call(self, method: Unary[Asked, Told], request: Asked, *, timeout_s: float = _ASK_S) -> Told:
        """Raises CallFailed."""
        return await self._channel.call(method, request, timeout_s=timeout_s)

    @staticmethod
    def is_away(failed: CallFailed) -> bool:
        return failed.code is Code.UNAVAILABLE or _NOT_YET in failed.reason

    async def insist(self, deed: Callable[[], Awaitable[T]], patience_s: float | None = None) -> T:
        """Again and again while nobody answers. Raises CallFailed: for another reason, or for that long."""
        clock, said_s = asyncio.get_running_loop().time, 0.0
        began_s = clock()
        while True:
            try:
                return await deed()
            except CallFailed as failed:
                now_s = clock()
                if not self.is_away(failed) or (patience_s is not None and now_s - began_s >= patience_s):
                    raise
                if now_s - began_s >= _SAY_S and now_s - said_s >= _SAY_S:
                    log.warning("the container runtime at %s does not answer: %s", self.path, failed.reason)
                    said_s = now_s
            await asyncio.sleep(_AGAIN_S)

    async def require_fit(self, cdi_directories: Sequence[Path], patience_s: float) -> None:
        """Raises UnfitRuntime."""
        try:
            version = await self.insist(lambda: self.call(cri.GET_VERSION, cri.VersionRequest()), patience_s)
            status = await self.insist(lambda: self.call(cri.GET_STATUS, cri.StatusRequest(True)), patience_s)
        except CallFailed as failed:
            raise UnfitRuntime(f"no container runtime answers at {self.path}: {failed.reason}") from None
        self.name = version.runtime_name or "cri"
        wrong = unfit(version, status, cdi_directories)
        if wrong:
            raise UnfitRuntime(f"the container runtime at {self.path} is of no use here: {wrong}")

    async def containers(self, labels: Mapping[str, str]) -> tuple[cri.Container, ...]:
        asked = cri.ListContainersRequest(cri.ContainerFilter(label_selector=dict(labels)))
        return (await self.call(cri.LIST, asked)).containers

    async def sandboxes(self, labels: Mapping[str, str]) -> tuple[cri.PodSandbox, ...]:
        asked = cri.ListPodSandboxRequest(cri.PodSandboxFilter(label_selector=dict(labels)))
        return (await self.call(cri.LIST_SANDBOXES, asked)).items

    async def addresses(self, sandbox: str) -> tuple[str, ...]:
        """Of a sandbox in a network of its own; none, once that or the sandbox is gone."""
        with unless_gone():
            asked = cri.PodSandboxStatusRequest(sandbox)
            return seen.addresses((await self.call(cri.SANDBOX_STATUS, asked)).status)
        return ()

    async def status(self, container: str) -> cri.ContainerStatus | None:
        """None: there is no such container. One of which it has lost sight is ended first."""
        status = await self._status(container)
        if status is not None and status.state is cri.ContainerState.UNKNOWN:
            await self.call(cri.STOP, cri.StopContainerRequest(container), timeout_s=STOP_S)
            status = await self._status(container)
        return status

    async def _status(self, container: str) -> cri.ContainerStatus | None:
        try:
            asked = cri.ContainerStatusRequest(container)
            return (await self.call(cri.CONTAINER_STATUS, asked)).status
        except CallFailed as failed:
            if failed.code is Code.NOT_FOUND:
                return None
            raise

    async def has_network(self) -> bool:
        """For pods of their own: some CNI plugin is set up."""
        status = (await self.call(cri.GET_STATUS, cri.StatusRequest())).status
        return any(one.type == "NetworkReady" and one.status for one in (status.conditions if status else ()))


@contextmanager
def unless_gone(*others: Code) -> Iterator[None]:
    """What is not there need not be ended or removed."""
    try:
        yield
    except CallFailed as failed:
        if failed.code not in (Code.NOT_FOUND, *others):
            raise


def unfit(version: cri.VersionResponse, status: cri.StatusResponse, cdi_directories: Sequence[Path]) -> str:
    """Why devices would not reach containers; empty: they would. Pure.

    A runtime that does not know CDI starts containers without their devices and says nothing.
    """
    if version.runtime_name != "containerd":
        return ""  # CRI-O has known CDI for long; of others nothing is known
    numbers = re.match(r"v?(\d+)\.(\d+)", version.runtime_version)
    if numbers is None:
        return f"it does not say which containerd it is, but {version.runtime_version!r}"
    if tuple(map(int, numbers.groups())) < CONTAINERD_MIN:
        return (
            f"containerd {version.runtime_version} does not know CDI and would start containers without "
            "their devices; it takes 1.7 or newer"
        )
    config = _config(status)
    if config.get("enableCDI") is False:
        return "CDI is switched off in it; write enable_cdi = true into the CRI part of its configuration"
    known = [str(one) for one in config.get("cdiSpecDirs") or ()]
    if known and not {str(one) for one in cdi_directories} & set(known):
        ours = ", ".join(map(str, cdi_directories))
        return (
            f"it reads CDI specs from {', '.join(known)}, and drivers here write them to {ours} (--cdi-dir)"
        )
    return ""


def _config(status: cri.StatusResponse) -> dict[str, Any]:
    try:
        found = json.loads(status.info.get("config", "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
