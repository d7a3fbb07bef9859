"""Containers of a CRI runtime: containerd, over its socket.

What is known of pods and containers is with the runtime, under labels that say whose they are (`asking`); so
an agent that begins anew finds them (N5), and nothing of it is written anywhere else. Every deed looks first
at what is there, and may be repeated; while the runtime is away it waits.

    a pod         a sandbox, made with its first container; a new one should the old have died
    an attempt    a container of that sandbox; those before the last two are removed, with their logs
"""

import asyncio
import logging
import signal
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from allot.wire import CallFailed, Code, Sockets, cri

from ..contract import (
    Addresses,
    Attempt,
    CannotStart,
    ContainerSpec,
    Executed,
    Report,
    SandboxSpec,
    Streams,
    Usage,
    unheard,
)
from . import asking, hostfiles, seen, streaming
from .following import Following
from .images import Images
from .service import STOP_S, Service, unless_gone

log = logging.getLogger(__name__)

BEGIN_S: Final = 20.0
_PATIENCE_S: Final = 30.0
_SANDBOX_S: Final = 240.0
_NEVER_S: Final = 10 * 365 * 24 * 3600
_TERM_S: Final = 10.0
_ROTATE_S: Final = 10.0
_END_S, _END_LOOKS = 1.0, 20
_END_TRIES, _END_AGAIN_S = 10, 0.3


class CriRuntime:
    has_networks = True

    def __init__(
        self,
        path: str,
        root: Path,
        cdi_directories: Sequence[Path],
        sockets: Sockets,
        *,
        log_bytes_max: int = hostfiles.BYTES_MAX,
        log_files_max: int = hostfiles.FILES_MAX,
        rotate_s: float = _ROTATE_S,
    ) -> None:
        """`root` is the agent's: what it began is known by that. Raises OSError."""
        self._channel = sockets.dial(path)
        self._service = Service(self._channel, path)
        self._root = str(root)
        self._cdi_directories = tuple(cdi_directories)
        self._images = Images(self._service, lambda: asyncio.get_running_loop().time())
        self._following = Following(self._service, self._channel, self._root, self._tell)
        self._log_bytes_max, self._log_files_max, self._rotate_s = log_bytes_max, log_files_max, rotate_s
        self._hear: list[Callable[[Attempt], None]] = []
        self._settled: dict[str, Attempt] = {}  # by id: what ended, and will not be told otherwise
        self._pods: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._deeds: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def attached(self) -> AsyncIterator["CriRuntime"]:
        """Containers go on when the block ends. Raises UnfitRuntime."""
        try:
            await self._service.require_fit(self._cdi_directories, BEGIN_S)
            await self._service.insist(self._following.begin)
            self._begin(self._following.run())
            self._begin(self._rotate())
            yield self
        finally:
            for deed in tuple(self._deeds):
                deed.cancel()
            if self._deeds:
                await asyncio.wait(self._deeds)
            await self._channel.close()

    # -- what a runtime does --------------------------------------------------------------------

    async def attempts(self) -> Sequence[Attempt]:
        return await self._service.insist(self._attempts)

    async def addresses(self) -> Mapping[str, Addresses]:
        return await self._service.insist(self._addresses)

    async def address(self, pod: SandboxSpec) -> Addresses:
        """Raises CannotStart."""
        if pod.host_network:
            return None

        async def deed() -> Addresses:
            async with self._pods[pod.pod_uid]:
                sandbox, config = await self._sandbox(pod)
            is_host = asking.is_on_host(config)
            return None if is_host else await self._service.addresses(sandbox)

        try:
            return await self._service.insist(deed, _PATIENCE_S)
        except CallFailed as failed:
            raise CannotStart(failed.reason, "CreatePodSandboxError") from None

    async def start(self, container: ContainerSpec, report: Report = unheard) -> Attempt:
        async def deed() -> Attempt:
            found = await self._begun(container)
            if found is not None:
                return found
            image = await self._images.present(container, report)
            asking.require_user(container, image)
            async with self._pods[container.pod.pod_uid]:
                return await self._begun(container) or await self._start(container, image)

        try:
            return await self._service.insist(deed, _PATIENCE_S)
        except CallFailed as failed:
            raise CannotStart(failed.reason, "CreateContainerError") from None

    async def signal(self, attempt: Attempt, number: int) -> None:
        """The CRI knows an end after a while, and an end at once. So one that never comes to the end of
        its while is told to end, in words that its image may choose."""
        is_kill = number == signal.SIGKILL
        if is_kill:
            self._following.killed.add(seen.container_id(attempt))
        asked = cri.StopContainerRequest(seen.container_id(attempt), 0 if is_kill else _NEVER_S)

        async def deed() -> None:
            with unless_gone(Code.DEADLINE_EXCEEDED):  # it was told, and takes its time
                await self._service.call(cri.STOP, asked, timeout_s=STOP_S if is_kill else _TERM_S)

        self._begin(self._done(deed, f"signal {number} to container {attempt.name}"))

    async def remove(self, pod_uid: str) -> None:
        async with self._pods[pod_uid]:
            await self._repeated(lambda: self._remove(pod_uid))
        self._pods.pop(pod_uid, None)
        self._images.forget(pod_uid)

    def changed(self, hear: Callable[[Attempt], None]) -> None:
        self._hear.append(hear)

    async def execute(self, attempt: Attempt, command: Sequence[str], timeout_s: float) -> Executed:
        """Raises TimeoutError, and CannotStart."""
        asked = cri.ExecSyncRequest(seen.container_id(attempt), tuple(command), max(1, round(timeout_s)))
        try:
            told = await self._service.call(cri.EXEC_SYNC, asked, timeout_s=timeout_s + STOP_S)
        except CallFailed as failed:
            if failed.code is Code.DEADLINE_EXCEEDED:
                raise TimeoutError(f"{command[0]} took more than {timeout_s:g} s") from None
            code = seen.not_run(failed.reason)
            if code is None:
                raise CannotStart(failed.reason, "ExecError") from None
            return Executed(code, failed.reason.encode())
        return Executed(told.exit_code, told.stdout + told.stderr)

    async def stream(self, attempt: Attempt, command: Sequence[str] | None, streams: Streams) -> int:
        """Raises CannotStart."""
        container, tty, stdin = seen.container_id(attempt), streams.tty, streams.stdin is not None
        try:
            if command is None:
                output = await self._attach(cri.AttachRequest(container, False, tty, True, not tty))
                typing = partial(self._attach, cri.AttachRequest(container, True, tty))
                await streaming.attachment(output, streams, typing)
                return await self._code_of(attempt)
            run = cri.ExecRequest(container, tuple(command), tty, stdin, True, not tty)
            return await streaming.command((await self._service.call(cri.EXEC, run)).url, streams)
        except CallFailed as failed:
            raise CannotStart(failed.reason, "ExecError") from None
        except OSError as failed:
            unrun = seen.not_run(str(failed))
            if unrun is None:
                raise CannotStart(str(failed), "ExecError") from None
            await (streams.write_out if tty else streams.write_err)(f"{failed}\n".encode())
            return unrun

    async def _attach(self, asked: cri.AttachRequest) -> str:
        return (await self._service.call(cri.ATTACH, asked)).url

    async def _code_of(self, attempt: Attempt) -> int:
        """How a container ended whose streams have; 0: it goes on, and somebody has only left it."""
        for _ in range(_END_LOOKS):
            found = await self._read(seen.container_id(attempt))
            if found is not None and found.exit_code is not None:
                return found.exit_code
            await asyncio.sleep(_END_S / _END_LOOKS)
        return 0

    async def connect(self, pod_uid: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Raises OSError."""
        try:
            known = await self._service.sandboxes(asking.of_pod(self._root, pod_uid))
            sandbox = next(filter(_is_ready, known), None)
            if sandbox is None:
                raise OSError(f"pod {pod_uid} has no sandbox that could be connected to")
            if asking.is_on_host(sandbox):
                return await streaming.loopback(port)
            told = await self._service.call(cri.PORT_FORWARD, cri.PortForwardRequest(sandbox.id, (port,)))
        except CallFailed as failed:
            raise OSError(failed.reason) from None
        return await streaming.forward(told.url, port)

    async def usage(self) -> Sequence[Usage]:
        asked = cri.ListContainerStatsRequest(cri.ContainerStatsFilter(label_selector=asking.own(self._root)))
        told = await self._service.insist(lambda: self._service.call(cri.STATS, asked))
        return [found for one in told.stats if (found := seen.usage(one)) is not None]

    async def end_pods(self) -> None:
        """Whatever runs, and what it ran in. What is known of pods stays."""
        for one in await self._service.insist(lambda: self._service.sandboxes(asking.own(self._root))):
            await self._repeated(partial(self._stop_sandbox, one.id))

    # -- containers -----------------------------------------------------------------------------

    async def _attempts(self) -> list[Attempt]:
        listed = await self._service.containers(asking.own(self._root))
        self._settled = {one.id: self._settled[one.id] for one in listed if one.id in self._settled}
        found = [self._settled.get(one.id) or await self._read(one.id) for one in listed]
        return sorted((one for one in found if one is not None), key=lambda one: one[:3])

    async def _read(self, id: str) -> Attempt | None:
        status = await self._service.status(id)
        if status is None or not seen.has_begun(status):
            return None
        found = seen.attempt(status, self._service.name)
        if not found.runs and not seen.may_be_told_otherwise(status):
            self._settled[id] = found
        return found

    async def _begun(self, container: ContainerSpec) -> Attempt | None:
        """RUN2. What of it is there and did not begin is removed."""
        for one in await self._service.containers(self._of(container)):
            if one.metadata is not None and one.metadata.attempt == container.number:
                found = await self._read(one.id)
                if found is not None:
                    return found
                await self._discard(one.id)
        return None

    async def _start(self, container: ContainerSpec, image: cri.Image) -> Attempt:
        missing = await asyncio.to_thread(hostfiles.missing, [one.host_path for one in container.mounts])
        if missing:
            why = f"container {container.name} mounts {', '.join(missing)}: this machine has nothing there"
            raise CannotStart(why)
        sandbox, config = await self._sandbox(container.pod)
        await asyncio.to_thread(hostfiles.make_way, config.log_directory, asking.log_path(container))
        wanted, around = asking.container(container, self._root, image, config)
        try:
            created = await self._service.call(
                cri.CREATE, cri.CreateContainerRequest(sandbox, wanted, around), timeout_s=_SANDBOX_S
            )
        except CallFailed as failed:
            self._require_refused(failed)
            raise CannotStart(failed.reason, "CreateContainerError") from None
        id = created.container_id
        try:
            await self._service.call(cri.START, cri.StartContainerRequest(id), timeout_s=_SANDBOX_S)
        except CallFailed as failed:
            self._require_refused(failed)
            await self._discard(id)
            raise CannotStart(failed.reason, "RunContainerError") from None
        await self._forget_older(container)
        found = await self._read(id)
        if found is None:
            raise CannotStart(f"container {id} is gone at once", "RunContainerError")
        return found

    def _require_refused(self, failed: CallFailed) -> None:
        """Where it is not known what came of it, it is begun anew."""
        if self._service.is_away(failed):
            raise failed

    async def _forget_older(self, container: ContainerSpec) -> None:
        for one in await self._service.containers(self._of(container)):
            if one.metadata is not None and one.metadata.attempt < container.number - 1:
                status = await self._service.status(one.id)
                await self._discard(one.id)
                if status is not None and status.log_path:
                    await asyncio.to_thread(hostfiles.remove, status.log_path)

    async def _discard(self, id: str) -> None:
        with unless_gone():
            await self._service.call(cri.REMOVE, cri.RemoveContainerRequest(id), timeout_s=STOP_S)

    def _of(self, container: ContainerSpec) -> dict[str, str]:
        return {**asking.of_pod(self._root, container.pod.pod_uid), asking.CONTAINER: container.name}

    # -- sandboxes ------------------------------------------------------------------------------

    async def _addresses(self) -> dict[str, Addresses]:
        """Of the last sandbox of each pod."""
        last = dict[str, cri.PodSandbox]()
        for one in await self._service.sandboxes(asking.own(self._root)):
            pod = one.labels.get(asking.POD_UID, "")
            if pod not in last or _attempt(one) > _attempt(last[pod]):
                last[pod] = one
        return {
            pod: await self._service.addresses(one.id)
            for pod, one in last.items()
            if not asking.is_on_host(one)
        }

    async def _sandbox(self, pod: SandboxSpec) -> tuple[str, cri.PodSandboxConfig]:
        known = await self._service.sandboxes(asking.of_pod(self._root, pod.pod_uid))
        ready = next(filter(_is_ready, known), None)
        if ready is not None and ready.metadata is not None:
            has_network = not asking.is_on_host(ready)
            return ready.id, asking.sandbox(pod, self._root, ready.metadata.attempt, has_network=has_network)
        for one in known:
            await self._stop_sandbox(one.id)
        attempt = 1 + max(map(_attempt, known), default=-1)
        has_network = pod.host_network or await self._service.has_network()
        if not has_network:
            log.warning(
                "pod %s/%s has the machine's network: the container runtime has no CNI plugin that would "
                "give it one of its own",
                pod.namespace,
                pod.name,
            )
        config = asking.sandbox(pod, self._root, attempt, has_network=has_network)
        await asyncio.to_thread(hostfiles.make_way, config.log_directory)
        try:
            asked = cri.RunPodSandboxRequest(config)
            told = await self._service.call(cri.RUN_SANDBOX, asked, timeout_s=_SANDBOX_S)
        except CallFailed as failed:
            self._require_refused(failed)
            raise CannotStart(failed.reason, "CreatePodSandboxError") from None
        return told.pod_sandbox_id, config

    async def _remove(self, pod_uid: str) -> None:
        known = await self._service.sandboxes(asking.of_pod(self._root, pod_uid))
        for one in known:
            await self._stop_sandbox(one.id)
            with unless_gone():
                asked = cri.RemovePodSandboxRequest(one.id)
                await self._service.call(cri.REMOVE_SANDBOX, asked, timeout_s=STOP_S)
        logs = [one.annotations[asking.LOGS] for one in known if one.annotations.get(asking.LOGS)]
        await asyncio.to_thread(hostfiles.remove_all, logs)

    async def _repeated(self, deed: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """What ends by itself at the moment in which it is to be ended makes containerd fail, once."""
        for _ in range(_END_TRIES):
            try:
                await self._service.insist(deed)
                return
            except CallFailed as failed:
                log.warning("the container runtime at %s, tried again: %s", self._service.path, failed)
            await asyncio.sleep(_END_AGAIN_S)
        await self._service.insist(deed)

    async def _stop_sandbox(self, id: str) -> None:
        """And whatever runs in it."""
        with unless_gone():
            await self._service.call(cri.STOP_SANDBOX, cri.StopPodSandboxRequest(id), timeout_s=STOP_S)

    # -- what goes on beside --------------------------------------------------------------------

    async def _rotate(self) -> None:
        """For ever: logs that have grown long."""
        while True:
            await asyncio.sleep(self._rotate_s)
            try:
                for attempt in await self._attempts():
                    if attempt.runs:
                        await self._rotate_one(attempt)
            except (CallFailed, OSError) as failed:
                log.debug("logs stay as they are for now: %s", failed)

    async def _rotate_one(self, attempt: Attempt) -> None:
        if await asyncio.to_thread(
            hostfiles.turned_over, attempt.log, self._log_bytes_max, self._log_files_max
        ):
            asked = cri.ReopenContainerLogRequest(seen.container_id(attempt))
            await self._service.call(cri.REOPEN_LOG, asked)

    def _begin(self, deed: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(deed)
        self._deeds.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: "asyncio.Task[None]") -> None:
        self._deeds.discard(task)
        if not task.cancelled() and (wrong := task.exception()) is not None:
            log.error("the container runtime at %s: a task ended", self._service.path, exc_info=wrong)

    async def _done(self, deed: Callable[[], Coroutine[Any, Any, None]], what: str) -> None:
        try:
            await self._service.insist(deed)
        except CallFailed as failed:
            log.warning("%s: %s", what, failed)

    def _tell(self, attempt: Attempt) -> None:
        for hear in self._hear:
            hear(attempt)


def _attempt(sandbox: cri.PodSandbox) -> int:
    return sandbox.metadata.attempt if sandbox.metadata is not None else -1


def _is_ready(sandbox: cri.PodSandbox) -> bool:
    return sandbox.state is cri.SandboxState.READY
