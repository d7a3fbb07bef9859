"""What `node` asks of a machine, done with real containers and real drivers.

What is known of a pod lies on disk before anything of it is there: the pod itself (`pods`), what drivers
were told (`preparing`), what ran (the runtime). So an agent that begins anew finds everything, also of pods
that the API does not show any more (N5, N8).
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from allot.api import Object, age
from allot.base import Clock, os_reason
from allot.node import ClaimRef, Container, Devices, Found, NotReady, Observed

from . import life, podresources, views
from .deviceplugins import Lending
from .giving import Given
from .health import UNKNOWN, Shown, Which
from .health_shown import with_health
from .hooks import Hooks, Moment
from .life import FIRST_WAIT_S, Next, Trouble
from .messages import Messages
from .mounting import FailedMount
from .pods import KnownPod, Pods, Verdict
from .preparing import Preparing
from .probes import Outcome, Purpose, grace_s
from .probing import Known, Probing
from .runtimes import Attempt, Runtime
from .starting import TROUBLES, Place, Starting, trouble
from .stopping import Stopping
from .telling import Telling

NO_DEVICES = "DevicesNotReady"
"""Why a container waits whose device plugin has not set its devices up."""
EVICTED, EVICTED_GRACE_S = "Evicted", 1.0
TOO_LATE = "DeadlineExceeded"
_ROOM_S = 1.0  # until a pod is written down that could not be
TOO_LATE_MESSAGE = "Pod was active on the node longer than the specified deadline"


@dataclass(frozen=True, slots=True)
class Parts:
    """What a machine is made of."""

    place: Place
    runtime: Runtime
    preparing: Preparing
    lending: Lending
    starting: Starting
    stopping: Stopping
    hooks: Hooks
    probing: Probing
    messages: Messages
    telling: Telling
    clock: Clock


class AgentMachine:
    def __init__(self, parts: Parts) -> None:
        self._place = parts.place
        self._runtime = parts.runtime
        self._preparing, self._lending = parts.preparing, parts.lending
        self._starting, self._stopping = parts.starting, parts.stopping
        self._hooks, self._probing = parts.hooks, parts.probing
        self._messages, self._telling = parts.messages, parts.telling
        self._clock = parts.clock
        self._pods = Pods(parts.place, parts.clock)
        self._hear: Callable[[str], None] = lambda uid: None
        self.health_of: Callable[[Which], Shown] = lambda which: UNKNOWN
        parts.runtime.changed(self._ended)
        parts.hooks.done = self._hooked
        parts.probing.failed = self._unhealthy
        parts.probing.hear = lambda uid: self._hear(uid)
        parts.hooks.address_of = parts.probing.address_of = self._address_of

    # -- what a machine does --------------------------------------------------------------------

    async def standing(self, node: str) -> Sequence[Found]:
        pods = await self._pods.kept()
        attempts, addresses = await self._runtime.attempts(), await self._runtime.addresses()
        found = []
        for pod in pods:
            known = self._pods.known(pod.uid)
            known.addresses = addresses.get(pod.uid)
            for attempt in sorted((one for one in attempts if one.pod_uid == pod.uid), key=_number):
                known.note(attempt)
            has_begun = bool(known.attempts)
            seen = await self._observed(pod, known, ()) if has_begun else Observed()
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
        try:
            known = await self._pods.keep(pod)
        except OSError as failed:
            raise NotReady(_unwritten(failed)) from None
        with known.at_work():
            await self._lending.admit(pod, [claim.name for claim in claims])
            return await self._preparing.prepare(pod.uid, claims)

    async def run(self, node: str, pod: Object, devices: Devices) -> Observed:
        try:
            known = await self._pods.keep(pod)
        except OSError as failed:
            return await self._waiting(pod, _unwritten(failed))
        with known.at_work():
            if not known.attempts:
                claims = self._preparing.told.claims_of(pod.uid)
                await self._lending.admit(pod, [claim.name for claim in claims])
            return await self._run(pod, known)

    async def _waiting(self, pod: Object, why: str) -> Observed:
        """For room to write it down, before which nothing of it begins (N5)."""
        known, again_at = self._pods.known(pod.uid), self._now() + _ROOM_S
        for one in life.due(self._life(pod, known), self._now()).start:
            known.troubles[one.container.name] = Trouble("CreateContainerError", why, again_at)
            self._telling.failed(pod, one.container, "CreateContainerError", why)
        return await self._observed(pod, known, [self._monotonic(again_at)])

    async def _run(self, pod: Object, known: KnownPod) -> Observed:
        spec = pod.view(views.Pod).spec
        due_at = self._due_at(pod, known)
        if known.verdict is None and due_at is not None and self._now() >= due_at:
            known.verdict = Verdict(TOO_LATE, TOO_LATE_MESSAGE, spec.termination_grace_period_seconds)
            self._telling.too_late(pod, TOO_LATE_MESSAGE)
        if known.verdict is not None:
            return await self._stop(pod, known, known.verdict.grace_s)
        while True:
            moments = await self._heed_probes(pod, known)
            plan = life.due(self._life(pod, known), self._now())
            since_s = self._clock.monotonic_s()
            for attempt in plan.end:
                left_s = float(spec.termination_grace_period_seconds)
                moments.append(await self._end(pod, attempt, since_s, left_s))
            if not plan.start:
                self._tell_of_waits(pod, known)
                later = [at for at in (plan.again_at, due_at) if at is not None]
                return await self._observed(pod, known, (*moments, *map(self._monotonic, later)))
            await self._start_all(pod, plan.start, known)

    async def stop(self, node: str, pod: Object, grace_s: float) -> Observed:
        known = self._pods.known(pod.uid)
        return await self._stop(pod, known, grace_s)

    async def unprepare(self, node: str, pod: Object, claims: Sequence[ClaimRef]) -> None:
        await self._preparing.unprepare(pod.uid)

    async def remove(self, node: str, pod_uid: str) -> None:
        await self._runtime.remove(pod_uid)
        await self._lending.give_back(pod_uid)
        self._pods.forget(pod_uid)
        for part in (self._hooks, self._probing, self._stopping, self._messages):
            part.forget_pod(pod_uid)
        await self._starting.remove_volumes(pod_uid)
        await self._pods.erase(pod_uid)

    def changed(self, hear: Callable[[str], None]) -> None:
        self._hear = hear

    # -- what it is asked -----------------------------------------------------------------------

    @property
    def pods(self) -> tuple[str, ...]:
        return self._pods.uids

    def look_again(self) -> None:
        """A driver has come or gone: whoever waits for one may go on."""
        for uid in self._pods.uids:
            self._hear(uid)

    async def refresh_volumes(self) -> None:
        for pod in self._pods.running:
            await self._starting.refresh_volumes(pod)

    async def evict_oversized(self) -> None:
        """Pods whose volumes have grown beyond what they may."""
        for pod in self._pods.running:
            known = self._pods.known(pod.uid)
            why = await self._starting.oversized(pod) if known.verdict is None else ""
            if why:
                known.verdict = Verdict(EVICTED, why, EVICTED_GRACE_S)
                self._telling.evicted(pod, why)
                self._hear(pod.uid)

    def standing_now(self) -> list[podresources.Standing]:
        """For monitoring agents: pods of which something is there."""
        return [
            podresources.Standing(pod, self._preparing.told.of(pod.uid), self._lending.loans.of(pod.uid))
            for pod in self._pods.shown
        ]

    def shown(self, uid: str) -> Object | None:
        """The pod, as this machine was last shown it."""
        return self._pods.last_shown(uid)

    def is_at_work(self, uid: str) -> bool:
        """Something of the pod runs, or is being started."""
        known = self._pods.get(uid)
        return known is not None and (known.deeds > 0 or known.runs)

    def on_devices(self, resource: str) -> None:
        """A device plugin has come or gone, or says something else of its devices."""
        for loan in self._lending.loans.all:
            known = self._pods.get(loan.pod)
            if loan.resource == resource and known is not None:
                waits = known.troubles.get(loan.container)
                if waits is not None and waits.reason == NO_DEVICES:
                    del known.troubles[loan.container]
                self._hear(loan.pod)

    def on_health(self, devices: Iterable[Which]) -> None:
        """Whoever uses one of these says so."""
        named = frozenset(devices)
        for uid in self._pods.uids:
            if any(Which(driver, one.pool, one.name) in named for driver, one in self._held(uid)):
                self._hear(uid)

    def _held(self, uid: str) -> Iterator[Given]:
        for entry in self._preparing.told.of(uid):
            for driver, part in entry.parts.items():
                yield from ((driver, device) for device in part.devices)

    def log_of(self, uid: str, container: str, *, previous: bool) -> Path | None:
        """Where the output of a container lies: of its last attempt, or of the one before."""
        attempt = self._pods.attempt(uid, container, previous=previous)
        return Path(attempt.log) if attempt is not None else None

    def runs(self, uid: str, container: str) -> bool:
        return self.running(uid, container) is not None

    def running(self, uid: str, container: str) -> Attempt | None:
        """The attempt of a container that runs."""
        attempt = self._pods.attempt(uid, container)
        return attempt if attempt is not None and attempt.runs else None

    # -- what is heard ----------------------------------------------------------------------------

    def _ended(self, attempt: Attempt) -> None:
        self._probing.forget(attempt)
        known = self._pods.get(attempt.pod_uid)
        if known is not None:
            known.note(attempt)
            self._hear(attempt.pod_uid)

    def _hooked(self, attempt: Attempt, moment: Moment, outcome: Outcome) -> None:
        pod = self._pods.last_shown(attempt.pod_uid)
        if pod is not None and not outcome.is_good:
            self._telling.hook_failed(pod, _container(pod, attempt.name), moment, outcome)
        self._hear(attempt.pod_uid)

    def _unhealthy(self, attempt: Attempt, purpose: Purpose, outcome: Outcome) -> None:
        pod = self._pods.last_shown(attempt.pod_uid)
        if pod is not None:
            self._telling.unhealthy(pod, _container(pod, attempt.name), purpose, outcome)

    # -- starting and ending ----------------------------------------------------------------------

    async def _start_all(self, pod: Object, starting: Sequence[Next], known: KnownPod) -> None:
        """After a restart drivers are told once more before anything new begins: their files may be gone."""
        try:
            await self._preparing.prepare_again(pod.uid)
            await self._starting.make_volumes(pod)
        except NotReady as why:
            for one in starting:
                self._troubled(known, one, "FailedPrepareDynamicResources", str(why))
        except FailedMount as why:
            self._telling.not_mounted(pod, str(why))
            for one in starting:
                self._troubled(known, one, "ContainerCreating", str(why))
        await asyncio.gather(*(self._start(pod, one, known) for one in starting))

    async def _start(self, pod: Object, next: Next, known: KnownPod) -> None:
        container = next.container
        waits = known.troubles.get(container.name)
        if waits is not None and (waits.retry_at is None or waits.retry_at > self._now()):
            return
        known.troubles.pop(container.name, None)
        try:
            known.addresses = await self._runtime.address(self._starting.sandbox(pod))
            spec = await self._starting.spec(pod, next, known.addresses)
            attempt = await self._runtime.start(spec, partial(self._telling.image, pod, container))
        except NotReady as wrong:
            self._troubled(known, next, NO_DEVICES, str(wrong))
            return
        except TROUBLES as wrong:
            found = known.troubles[container.name] = trouble(wrong, self._now())
            self._telling.failed(pod, container, found.reason, found.message)
            return
        known.note(attempt)
        self._telling.started(pod, container)
        self._hooks.begin(attempt, container, Moment.POST_START)

    def _troubled(self, known: KnownPod, next: Next, reason: str, message: str) -> None:
        known.troubles[next.container.name] = Trouble(reason, message, self._now() + FIRST_WAIT_S)

    async def _heed_probes(self, pod: Object, known: KnownPod) -> list[float | None]:
        """Watch what runs, and end what failed; when to look again."""
        spec, moments = pod.view(views.Pod).spec, list[float | None]()
        for container in (*spec.init_containers, *spec.containers):
            attempt = known.last(container)
            if attempt is None or not attempt.runs or self._hooks.goes_on(attempt, Moment.POST_START):
                continue
            hooked = self._hooks.outcome(attempt, Moment.POST_START)
            pod_grace_s = float(spec.termination_grace_period_seconds)
            if hooked is not None and not hooked.is_good:
                moments.append(await self._end(pod, attempt, self._clock.monotonic_s(), pod_grace_s))
                continue
            self._probing.watch(attempt, container, _told(pod, attempt))
            failure = self._probing.failure(attempt)
            if failure is not None:
                if not self._stopping.is_ending(attempt):
                    self._telling.killing(pod, container, failure)
                left_s = grace_s(failure.probe, spec.termination_grace_period_seconds)
                moments.append(await self._end(pod, attempt, self._clock.monotonic_s(), left_s, quietly=True))
        return moments

    async def _end(
        self, pod: Object, attempt: Attempt, since_s: float, grace_s: float, *, quietly: bool = False
    ) -> float | None:
        container = _container(pod, attempt.name)
        if not quietly and not self._stopping.is_ending(attempt):
            self._telling.stopping(pod, container)
        return await self._stopping.end(attempt, container, since_s, grace_s)

    async def _stop(self, pod: Object, known: KnownPod, grace_s: float) -> Observed:
        now_s = self._clock.monotonic_s()
        if known.told_to_end_s is None:
            known.told_to_end_s = now_s
        moments = [
            await self._end(pod, attempt, known.told_to_end_s, grace_s)
            for attempt in life.due(self._life(pod, known), self._now()).end
        ]
        return await self._observed(pod, known, moments)

    def _due_at(self, pod: Object, known: KnownPod) -> float | None:
        """When the pod has been here for as long as it may."""
        view = pod.view(views.Pod)
        if view.spec.active_deadline_seconds is None:
            return None
        began = age.moment(view.status.start_time) if view.status.start_time else None
        return (began.timestamp() if began is not None else known.since) + view.spec.active_deadline_seconds

    def _tell_of_waits(self, pod: Object, known: KnownPod) -> None:
        """Of each attempt once: it has failed, and the next one waits."""
        seen = life.observed(self._life(pod, known), self._now())
        for one in (*seen.init_containers, *seen.containers):
            if life.backs_off(one) and (one.name, one.restarts) not in known.backed_off:
                known.backed_off.add((one.name, one.restarts))
                self._telling.backs_off(pod, _container(pod, one.name))

    # -- how it stands ----------------------------------------------------------------------------

    def _life(self, pod: Object, known: KnownPod) -> life.Pod:
        running = [one[-1] for one in known.attempts.values() if one[-1].runs]
        return life.Pod(
            f"{pod.name}_{pod.namespace}({pod.uid})",
            pod.view(views.Pod).spec,
            known.attempts,
            known.troubles,
            known.told_to_end_s is not None,
            frozenset(one.name for one in running if not self._probing.is_started(one)),
            frozenset(one.name for one in running if not self._probing.is_ready(one)),
            self._messages.of(pod.uid),
        )

    async def _observed(self, pod: Object, known: KnownPod, moments: Iterable[float | None]) -> Observed:
        for attempts in known.attempts.values():
            for attempt in attempts:
                if not attempt.runs:
                    await self._messages.read(attempt, _container(pod, attempt.name))
        seen = life.observed(self._life(pod, known), self._now())
        again = [one for one in moments if one is not None]
        return seen._replace(
            containers=self._with_health(pod, seen),
            addresses=self._addresses(known),
            host=self._place.address,
            reason=known.verdict.reason if known.verdict is not None else "",
            message=known.verdict.message if known.verdict is not None else "",
            again_s=min(again, default=None),
        )

    def _addresses(self, known: KnownPod) -> tuple[str, ...]:
        if known.addresses is not None:
            return known.addresses
        return (self._place.address,) if any(known.attempts.values()) else ()

    def _address_of(self, uid: str) -> str:
        """Where a pod in a network of its own is reached from the node; empty: in no such."""
        known = self._pods.get(uid)
        return known.addresses[0] if known is not None and known.addresses else ""

    def _with_health(self, pod: Object, seen: Observed) -> tuple[Container, ...]:
        containers = with_health(pod, seen, self._preparing.told.of(pod.uid), self.health_of)
        if not self._lending.loans.of(pod.uid):
            return containers
        return tuple(
            one._replace(health=(*one.health, *self._lending.health(pod, one.name))) for one in containers
        )

    def _monotonic(self, at: float) -> float:
        return self._clock.monotonic_s() + max(0.0, at - self._now())

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _unwritten(failed: OSError) -> str:
    return f"{failed.filename} cannot be written: {os_reason(failed)}"


def _container(pod: Object, name: str) -> views.Container:
    every = pod.view(views.Pod).spec.every_container
    return next((one for one in every if one.name == name), views.Container(name=name))


def _told(pod: Object, attempt: Attempt) -> Known:
    """What the pod's status says of this attempt: one that was ready stays so when the agent begins anew."""
    status = pod.view(views.Pod).status
    for one in (*status.container_statuses, *status.init_container_statuses):
        if one.name == attempt.name and one.restart_count == attempt.number:
            return Known(bool(one.started), one.ready)
    return Known()


def _number(attempt: Attempt) -> int:
    return attempt.number
