"""The life of a pod's containers: what is to start, what to end, and how they stand. Pure: handed the time.

    init containers, one after the other ──► containers, all at once ──► sidecars, the last one first
       (sidecars among them start and go on)    by restart policy             once no container is left to run

A container restarts as its own policy says, else as that of the pod; rules about exit codes come first. What
comes after a sidecar waits until that has started. Ephemeral containers begin once anything of the pod has,
run once, and end with the pod.

What has ended and is to run again waits: not at all the first time, then 10 s and twice as long each time, up
to five minutes. One that ran for ten minutes begins anew.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from allot.api import age
from allot.node import Container, Observed, Running, State, Terminated, Waiting

from . import views
from .runtimes import Attempt

BACK_OFF = "CrashLoopBackOff"
FIRST_WAIT_S, LONGEST_WAIT_S, GOOD_RUN_S = 10.0, 300.0, 600.0


class Trouble(NamedTuple):
    """Why a container could not be started."""

    reason: str
    message: str
    retry_at: float | None = None  # None: nothing would be different


class Next(NamedTuple):
    container: views.Container
    number: int = 0
    crashes: int = 0


class Due(NamedTuple):
    start: tuple[Next, ...] = ()
    end: tuple[Attempt, ...] = ()
    again_at: float | None = None
    is_stillborn: bool = False


class Pod(NamedTuple):
    """What is known of a pod's containers."""

    name: str  # in messages
    spec: views.PodSpec
    attempts: Mapping[str, Sequence[Attempt]]  # by container, the last one last
    troubles: Mapping[str, Trouble]
    is_ending: bool = False  # nothing starts any more
    # Of the containers that run:
    unstarted: frozenset[str] = frozenset()  # whose hook or startup probe is not done
    unready: frozenset[str] = frozenset()  # whose readiness probe has not succeeded
    messages: Mapping[tuple[str, int], str] = {}  # what attempts left to be read

    def last(self, container: views.Container) -> Attempt | None:
        found = self.attempts.get(container.name)
        return found[-1] if found else None


def due(pod: Pod, now: float) -> Due:
    if pod.is_ending:
        return _ending(pod)
    plans = [_next(pod, one, _is_kept(pod, one), now) for one in (*_in_turn(pod), *_ephemeral(pod))]
    start = tuple(one for one in plans if isinstance(one, Next))
    waits = [one for one in plans if isinstance(one, float)]
    is_stillborn = _is_stillborn(pod)
    is_over = is_stillborn or _is_over(pod)
    end = (*_running(pod, pod.spec.ephemeral_containers), *_last_sidecar(pod)) if is_over else ()
    return Due(() if is_over else start, end, min(waits, default=None), is_stillborn)


def observed(pod: Pod, now: float) -> Observed:
    return Observed(
        tuple(_container(pod, one, now) for one in pod.spec.containers),
        tuple(_container(pod, one, now) for one in pod.spec.init_containers),
        is_stillborn=_is_stillborn(pod),
        ephemeral_containers=tuple(_container(pod, one, now) for one in pod.spec.ephemeral_containers),
    )


def _ending(pod: Pod) -> Due:
    """Containers first, then sidecars."""
    others = [one for one in pod.spec.init_containers if not is_sidecar(one)]
    running = _running(pod, (*pod.spec.containers, *others, *pod.spec.ephemeral_containers))
    return Due(end=running or _last_sidecar(pod))


def _running(pod: Pod, containers: Iterable[views.Container]) -> tuple[Attempt, ...]:
    return tuple(last for one in containers if (last := pod.last(one)) is not None and last.runs)


def _in_turn(pod: Pod) -> Iterable[views.Container]:
    """Those whose turn it is, or has been."""
    has_begun = any(pod.last(one) is not None for one in pod.spec.containers)
    for one in pod.spec.init_containers:
        if is_sidecar(one):
            if not _is_over(pod):
                yield one
            if not has_begun and not _has_started(pod, one):
                return
        elif not has_begun and not _is_done(pod.last(one)):
            if not _is_stillborn(pod):
                yield one
            return
    yield from pod.spec.containers


def _ephemeral(pod: Pod) -> Iterable[views.Container]:
    return pod.spec.ephemeral_containers if pod.attempts else ()


def _has_started(pod: Pod, sidecar: views.Container) -> bool:
    """Or has run before: what came after it is not held up again."""
    last = pod.last(sidecar)
    return last is not None and (last.number > 0 or sidecar.name not in pod.unstarted)


def _next(pod: Pod, container: views.Container, is_kept: bool, now: float) -> Next | float | None:
    """What is to start, or when, or nothing."""
    last, trouble = pod.last(container), pod.troubles.get(container.name)
    if trouble is not None and (trouble.retry_at is None or trouble.retry_at > now):
        return trouble.retry_at
    if last is None:
        return Next(container)
    if last.runs or not is_kept:
        return None
    at = _restarts_at(last)
    if at > now:
        return at
    return Next(container, last.number + 1, _crashes(last))


def _is_kept(pod: Pod, container: views.Container) -> bool:
    """It is started again after this end."""
    last = pod.last(container)
    if last is None or last.runs:
        return True
    if container in pod.spec.ephemeral_containers:
        return False
    is_init = container in pod.spec.init_containers
    if is_init and is_sidecar(container):
        return not _is_over(pod)
    if any(_matches(rule, last) for rule in container.restart_policy_rules):
        return True
    policy = container.restart_policy or pod.spec.restart_policy or "Always"
    if policy == "Always":
        return not is_init or not _is_done(last)
    return policy == "OnFailure" and not _is_done(last)


def _matches(rule: views.RestartRule, last: Attempt) -> bool:
    if rule.action != "Restart" or rule.exit_codes is None:
        return False
    is_named = last.exit_code in rule.exit_codes.values
    return is_named if rule.exit_codes.operator == "In" else not is_named


def _is_over(pod: Pod) -> bool:
    """No container is left to run."""
    lasts = [(one, pod.last(one)) for one in pod.spec.containers]
    return all(last is not None and not last.runs and not _is_kept(pod, one) for one, last in lasts)


def _is_stillborn(pod: Pod) -> bool:
    """An init container has failed, and does not run again."""
    return any(
        last is not None and not last.runs and not _is_done(last) and not _is_kept(pod, one)
        for one, last in ((one, pod.last(one)) for one in pod.spec.init_containers if not is_sidecar(one))
    )


def _last_sidecar(pod: Pod) -> tuple[Attempt, ...]:
    lasts = (pod.last(one) for one in reversed(pod.spec.init_containers) if is_sidecar(one))
    return tuple([last for last in lasts if last is not None and last.runs][:1])


def is_sidecar(container: views.Container) -> bool:
    return container.restart_policy == "Always"


def _is_done(last: Attempt | None) -> bool:
    return last is not None and not last.runs and last.exit_code == 0


def _restarts_at(last: Attempt) -> float:
    return (last.finished_at or 0.0) + _wait_s(last)


def _wait_s(last: Attempt) -> float:
    crashes = _crashes(last) - 1
    return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(crashes - 1, 10)) if crashes > 0 else 0.0


def _crashes(last: Attempt) -> int:
    """How many attempts in a row ended early, this one included."""
    ran_s = (last.finished_at or last.started_at) - last.started_at
    return 1 if ran_s >= GOOD_RUN_S else last.crashes + 1


# -- how they stand -------------------------------------------------------------------------------


def _container(pod: Pod, container: views.Container, now: float) -> Container:
    attempts = pod.attempts.get(container.name, ())
    if not attempts:
        return Container(container.name, _not_begun(pod, container))
    last = attempts[-1]
    before = _terminated(pod, attempts[-2]) if len(attempts) > 1 else None
    state: State
    if last.runs:
        state = Running(_stamp(last.started_at))
    elif pod.is_ending or not _is_kept(pod, container) or _is_stillborn(pod):
        state = _terminated(pod, last)
    else:
        state, before = _waiting(pod, container, last), _terminated(pod, last)
    is_started = container.name not in pod.unstarted
    return Container(
        container.name,
        state,
        last.number,
        before,
        last.id,
        last.image_id,
        is_started=is_started,
        is_ready=is_started and container.name not in pod.unready,
        resources=_resources(container),
    )


def _resources(container: views.Container) -> Mapping[str, Mapping[str, str]] | None:
    sides = (("limits", container.resources.limits), ("requests", container.resources.requests))
    return {side: amounts for side, amounts in sides if amounts} or None


def backs_off(seen: Container) -> bool:
    """It has ended early, and waits for its next attempt."""
    return isinstance(seen.state, Waiting) and seen.state.reason == BACK_OFF


def _not_begun(pod: Pod, container: views.Container) -> Waiting:
    trouble = pod.troubles.get(container.name)
    if trouble is not None:
        return Waiting(trouble.reason, trouble.message)
    turns = {one.name for one in _in_turn(pod)}
    return Waiting("ContainerCreating" if container.name in turns else "PodInitializing")


def _waiting(pod: Pod, container: views.Container, last: Attempt) -> Waiting:
    trouble = pod.troubles.get(container.name)
    if trouble is not None:
        return Waiting(trouble.reason, trouble.message)
    wait = f"back-off {_wait_s(last):.0f}s restarting failed container={container.name} pod={pod.name}"
    return Waiting(BACK_OFF, wait)


def _terminated(pod: Pod, attempt: Attempt) -> Terminated:
    finished = attempt.finished_at if attempt.finished_at is not None else attempt.started_at
    code = attempt.exit_code if attempt.exit_code is not None else 0
    message = pod.messages.get((attempt.name, attempt.number), "")
    times = _stamp(attempt.started_at), _stamp(finished)
    return Terminated(code, *times, attempt.reason, message, attempt.id)


def _stamp(moment: float) -> str:
    return age.timestamp(datetime.fromtimestamp(moment, UTC))
