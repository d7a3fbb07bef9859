"""One measurement, from an empty store to the verdict.

    report = await measure(Settings(find("5000pods_500nodes")), scheduler, print)

The server, its nodes and what is there before; then the controllers and the scheduler;
then the load, which is timed; then the checkers. Everything goes through the API with
the rights of whoever does it, and every write is on disk before it is answered.
"""

import asyncio
import contextlib
import gc
import random
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allot.api import Gates, resource
from allot.apiserver import identities
from allot.base import LoopWatch, RandomIds, SystemClock
from allot.client import Client

from . import objects
from .cast import CASTS, Scheduler, Wanted, performing
from .disturbing import changing_class
from .following import Follower
from .furnishing import allocate_before, furnish
from .judging import CHECKERS, judge
from .load import STALL_S, Load, Tally
from .place import Place, open_place
from .processes import Used, used_by
from .profiling import Profile, Profiler
from .shape import Shape
from .writes import Served, served

WINDOW_S = 10.0
_QUIET_S = 0.3
_QUIET_S_MAX = 10.0
_REST_S = 0.2
_REST_S_MAX = 60.0


@dataclass(frozen=True, slots=True)
class Settings:
    shape: Shape
    transport: str = "inprocess"
    store: str = "sqlite"
    controllers: str = "claims"
    window_s: float = WINDOW_S  # of a steady shape
    seed: int = 1
    stall_s: float = STALL_S
    profile: bool = False
    class_changes_every_s: float = 0.0  # of a class that no pod asks for; 0: never


@dataclass(frozen=True, slots=True)
class Report:
    settings: Settings
    tally: Tally  # of what counts
    served: Served  # while it was measured
    used: Mapping[str, Used]  # process -> what it used while it was measured
    gc_s: float
    hold_s: float
    wrong: list[str] = field(default_factory=list)
    profile: Profile | None = None
    class_changes: int = 0

    @property
    def seconds(self) -> float:
        if self.settings.shape.steady:
            return self.settings.window_s
        return self.tally.ended_s - self.tally.began_s

    def figures(self) -> dict[str, Any]:
        """The object that is printed last."""
        settings, bound = self.settings, len(self.tally.bound_s)
        times = self.tally.times_to_bind_s()
        return {
            "shape": settings.shape.name,
            "mode": "steady" if settings.shape.steady else "burst",
            "nodes": settings.shape.nodes + settings.shape.plain_nodes,
            "pods": bound,
            "seconds": round(self.seconds, 3),
            "pods_per_second": round(bound / self.seconds, 1) if self.seconds else 0.0,
            "time_to_bind_ms": {"p50": _percentile_ms(times, 0.5), "p99": _percentile_ms(times, 0.99)},
            "writes_per_pod": _per_pod(self.served.done, bound),
            "writes_per_pod_total": round(sum(self.served.done.values()) / bound, 2) if bound else 0.0,
            "refused_per_pod": _per_pod(self.served.refused, bound),
            "reads_per_pod": round(self.served.reads / bound, 3) if bound else 0.0,
            "peak_rss_mb": round(sum(one.peak_rss_mb for one in self.used.values()), 1),
            "processes": {name: one.figures() for name, one in self.used.items()},
            "cpu_seconds": round(sum(one.cpu_s for one in self.used.values()), 3),
            "gc_seconds": round(self.gc_s, 3),
            "holds_ms": round(self.hold_s * 1000, 1),
            "store": settings.store,
            "transport": settings.transport,
            "controllers": [one.name for one in CASTS[settings.controllers]],
            "seed": settings.seed,
            "profiled": settings.profile,
            "class_changes": self.class_changes,
            "checked": [*CHECKERS],
            "wrong": len(self.wrong),
        }


def _percentile_ms(ordered: list[float], share: float) -> float:
    if not ordered:
        return 0.0
    return round(1000 * ordered[min(int(len(ordered) * share), len(ordered) - 1)], 2)


def _per_pod(counts: Mapping[str, float], pods: int) -> dict[str, float]:
    return {what: round(count / pods, 3) for what, count in counts.items()} if pods else {}


async def measure(settings: Settings, scheduler: Scheduler, say: Callable[[str], None]) -> Report:
    """Raises Stalled when pods stay unbound, Fallen when a component ends by itself."""
    with tempfile.TemporaryDirectory(prefix="allot-bench-") as folder:
        data_dir = Path(folder)
        shape = settings.shape
        async with open_place(settings.transport, settings.store, data_dir, shape.gates) as place:
            return await _Measurement(settings, place, data_dir, say).run(scheduler)


class _Measurement:
    def __init__(self, settings: Settings, place: Place, data_dir: Path, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._shape = settings.shape
        self._place = place
        self._say = say
        self._gates = Gates(dict.fromkeys(settings.shape.gates, True))
        self._admin = Client(place.connect(identities.ADMIN), user_agent="allot-bench")
        self._load: Load | None = None
        namespaced = f"namespaces/{objects.NAMESPACE}"
        claims = f"/apis/{resource.limits.GROUP}/v1/{namespaced}/resourceclaims"
        pods = f"/api/v1/{namespaced}/pods"
        self._followers = [
            Follower(self._admin, claims, "resourceclaims", data_dir / "claims.seen"),
            Follower(self._admin, pods, "pods", data_dir / "pods.seen", self._hear),
        ]

    async def run(self, scheduler: Scheduler) -> Report:
        settings, shape, rng = self._settings, self._shape, random.Random(self._settings.seed)
        for follower in self._followers:
            await follower.start()
        await furnish(self._admin, shape, self._say)
        await allocate_before(self._admin, shape, self._gates, rng, RandomIds(rng), self._say)
        wanted = Wanted(self._gates, shape.scoring, settings.seed)
        cast = CASTS[settings.controllers]
        try:
            async with performing(self._place.connect, cast, scheduler, wanted) as check:
                self._say("controllers and scheduler are ready")
                self._load = Load(self._admin, shape, SystemClock(), check, self._say, settings.stall_s)
                before = shape.pods_before.at(shape.nodes)
                if before:
                    await self._load.burst(before)
                    self._say(f"{before} pods are there before")
                    await self._quiet()
                await self._rested()
                report = await self._timed(self._load)
        finally:
            for follower in self._followers:
                await follower.stop()
        self._say("judging")
        report.wrong.extend(await judge(self._admin, self._followers))
        return report

    async def _timed(self, load: Load) -> Report:
        """The part that counts."""
        settings, shape = self._settings, self._shape
        # What is there before stays: as after every start, the collector need not look at it again.
        gc.collect()
        gc.freeze()
        watch, profiler = LoopWatch(), Profiler(settings.profile)
        watching = asyncio.create_task(watch.run(), name="loop watch")
        pods = shape.pods.at(shape.nodes)
        before, used = await served(self._admin), used_by(self._place.server_pid)
        async with changing_class(self._admin, settings.class_changes_every_s) as disturbance:
            profiler.start()
            if shape.steady:
                tally = (await load.steady(pods, settings.window_s)).within(settings.window_s)
            else:
                tally = await load.burst(pods)
            profile = profiler.stop()
        watching.cancel()
        used = {name: one.since(used[name]) for name, one in used_by(self._place.server_pid).items()}
        if not shape.steady:
            await self._quiet()
        done = (await served(self._admin)).since(before)
        hold_s = max(watch.longest_s, done.longest_hold_s)
        gc.unfreeze()
        changes = disturbance.changes
        return Report(settings, tally, done, used, profiler.gc_s, hold_s, [], profile, changes)

    async def _quiet(self) -> None:
        """Until what follows from the last binding (events, statuses) has been written too."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_QUIET_S_MAX):
                last = -1.0
                while (now := (await served(self._admin)).writes) != last:
                    last = now
                    await asyncio.sleep(_QUIET_S)

    async def _rested(self) -> None:
        """Until everybody has looked at what was there before, and has nothing left to do."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REST_S_MAX):
                busy_s = _REST_S
                while busy_s > _REST_S / 4:
                    before = used_by(self._place.server_pid)
                    await asyncio.sleep(_REST_S)
                    after = used_by(self._place.server_pid)
                    busy_s = sum(after[name].since(before[name]).cpu_s for name in after)

    def _hear(self, line: bytes) -> None:
        if self._load is not None:
            self._load.hear(line)
