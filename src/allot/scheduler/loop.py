"""The scheduler as it runs: informers in, bindings out, one task that decides.

    news      handlers and bindings fill a box; it is emptied between two cycles
    deciding  the next pod of the queue goes through the cycle, on the snapshot as it is
    acting    a binding, or what makes room, runs beside it; so many at once and no more

What is decided holds from that moment (SNAP1), so the next pod is not kept waiting for the
writes of the last.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import Any, TypeVar, assert_never

from allot.api import Gates, Object, errors
from allot.base import Clock, Ids, InvariantBroken, Metrics
from allot.client import Client, level_of
from allot.informers import (
    ALARM_LEAST_S,
    NORMAL,
    WARNING,
    Budget,
    Deleted,
    Election,
    Events,
    Handler,
    Informers,
    Key,
    ResourceId,
    Telemetry,
    lead_forever,
)

from . import plugins
from .awaiting import Awaiting
from .binding import (
    Binder,
    Bound,
    BoundByAnother,
    ClaimWritten,
    ExtendedClaim,
    Failed,
    Report,
    Waited,
    WaitsForDevices,
)
from .claiming import Refusal
from .cycle import Aside, Cycle, Outcome, Placed, Unplaced
from .evicting import Evictor
from .explaining import PATIENCE_S, Explainer
from .framework import CycleState, Event, LongWork
from .intake import Intake
from .mirror import CLAIMS, RESOURCE_CLASSES, News
from .negotiation import Negotiated, WaitsForDrivers
from .parameter_watches import KindTold, ParameterWatches
from .parameters import kinds_of
from .pod import PodInfo
from .queue import Queue, Queued, Where
from .recording import UNRECORDED, Recorder
from .rights import readable
from .settings import Settings
from .snapshot import snapshot_for
from .sweeping import Sweeping
from .telemetry import NumericMetrics, SchedulerMetrics, plugin_times
from .timing import Stopwatch
from .unheard import Unheard
from .writes import (
    AskDrivers,
    AwaitDrivers,
    Deallocate,
    DeleteClaim,
    LeaveClaims,
    Preempt,
    RoomMaking,
    SearchOn,
)

log = logging.getLogger(__name__)

BINDINGS_MAX = 256
GOOD_NEWS_AT_ONCE = 100
GOOD_NEWS_EVERY_S = 0.05
"""Of so many pods, and then of one in so long, an event says that it was placed. In a storm of pods
nobody reads each of them, and every pod's condition says the same: the writes are better spent."""
NEWS_AT_ONCE = 32
T = TypeVar("T")
DoAside = Callable[[Aside], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RoomMade:
    """What was proposed to make room has been done, or was refused."""

    outcome: Unplaced
    refused: bool = False


@dataclass(frozen=True, slots=True)
class WorkedOut:
    """What had to be worked out before a pod could be decided."""

    pod: PodInfo
    bug: Exception | None = None


@dataclass(frozen=True, slots=True)
class Dependencies:
    """All that the scheduler may touch."""

    client: Client
    informers: Informers
    clock: Clock
    ids: Ids
    metrics: Metrics
    telemetry: Telemetry
    gates: Gates
    aside: DoAside = asyncio.to_thread
    """Does what takes long somewhere else; the simulator does it on the spot."""
    recorder: Recorder = UNRECORDED


async def run(
    dependencies: Dependencies,
    settings: Settings | None = None,
    election: Election | None = None,
    *,
    ready: Callable[[], None] = lambda: None,
    leading: Callable[[], None] = lambda: None,
) -> None:
    """Schedule until cancelled; with an election, only while this copy leads.

    `ready` is called when the caches are ready, `leading` whenever a term begins: then all
    that is there has been read and taken in anew, and the next pod is placed at once.
    """
    informers = dependencies.informers
    warm = [informers.use(what) for what in await readable(dependencies.client)]

    async def term() -> None:
        await Scheduler(dependencies, settings or Settings()).run(leading)

    try:
        await informers.synced(*warm)
        ready()
        if election is None:
            await term()
        else:
            await lead_forever(election, term)
    finally:
        for informer in warm:
            informers.leave(informer)


class Scheduler:
    """One term: what it knows is read anew at its beginning."""

    def __init__(self, dependencies: Dependencies, settings: Settings) -> None:
        self._clock = dependencies.clock
        self._client = dependencies.client
        self._aside = dependencies.aside
        self._informers = dependencies.informers
        self._recorder = dependencies.recorder
        self._recorder.begin(settings, dependencies.gates)
        self._chance = random.Random(dependencies.ids.uid())
        self.snapshot = snapshot_for(dependencies.gates)
        asked = plugins.default(dependencies.ids, settings)
        watch = Stopwatch(self._clock.monotonic_s, plugin_times(dependencies.metrics))
        self.cycle = Cycle(asked, watch)
        self.queue = Queue(plugins.events(asked))
        self.intake = Intake(
            self.snapshot,
            self.queue,
            self.cycle,
            settings.names,
            self._gated,
            self._misread,
            self._talked_out,
        )
        self._box: deque[News | Report | RoomMade | KindTold | WorkedOut] = deque()
        self._parameters = ParameterWatches(
            dependencies.client,
            self._informers,
            self._clock,
            dependencies.telemetry,
            self._put,
            lambda what, change: self._put(News(what, change, of_parameters=True)),
        )
        self._woken = asyncio.Event()
        self._awaiting = Awaiting(dependencies.client)
        self._binder = Binder(
            dependencies.client,
            self._clock,
            self._put,
            self._awaiting,
            binding_timeout_s=settings.binding_timeout_s,
            driver_timeout_s=settings.driver_timeout_s,
        )
        self._sweeping = Sweeping(
            dependencies.client, self.snapshot, settings.names, self._clock, dependencies.telemetry
        )
        self._events = Events(
            dependencies.client,
            settings.names[0],
            self._clock,
            dependencies.ids,
            dependencies.telemetry,
            dependencies.metrics,
        )
        self._good_news = Budget(GOOD_NEWS_AT_ONCE, GOOD_NEWS_EVERY_S)
        self._explainer = Explainer(
            dependencies.client, self._clock, dependencies.telemetry, self._events, self.snapshot
        )
        self._metrics = SchedulerMetrics(
            dependencies.metrics, self.queue, self.intake.aside, settings.names[0]
        )
        NumericMetrics(dependencies.metrics, self.snapshot, plugins.template_failures(asked))
        self._evictor = Evictor(dependencies.client, self._clock, self._events)
        self._acting: set[asyncio.Task[None]] = set()
        self._unheard: Unheard | None = None
        self._under_way: set[str] = set()  # pods, by uid, of whose attempt the end is still to be heard
        self._patient: set[str] = set()  # of these, those that wait for a driver, or for long work
        self._long_work = asyncio.Lock()  # one at a time, since all of it costs the others

    async def run(self, leading: Callable[[], None] = lambda: None) -> None:
        used = [self._informers.use(what) for what in await readable(self._client)]
        (claims,) = [one for one in used if one.what == CLAIMS]
        self._unheard = unheard = Unheard(claims, lambda claim: self._put(News(CLAIMS, Deleted(claim))))
        stops = [one.handle(self._listener(one.what)) for one in used]
        try:
            await self._informers.refresh(*used)
            await self._empty_box()
            leading()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._events.run(), name="scheduler events")
                group.create_task(self._explainer.run(), name="scheduler explanations")
                group.create_task(self._sweeping.run(), name="scheduler podschedulings")
                group.create_task(self._parameters.run(), name="scheduler parameters")
                group.create_task(unheard.run(), name="scheduler claims of its own")
                await self._decide(group)
        finally:
            for stop in stops:
                stop()
            for informer in used:
                self._informers.leave(informer)

    def _listener(self, what: ResourceId) -> Handler:
        return lambda change: self._put(News(what, change))

    # -- deciding -------------------------------------------------------------------------------

    async def _decide(self, group: asyncio.TaskGroup) -> None:
        while True:
            await self._empty_box()
            is_free = len(self._acting) - len(self._patient) < BINDINGS_MAX
            queued = self.queue.take(self._now_s()) if is_free else None
            if queued is None:
                await self._news(self.queue.next_moment_s() if is_free else None)
                continue
            if queued.pod.uid in self._under_way:  # it left and came back: one attempt at a time
                self.queue.failed(queued.pod.uid, None, frozenset(), self._now_s(), error=True)
                continue
            state = CycleState(queued.pod, self._clock.now(), seed=self._chance.getrandbits(32))
            self._recorder.deciding(self.snapshot.prospects)
            kept = self.snapshot.prospects.nomination(queued.pod.uid)
            try:
                outcome = await _in_turns(self.cycle.schedule_one(state, self.snapshot), self._aside)
            except InvariantBroken:
                raise
            except Exception as bug:  # perhaps one that only this pod meets: the others go on
                self._gave_up(state, bug)
                continue
            if isinstance(outcome, LongWork):
                self._patient.add(queued.pod.uid)
                self._try(group, queued.pod, self._work_out(queued.pod, outcome), "long work for")
                continue
            self._recorder.decided(state, outcome)
            self._metrics.decided(outcome, self._now_s() - queued.first_seen_s, queued.attempts)
            self._follow(outcome, queued, group)
            if isinstance(outcome, Unplaced):
                self._keep_room(queued.pod, kept, group)
            await asyncio.sleep(0)

    def _gave_up(self, state: CycleState, bug: Exception) -> None:
        log.error("pod %s could not be decided", state.pod.key, exc_info=bug)
        self._recorder.decided(state, bug)
        self.cycle.unreserve(state, self.snapshot)
        self.queue.failed(state.pod.uid, None, frozenset(), self._now_s(), error=True)
        self._explainer.failed(state.pod, f"internal error: {bug!r}")

    def _follow(self, outcome: Outcome, queued: Queued, group: asyncio.TaskGroup) -> None:
        pod = queued.pod
        if isinstance(outcome, Placed):
            if self.snapshot.unnominate(pod.uid):
                self.intake.room_is_free(self._now_s())  # what it leaves of it
            self.queue.placed(pod.uid, self._now_s())
            self._explainer.withdraw(pod.uid)
            self._try(group, pod, self._binder.bind(outcome), "bind")
            return
        match outcome.remedy:
            case None | AwaitDrivers():
                self._failed(outcome)
            case SearchOn():
                self._failed(outcome, is_error=True)
            case Deallocate() | DeleteClaim() | LeaveClaims() | AskDrivers() | Preempt() as remedy:
                self._try(group, pod, self._make_room(outcome, remedy), "room for")
            case _:
                assert_never(outcome.remedy)

    def _keep_room(self, pod: PodInfo, kept: str | None, group: asyncio.TaskGroup) -> None:
        """A node that was `kept` for a pod, and is not any more, is free to the others."""
        nominated = self.snapshot.prospects.nomination(pod.uid)
        if kept is not None and nominated != kept:
            self.intake.room_is_free(self._now_s())
        said = kept or pod.status.nominated_node_name
        if nominated is None and said:
            self._act(group, self._evictor.withdraw(pod, said), f"no room for {pod.key}")

    def _failed(self, outcome: Unplaced, *, is_error: bool = False) -> None:
        """It waits for what may help; after an error, or half a search, only for a moment, since nothing else
        may come."""
        pod = outcome.state.pod
        self.queue.failed(pod.uid, outcome.group, outcome.rejected_by, self._now_s(), error=is_error)
        self._explainer.unplaced(outcome)

    # -- acting ---------------------------------------------------------------------------------

    def _try(
        self, group: asyncio.TaskGroup, pod: PodInfo, work: Coroutine[Any, Any, None], name: str
    ) -> None:
        """The rest of an attempt, which says how it ended."""
        self._under_way.add(pod.uid)
        self._act(group, work, f"{name} {pod.key}")

    def _act(self, group: asyncio.TaskGroup, work: Coroutine[Any, Any, None], name: str) -> None:
        task = group.create_task(work, name=name)
        self._acting.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._acting.discard(task)
        self._woken.set()

    async def _work_out(self, pod: PodInfo, work: LongWork) -> None:
        bug = None
        try:
            async with self._long_work:
                await self._aside(work)
        except Exception as raised:  # by what one pod asks for: the others go on
            bug = raised
        self._put(WorkedOut(pod, bug))

    async def _make_room(self, outcome: Unplaced, remedy: RoomMaking) -> None:
        """Carry out what a plugin proposed; then the pod waits for what comes of it."""
        pod = outcome.state.pod
        try:
            match remedy:
                case Deallocate(claim):
                    await self._binder.require_unbound(pod)
                    await self._binder.claims.deallocate(pod, claim)
                case DeleteClaim(claim):
                    await self._binder.require_unbound(pod)
                    await self._binder.claims.delete_extended(pod, claim)
                case LeaveClaims(claims):
                    await self._binder.require_unbound(pod)
                    for claim in claims:
                        await self._binder.claims.release(pod, claim)
                case AskDrivers(nodes, talk):
                    await self._binder.talks.ask(pod, talk, nodes)
                case Preempt(node, victims):
                    await self._evictor.evict(pod, node, victims)
                case _:
                    assert_never(remedy)
        except (Refusal, errors.ApiError) as refused:
            log.log(level_of(refused, logging.WARNING), "no room was made for %s: %s", pod.key, refused)
            self._put(RoomMade(outcome, refused=True))
        except InvariantBroken:
            raise
        except Exception:  # perhaps of an object that nobody can read: the others go on
            log.exception("making room for %s failed in an unforeseen way", pod.key)
            self._put(RoomMade(outcome, refused=True))
        else:
            self._put(RoomMade(outcome))

    # -- news -----------------------------------------------------------------------------------

    def _put(self, news: News | Report | RoomMade | KindTold | WorkedOut) -> None:
        self._box.append(news)
        self._woken.set()

    async def _news(self, moment_s: float | None) -> None:
        """Until there is something to do, or that moment has come."""
        self._woken.clear()
        if self._box:
            return
        if moment_s is None:
            await self._woken.wait()
            return
        left_s = max(ALARM_LEAST_S, moment_s - self._now_s())
        alarm = asyncio.get_running_loop().call_later(left_s, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            alarm.cancel()

    async def _empty_box(self) -> None:
        """Take in all that has become known; others have their turn in between."""
        heard, now_s = 0, self._now_s()
        while self._box:
            self._hear(self._box.popleft(), now_s)
            heard += 1
            if heard % NEWS_AT_ONCE == 0:
                await asyncio.sleep(0)
                now_s = self._now_s()

    def _hear(self, news: News | Report | RoomMade | KindTold | WorkedOut, now_s: float) -> None:
        match news:
            case News():
                self._recorder.learned(news)
                self.intake.hear(news, now_s)
                self._awaiting.hear(news.what, news.change)
                if news.what == CLAIMS and self._unheard is not None:
                    self._unheard.heard(news.change.object)
                if news.what == RESOURCE_CLASSES:
                    self._watch_parameters()
            case KindTold(kind, standing):
                self._recorder.learned(news)
                self.intake.parameters(kind, standing, now_s)
            case ClaimWritten(claim, instead_of):
                self._recorder.learned(news)
                if instead_of:
                    self.snapshot.rename_flight(instead_of, claim.uid)
                self.intake.claim(claim, now_s)
                if self._unheard is not None:
                    self._unheard.made(claim)
            case Bound(placed):
                self._bound(placed)
            case Failed(placed, error, is_outdated, is_mistake):
                if self._not_bound(placed, is_error=not is_outdated):
                    if is_mistake:
                        self._explainer.failed(placed.state.pod, f"binding to {placed.node} failed: {error}")
                    else:
                        self._explainer.refused(placed.state.pod, f"not placed on {placed.node}: {error}")
            case BoundByAnother(placed):
                self._not_bound(placed)
            case WaitsForDevices(placed, claims):
                pod, names = placed.state.pod, ", ".join(one.key.name for one in claims)
                message = f"waiting for the devices of {names} to be made ready"
                self._events.record(pod.object, NORMAL, "BindingConditionsPending", message)
                self._explainer.awaits(pod, news.text)
                self._patient.add(pod.uid)
            case WaitsForDrivers(placed):
                self._explainer.awaits(placed.state.pod, news.text, PATIENCE_S)
                self._patient.add(placed.state.pod.uid)
            case Negotiated():
                self._metrics.negotiated(news)
            case Waited():
                self._metrics.waited(news)
            case ExtendedClaim(created):
                self._metrics.extended_claim(created)
            case WorkedOut(pod, bug):
                self._worked_out(pod, bug)
            case RoomMade(outcome, refused):
                if refused and isinstance(outcome.remedy, Preempt):
                    self.snapshot.prospects.spare(victim.uid for victim in outcome.remedy.victims)
                    if self.snapshot.unnominate(outcome.state.pod.uid):
                        self.intake.room_is_free(now_s)
                if self._ended(outcome.state.pod):
                    self._failed(outcome, is_error=refused)
            case _:
                assert_never(news)

    def _ended(self, pod: PodInfo) -> bool:
        """An attempt is over. Whether its pod still waits for that: else it has left, and if it came back it
        will be tried like any other."""
        self._under_way.discard(pod.uid)
        self._patient.discard(pod.uid)
        return self.queue.where(pod.uid) is Where.TAKEN

    def _worked_out(self, pod: PodInfo, bug: Exception | None) -> None:
        if not self._ended(pod):
            return
        if bug is not None:
            self._gave_up(CycleState(pod, self._clock.now()), bug)
            return
        self.queue.happened_to(pod.uid, Event.PARAMETERS_CHANGED, self._now_s())
        self.queue.failed(pod.uid, pod.uid, frozenset(), self._now_s())

    def _watch_parameters(self) -> None:
        """Of the kinds that classes name now."""
        if self.snapshot.heeds_numeric:
            classes = self.snapshot.resource_classes.values()
            self._parameters.want(frozenset().union(*map(kinds_of, classes)))

    def _gated(self, pod: PodInfo, why: str | None) -> None:
        if why is None or pod.spec.scheduling_gates:  # gates of its owner: the server has told it
            self._explainer.forget(pod.uid)
        else:
            self._explainer.gated(pod, why)

    def _talked_out(self, key: Key) -> None:
        self._sweeping.add(key)

    def _misread(self, pod: Object, why: str) -> None:
        """Nobody knows what to write into its condition; an event needs its name only."""
        self._events.record(pod, WARNING, "FailedScheduling", f"the scheduler cannot read this pod: {why}")

    def _bound(self, placed: Placed) -> None:
        pod = placed.state.pod
        self._recorder.ended(pod, is_bound=True)
        self._ended(pod)
        self.queue.remove(pod.uid, self._now_s())
        self._explainer.forget(pod.uid)
        if self._good_news.spend("", self._now_s()):
            message = f"Successfully assigned {pod.key} to {placed.node}"
            self._events.record(pod.object, NORMAL, "Scheduled", message)

    def _not_bound(self, placed: Placed, *, is_error: bool = True) -> bool:
        """Whether the pod is still to be placed: after an error in a while, and at once where only
        what was decided on is not so any more."""
        pod = placed.state.pod
        self._recorder.ended(pod, is_bound=False)
        self.cycle.unreserve(placed.state, self.snapshot)
        now = self.queue.get(pod.uid) if self._ended(pod) else None
        is_waiting = now is not None and not now.is_deleting
        if now is not None and is_waiting:
            if now.status.nominated_node_name:  # the room was made for it, and it tries again
                self.snapshot.nominate(now, now.status.nominated_node_name)
            self.queue.failed(pod.uid, pod.uid, frozenset(), self._now_s(), error=is_error)
        elif now is not None:
            self.queue.remove(pod.uid, self._now_s())
        if self.queue.get(pod.uid) is None:
            self._explainer.forget(pod.uid)
        self.intake.room_is_free(self._now_s())
        return is_waiting

    def _now_s(self) -> float:
        return self._clock.monotonic_s()


async def _in_turns(cycle: Generator[Aside | None, None, T], aside: DoAside) -> T | LongWork:
    """Run a cycle; wherever it pauses, others have their turn. It ends where something is to be worked out
    first that takes long."""
    while True:
        try:
            work = next(cycle)
        except StopIteration as done:
            result: T = done.value
            return result
        if isinstance(work, LongWork):
            return work
        await (asyncio.sleep(0) if work is None else aside(work))
