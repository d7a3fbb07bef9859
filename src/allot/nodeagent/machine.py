"""What `node` asks of a machine, done with real containers and real drivers.

What is known of a pod lies on disk before anything of it is there: the pod itself (`ROOT/pods/UID.json`),
what drivers were told (`preparing`), what ran (the runtime). So an agent that begins anew finds everything,
also of pods that the API does not show any more (N5, N8).
"""

import asyncio
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from allot.api import Object, core, errors
from allot.base import Clock, write_file
from allot.node import ClaimRef, Container, DeviceHealth, Devices, Found, NotReady, Observed
from allot.wire import cdi

from . import life, podresources, views
from .environment import BadEnvironment, Lookup, environment, expanded
from .giving import Given, by_ask, cdi_ids, given
from .health import UNKNOWN, Shown, Which
from .life import FIRST_WAIT_S, Next, Trouble
from .preparing import Preparing
from .runtimes import Attempt, CannotStart, ContainerSpec, Runtime


@dataclass(slots=True)
class _Pod:
    """What this process knows of a pod beside the pod."""

    attempts: dict[str, list[Attempt]] = field(default_factory=dict)  # the last two of each container
    troubles: dict[str, Trouble] = field(default_factory=dict)
    told_to_end_s: float | None = None
    is_kept: bool = False  # on disk

    def note(self, attempt: Attempt) -> None:
        known = self.attempts.setdefault(attempt.name, [])
        known[:] = [one for one in known if one.number != attempt.number] + [attempt]
        known.sort(key=lambda one: one.number)
        del known[:-2]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node is."""

    root: Path
    cdi_directories: tuple[Path, ...]
    address: str

    def pod(self, uid: str) -> Path:
        return self.root / "pods" / f"{uid}.json"


class AgentMachine:
    def __init__(
        self, place: Place, runtime: Runtime, preparing: Preparing, lookup: Lookup, clock: Clock
    ) -> None:
        self._place = place
        self._runtime = runtime
        self._preparing = preparing
        self._lookup = lookup
        self._clock = clock
        self._pods: dict[str, _Pod] = {}
        self._hear: Callable[[str], None] = lambda uid: None
        self._objects: dict[str, Object] = {}  # as each pod was last shown to this machine
        self.health_of: Callable[[Which], Shown] = lambda which: UNKNOWN
        runtime.changed(self._ended)

    # -- what a machine does --------------------------------------------------------------------

    async def standing(self, node: str) -> Sequence[Found]:
        pods = await asyncio.to_thread(self._read_pods)
        attempts = await self._runtime.attempts()
        found = []
        for pod in pods:
            known = self._pods.setdefault(pod.uid, _Pod(is_kept=True))
            self._objects[pod.uid] = pod
            for attempt in sorted((one for one in attempts if one.pod_uid == pod.uid), key=_number):
                known.note(attempt)
            has_begun = bool(known.attempts)
            seen = self._observed(pod, known, None) if has_begun else Observed()
            devices = self._preparing.devices(pod.uid)
            found.append(
                Found(
                    pod,
                    self._preparing.told.claims_of(pod.uid),
                    devices if devices and has_begun else None,
                    seen,
                )
            )
        return found

    async def prepare(self, node: str, pod: Object, claims: Sequence[Object]) -> Devices:
        await self._keep(pod)
        return await self._preparing.prepare(pod.uid, claims)

    async def run(self, node: str, pod: Object, devices: Devices) -> Observed:
        known = await self._keep(pod)
        while True:
            plan = life.due(self._life(pod, known), self._now())
            for attempt in plan.end:
                await self._runtime.signal(attempt, signal.SIGTERM)
            if not plan.start:
                return self._observed(pod, known, plan.again_at)
            await self._prepare_again(pod, plan.start, known)
            await asyncio.gather(*(self._start(pod, one, known) for one in plan.start))

    async def stop(self, node: str, pod: Object, grace_s: float) -> Observed:
        known = self._pods.setdefault(pod.uid, _Pod())
        now_s = self._clock.monotonic_s()
        if known.told_to_end_s is None:
            known.told_to_end_s = now_s
        end_s = known.told_to_end_s + grace_s
        number = signal.SIGKILL if now_s >= end_s else signal.SIGTERM
        for attempt in life.due(self._life(pod, known), self._now()).end:
            await self._runtime.signal(attempt, number)
        seen = self._observed(pod, known, None)
        # One that was killed is heard of when it has ended.
        return seen._replace(again_s=end_s) if seen.runs and now_s < end_s else seen

    async def unprepare(self, node: str, pod: Object, claims: Sequence[ClaimRef]) -> None:
        await self._preparing.unprepare(pod.uid)

    async def remove(self, node: str, pod_uid: str) -> None:
        await self._runtime.remove(pod_uid)
        self._pods.pop(pod_uid, None)
        self._objects.pop(pod_uid, None)
        await asyncio.to_thread(self._place.pod(pod_uid).unlink, missing_ok=True)

    def changed(self, hear: Callable[[str], None]) -> None:
        self._hear = hear

    # -- what it is made of ---------------------------------------------------------------------

    @property
    def pods(self) -> tuple[str, ...]:
        return tuple(self._pods)

    def look_again(self) -> None:
        """A driver has come or gone: whoever waits for one may go on."""
        for uid in self._pods:
            self._hear(uid)

    def standing_now(self) -> list[podresources.Standing]:
        """For monitoring agents: pods of which something is there."""
        return [
            podresources.Standing(pod, self._preparing.told.of(uid)) for uid, pod in self._objects.items()
        ]

    def on_health(self, devices: Iterable[Which]) -> None:
        """Whoever uses one of these says so."""
        named = frozenset(devices)
        for uid in self._pods:
            if any(Which(driver, one.pool, one.name) in named for driver, one in self._held(uid)):
                self._hear(uid)

    def _held(self, uid: str) -> Iterator[Given]:
        for entry in self._preparing.told.of(uid):
            for driver, part in entry.parts.items():
                yield from ((driver, device) for device in part.devices)

    def log_of(self, uid: str, container: str, *, previous: bool) -> Path | None:
        """Where the output of a container lies: of its last attempt, or of the one before."""
        known = self._pods.get(uid)
        attempts = known.attempts.get(container, []) if known is not None else []
        index = -2 if previous else -1
        return Path(attempts[index].log) if len(attempts) >= -index else None

    def runs(self, uid: str, container: str) -> bool:
        known = self._pods.get(uid)
        attempts = known.attempts.get(container, []) if known is not None else []
        return bool(attempts) and attempts[-1].runs

    def _ended(self, attempt: Attempt) -> None:
        known = self._pods.get(attempt.pod_uid)
        if known is not None:
            known.note(attempt)
            self._hear(attempt.pod_uid)

    async def _keep(self, pod: Object) -> _Pod:
        known = self._pods.setdefault(pod.uid, _Pod())
        self._objects[pod.uid] = pod
        if not known.is_kept:
            await asyncio.to_thread(self._write_pod, pod)
            known.is_kept = True
        return known

    def _write_pod(self, pod: Object) -> None:
        path = self._place.pod(pod.uid)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
        write_file(path, pod.raw)

    def _read_pods(self) -> list[Object]:
        return [Object(path.read_bytes()) for path in sorted((self._place.root / "pods").glob("*.json"))]

    def _life(self, pod: Object, known: _Pod) -> life.Pod:
        return life.Pod(
            f"{pod.name}_{pod.namespace}({pod.uid})",
            pod.view(views.Pod).spec,
            known.attempts,
            known.troubles,
            known.told_to_end_s is not None,
        )

    def _observed(self, pod: Object, known: _Pod, again_at: float | None) -> Observed:
        now = self._now()
        seen = life.observed(self._life(pod, known), now)
        seen = seen._replace(containers=self._with_health(pod, seen))
        address = self._place.address if seen.runs else ""
        if again_at is None:
            return seen._replace(address=address)
        again_s = self._clock.monotonic_s() + max(0.0, again_at - now)
        return seen._replace(address=address, again_s=again_s)

    def _with_health(self, pod: Object, seen: Observed) -> tuple[Container, ...]:
        entries = self._preparing.told.of(pod.uid)
        if not entries:
            return seen.containers
        view, spec = pod.view(core.Pod), {one.name: one for one in pod.view(views.Pod).spec.containers}

        def shown(device: Given) -> DeviceHealth:
            driver, one = device
            found = self.health_of(Which(driver, one.pool, one.name))
            name = one.cdi_ids[0] if one.cdi_ids else f"{driver}/{one.pool}/{one.name}"
            return DeviceHealth(name, *found)

        return tuple(
            one._replace(
                health=tuple(
                    # Two devices may have one name for the runtime; a status lists it once.
                    (name, tuple({found.id: found for found in map(shown, devices)}.values()))
                    for name, devices in by_ask(view, spec[one.name], entries)
                )
            )
            for one in seen.containers
        )

    async def _prepare_again(self, pod: Object, starting: Sequence[Next], known: _Pod) -> None:
        """After a restart drivers are told once more before anything new begins: their files may be gone."""
        try:
            await self._preparing.prepare_again(pod.uid)
        except NotReady as why:
            for one in starting:
                self._troubled(known, one, "FailedPrepareDynamicResources", str(why))

    async def _start(self, pod: Object, next: Next, known: _Pod) -> None:
        container = next.container
        trouble = known.troubles.get(container.name)
        if trouble is not None and (trouble.retry_at is None or trouble.retry_at > self._now()):
            return
        known.troubles.pop(container.name, None)
        try:
            spec = await self._spec(pod, next)
            known.note(await self._runtime.start(spec))
        except _Never as never:
            known.troubles[container.name] = Trouble("CreateContainerConfigError", str(never))
        except (BadEnvironment, errors.ApiError) as wrong:
            self._troubled(known, next, "CreateContainerConfigError", str(wrong))
        except (CannotStart, cdi.Unresolvable) as wrong:
            self._troubled(known, next, "CreateContainerError", str(wrong))

    def _troubled(self, known: _Pod, next: Next, reason: str, message: str) -> None:
        known.troubles[next.container.name] = Trouble(reason, message, self._now() + FIRST_WAIT_S)

    async def _spec(self, pod: Object, next: Next) -> ContainerSpec:
        container = next.container
        _require_command(container)
        devices = given(pod.view(core.Pod), container, self._preparing.told.of(pod.uid))
        edits = await asyncio.to_thread(self._edits, cdi_ids(devices))
        env = await environment(pod, container, self._place.address, self._lookup)
        command = tuple(expanded(word, env) for word in (*container.command, *container.args))
        return ContainerSpec(
            pod.uid, container.name, next.number, command, env, container.working_dir, edits, next.crashes
        )

    def _edits(self, names: Sequence[str]) -> cdi.ContainerEdits:
        if not names:
            return cdi.ContainerEdits()
        return cdi.catalogue(self._place.cdi_directories).edits(names)

    def _now(self) -> float:
        return self._clock.now().timestamp()


class _Never(Exception):
    """The container is written so that it cannot run here."""


def _require_command(container: views.Container) -> None:
    if not container.command:
        raise _Never(
            f"container {container.name} has no command: this node runs processes and has no images that "
            "could say one; write spec.containers[].command"
        )
    if container.volume_mounts:
        names = ", ".join(str(one.get("name")) for one in container.volume_mounts)
        raise _Never(f"container {container.name} mounts {names}: this node runs processes without mounts")


def _number(attempt: Attempt) -> int:
    return attempt.number
