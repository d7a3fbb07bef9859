"""The containers of a hollow pod: their states follow from times. Pure.

    nothing ── start delay ──► running ── run time ──► ended
                                 ▲           │
                                 └─ back-off ┘ if it restarts
    told to stop ── stop delay ──► ended

`advanced` is handed the time and makes at most one step, so that each state is seen once; it says
when the next one is due. The moments are by the monotonic clock of this process. What a pod's status
shows, to the second, is enough to make them up again when the process begins.
"""

from collections.abc import Callable
from dataclasses import dataclass

from allot.api import core
from allot.node import NOTHING, Container, Observed, Running, State, Terminated, Waiting

from . import views
from .settings import Wishes

CRASH_LOOP = "CrashLoopBackOff"
CONFIG_ERROR = "CreateContainerConfigError"
STOPPED = 143
"""How a program ends that is told to."""
_BACKOFF_S, _BACKOFF_S_MAX = 10.0, 300.0

Moment = Callable[[], str]
"""The time of day, in the API's form: asked for when something happens."""


@dataclass(frozen=True, slots=True)
class Life:
    since_s: float  # it was first heard of, began to run, or began to wait for the next run
    told_s: float | None = None  # told to stop
    observed: Observed = NOTHING

    @property
    def has_begun(self) -> bool:
        return any(not isinstance(one.state, Waiting) or one.last for one in self.observed.containers)

    @property
    def is_crashed(self) -> bool:
        return self.has_begun and any(isinstance(one.state, Waiting) for one in self.observed.containers)


def advanced(life: Life, pod: core.Pod, wished: Wishes, now_s: float, now: Moment) -> Life:
    """What is due has happened, and `again_s` says when the next is."""
    if life.observed.has_ended:
        return life
    if not life.has_begun and wished.wrong:
        return _seeing(life, Observed(_each(pod, Waiting(CONFIG_ERROR, wished.wrong))))
    due_s = _due_s(life, pod, wished)
    if due_s is None or now_s < due_s:
        observed = life.observed if life.has_begun else NOTHING
        return life if observed.again_s == due_s else _seeing(life, observed._replace(again_s=due_s))
    life = Life(now_s, life.told_s, _step(life, pod, wished, now()))
    return _seeing(life, life.observed._replace(again_s=_due_s(life, pod, wished)))


def stopped(life: Life, wished: Wishes, grace_s: float, now_s: float, now: Moment) -> Life:
    """It was told to end, for the first time or once more."""
    if not life.observed.runs:
        return life
    told_s = now_s if life.told_s is None else life.told_s
    due_s = told_s + min(wished.stop_s, grace_s)
    if now_s < due_s:
        return Life(life.since_s, told_s, life.observed._replace(again_s=due_s))
    return Life(life.since_s, told_s, _ended(life.observed, STOPPED, "", now()))


def recalled(pod: core.Pod, told: views.PodStatus, since_s: float) -> Life:
    """The life of a pod that runs, made up from what its status says."""
    spec = {one.name: one for one in (*pod.spec.containers, *pod.spec.init_containers)}

    def shown(status: views.ContainerStatus) -> Container:
        state, last = status.state, status.last_state.terminated
        seen: State
        if state.waiting is not None:
            seen = Waiting(state.waiting.reason, state.waiting.message)
        elif state.terminated is not None:
            seen = _terminated(state.terminated)
        else:
            seen = Running(state.running.started_at if state.running else pod.status.start_time)
        image = spec[status.name].image if status.name in spec else ""
        known = _container(pod, status.name, image, seen)
        ended = _terminated(last) if last is not None else None
        return known._replace(restarts=status.restart_count, last=ended)

    containers = tuple(map(shown, told.container_statuses))
    init = tuple(map(shown, told.init_container_statuses))
    if not containers:  # somebody else says that it runs
        containers = _each(pod, Running(pod.status.start_time))
    addresses = (pod.status.pod_ip,) if pod.status.pod_ip else ()
    return Life(since_s, None, Observed(containers, init, addresses))


def backoff_s(restarts: int) -> float:
    """The first time at once, then twice as long each time."""
    return min(_BACKOFF_S_MAX, _BACKOFF_S * 2.0 ** min(restarts - 1, 10)) if restarts else 0.0


# -- one step ------------------------------------------------------------------------------------


def _due_s(life: Life, pod: core.Pod, wished: Wishes) -> float | None:
    if not life.has_begun:
        return life.since_s + wished.start_s
    if life.observed.has_ended:
        return None
    if life.is_crashed:
        return life.since_s + backoff_s(max(one.restarts for one in life.observed.containers))
    run_s = _run_s(pod, wished)
    return None if run_s is None else life.since_s + run_s


def _run_s(pod: core.Pod, wished: Wishes) -> float | None:
    lengths = [one for one in (wished.run_s, pod.spec.active_deadline_seconds) if one is not None]
    return float(min(lengths)) if lengths else None


def _seeing(life: Life, observed: Observed) -> Life:
    return Life(life.since_s, life.told_s, observed)


def _step(life: Life, pod: core.Pod, wished: Wishes, now: str) -> Observed:
    if not life.has_begun:
        return _started(pod, now)
    if life.is_crashed:
        return _revived(pod, life.observed, now)
    deadline_s = pod.spec.active_deadline_seconds
    if deadline_s is not None and (wished.run_s is None or deadline_s < wished.run_s):
        return _ended(life.observed, 1, "DeadlineExceeded", now)
    policy = pod.spec.restart_policy or "Always"
    if policy == "Always" or (policy == "OnFailure" and wished.exit_code != 0):
        return _crashed(life.observed, wished.exit_code, now)
    return _ended(life.observed, wished.exit_code, "", now)


def _started(pod: core.Pod, now: str) -> Observed:
    running, done = Running(now), Terminated(0, now, now)
    init = tuple(
        _container(pod, one.name, one.image, running if one.is_sidecar else done)
        for one in pod.spec.init_containers
    )
    return Observed(_each(pod, running), init)


def _revived(pod: core.Pod, seen: Observed, now: str) -> Observed:
    before = {one.name: one for one in seen.containers}
    containers = tuple(
        one._replace(restarts=before[one.name].restarts + 1, last=before[one.name].last)
        if one.name in before
        else one
        for one in _each(pod, Running(now))
    )
    return seen._replace(containers=containers)


def _crashed(seen: Observed, code: int, now: str) -> Observed:
    waiting = Waiting(CRASH_LOOP, "back-off before the container is started again")
    containers = tuple(
        one._replace(state=waiting, last=_end(one, code, now), id="") for one in seen.containers
    )
    return seen._replace(containers=containers)


def _ended(seen: Observed, code: int, reason: str, now: str) -> Observed:
    """Whatever runs has ended, side cars too."""

    def end(one: Container) -> Container:
        return one._replace(state=_end(one, code, now)) if isinstance(one.state, Running) else one

    return seen._replace(
        containers=tuple(map(end, seen.containers)),
        init_containers=tuple(map(end, seen.init_containers)),
        reason=reason,
        again_s=None,
    )


def _end(container: Container, code: int, now: str) -> Terminated:
    began = container.state.started_at if isinstance(container.state, Running) else now
    return Terminated(code, began or now, now)


def _terminated(shown: views.TerminatedState) -> Terminated:
    return Terminated(shown.exit_code, shown.started_at, shown.finished_at)


def _each(pod: core.Pod, state: Running | Waiting) -> tuple[Container, ...]:
    return tuple(_container(pod, one.name, one.image, state) for one in pod.spec.containers)


def _container(pod: core.Pod, name: str, image: str, state: State) -> Container:
    id = "" if isinstance(state, Waiting) else f"hollow://{pod.metadata.uid}/{name}"
    return Container(name, state, id=id, image_id=f"hollow/{image}")
