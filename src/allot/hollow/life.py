"""What happens to a pod next, and when.

    bound ── start delay, claims ready ──► Start ──► running ── run time ──► Exit ──► ended
      │                                                ▲                      │
      │                                                └── Revive ◄─ back-off ┘ if it restarts
      └── no room on its node ──► Refuse ──► ended
    deleted ── stop delay ──► Leave ──► gone

How a pod stands is read from the pod. `Life` adds the moments, which the pod names only to
the second, by the monotonic clock of this process; they are made up from the pod when the
process begins. Pure: handed the time, it returns a step and changes nothing.
"""

from dataclasses import dataclass

from allot.api import core
from allot.node import Refusal

from .settings import BadWish, Stages, Wishes, wishes

CRASH_LOOP = "CrashLoopBackOff"
_BACKOFF_S, _BACKOFF_S_MAX = 10.0, 300.0


@dataclass(slots=True)
class Life:
    seen_s: float  # bound to a node of ours
    since_s: float  # of the run, or of the wait after the last one
    leaving_s: float | None = None  # told to go
    has_started: bool = False  # which the cache may not show yet


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing will happen by itself."""


@dataclass(frozen=True, slots=True)
class Wait:
    until_s: float


@dataclass(frozen=True, slots=True)
class Explain:
    """It cannot start; its containers say why."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """It ends before it began: there is no room for it."""


@dataclass(frozen=True, slots=True)
class Start:
    """Claims first, then the containers."""


@dataclass(frozen=True, slots=True)
class Exit:
    code: int
    restarts: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Revive:
    """The containers run once more."""


@dataclass(frozen=True, slots=True)
class Leave:
    """End it if it runs, and let it go."""


Step = Rest | Wait | Explain | Refuse | Start | Exit | Revive | Leave


def plan(
    pod: core.Pod,
    life: Life,
    lacking: str,
    stages: Stages,
    now_s: float,
    refusal: Refusal | None = None,
) -> Step:
    """`lacking` is what the pod still waits for, or "" when its claims are ready.

    `refusal` says why it does not fit on its node. Nobody waits for room there: whoever made
    the pod makes another, which may go elsewhere.
    """
    try:
        wished = wishes(pod.metadata.annotations, stages)
    except BadWish as bad:
        wished, wrong = wishes({}, stages), str(bad)
    else:
        wrong = ""
    if pod.metadata.deletion_timestamp:
        return _leaving(pod, life, wished, now_s)
    if pod.is_finished:
        return Rest()
    if pod.status.phase == "Running":
        return _running(pod, life, wished, stages, now_s)
    if refusal is not None:
        return Refuse()
    if wrong:
        return Explain("CreateContainerConfigError", wrong)
    if lacking:
        complain_s = life.seen_s + stages.patience_s
        return Explain("ClaimsNotReady", lacking) if now_s >= complain_s else Wait(complain_s)
    due_s = life.seen_s + wished.start_s
    return Start() if now_s >= due_s else Wait(due_s)


def _leaving(pod: core.Pod, life: Life, wished: Wishes, now_s: float) -> Step:
    grace_s = pod.metadata.deletion_grace_period_seconds
    if pod.is_finished:
        return Leave() if grace_s else Rest()  # at 0 it is only held by finalizers
    if pod.status.phase != "Running" or life.leaving_s is None:
        return Leave()
    stop_s = wished.stop_s if grace_s is None else min(wished.stop_s, grace_s)
    due_s = life.leaving_s + stop_s
    return Leave() if now_s >= due_s else Wait(due_s)


def _running(pod: core.Pod, life: Life, wished: Wishes, stages: Stages, now_s: float) -> Step:
    if is_crashed(pod):
        due_s = life.since_s + backoff_s(restarts(pod))
        return Revive() if now_s >= due_s else Wait(due_s)
    deadline_s = pod.spec.active_deadline_seconds
    run_s = wished.run_s
    if run_s is None and pod.spec.restart_policy in ("Never", "OnFailure"):
        run_s = stages.run_s
    if deadline_s is not None and (run_s is None or deadline_s < run_s):
        end_s, end = life.since_s + deadline_s, Exit(1, False, "DeadlineExceeded")
    elif run_s is not None:
        policy = pod.spec.restart_policy or "Always"
        again = policy == "Always" or (policy == "OnFailure" and wished.exit_code != 0)
        end_s, end = life.since_s + run_s, Exit(wished.exit_code, again)
    else:
        return Rest()
    return end if now_s >= end_s else Wait(end_s)


def is_crashed(pod: core.Pod) -> bool:
    states = (one.state.waiting for one in pod.status.container_statuses)
    return any(state is not None and state.reason == CRASH_LOOP for state in states)


def restarts(pod: core.Pod) -> int:
    return max((one.restart_count for one in pod.status.container_statuses), default=0)


def backoff_s(restarts: int) -> float:
    """The first time at once, then twice as long each time."""
    return min(_BACKOFF_S_MAX, _BACKOFF_S * 2.0 ** min(restarts - 1, 10)) if restarts else 0.0
