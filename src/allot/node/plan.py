"""What happens to a pod next: one deed, from how the pod stands and the time. Pure.

`PodState` is what a node knows of a pod beside the pod itself. All of it can be read again from
the list, the cache and the machine; `stage_of` says where that puts the pod in the table of
`stages`, and `plan` what follows. The loop does the deed and reads again.
"""

from dataclasses import dataclass
from typing import assert_never

from allot.api import core

from .admission import Refusal
from .claims import ClaimRef
from .machine import NOTHING, Devices, Observed
from .stages import (
    Deed,
    Delete,
    Explain,
    List,
    Prepare,
    Refuse,
    Remove,
    Report,
    Rest,
    Run,
    Stage,
    Stop,
    Unlist,
    Unprepare,
    Wait,
)

CLAIMS_NOT_READY = "ClaimsNotReady"
PATIENCE_S = 3.0
"""How long a pod waits for its claims before it says so."""
GRACE_S = 30.0
"""What a pod has to end in, where nobody says."""


@dataclass(slots=True)
class PodState:
    seen_s: float
    refusal: Refusal | None = None
    is_gone: bool = False  # from the API
    # its claims
    needs: tuple[ClaimRef, ...] = ()
    lacking: str = ""  # what they still lack to be the pod's (N1), as far as the cache shows
    is_barred: bool = False  # it lacks what nobody will give it any more
    retry_s: float | None = None  # when that is asked again by itself
    explained: str = ""  # what was said about it
    held: tuple[ClaimRef, ...] = ()  # they are on the node's list, or are about to be
    is_listed: bool = False  # what it needs is held, and on the accepted list
    is_unlisted: bool = True  # nothing is held, or on the accepted list for this pod's sake
    # the machine
    is_told: bool = False  # it was asked to prepare, and what drivers hold of that is not known
    trouble: str = ""  # why it could not, the last time
    devices: Devices | None = None
    observed: Observed = NOTHING
    is_fresh: bool = False  # it was asked since anything was heard
    reported: Observed = NOTHING  # what the API was told of it
    is_doubted: bool = False  # somebody else wrote since that it is not ready, or is
    is_there: bool = False  # it was asked for something, and not yet to remove it
    is_kept: bool = False  # what has ended stays there until the pod goes: somebody may read its output


def plan(pod: core.Pod, state: PodState, now_s: float, patience_s: float = PATIENCE_S) -> Deed:
    """The next deed, always one of the row's (`stages.TABLE`)."""
    stage = stage_of(pod, state)
    match stage:
        case Stage.SEEN:
            return Refuse()
        case Stage.ADMITTED:
            return _admitted(state, now_s, patience_s)
        case Stage.LISTED:
            return _listed(state, now_s)
        case Stage.PREPARED:
            return Unprepare() if state.lacking else _look(state)  # N1: nothing has started yet
        case Stage.RUNNING:
            return _running(pod, state)
        case Stage.ENDED:
            return Unprepare()
        case Stage.UNPREPARED:
            return Unlist()
        case Stage.UNLISTED:
            return Report()
        case Stage.REPORTED:
            return _reported(pod, state)
        case _:
            assert_never(stage)


def stage_of(pod: core.Pod, state: PodState) -> Stage:
    """The last row whose evidence is there."""
    has_containers = bool(state.observed.containers)
    if has_containers and state.observed.has_ended:
        has_ended = True  # by itself, or because it was stopped
    else:
        has_ended = _must_go(pod, state) and not (has_containers and state.observed.runs)
    if has_ended:
        if state.devices is not None or state.is_told:
            return Stage.ENDED
        if not state.is_unlisted:
            return Stage.UNPREPARED
        return Stage.REPORTED if state.is_gone or pod.is_finished else Stage.UNLISTED
    if has_containers:
        return Stage.RUNNING
    if state.refusal is not None:
        return Stage.SEEN
    if state.devices is not None or (state.is_told and state.lacking):
        return Stage.PREPARED
    if state.lacking or (state.needs and not state.is_listed):
        return Stage.ADMITTED
    return Stage.LISTED if state.needs else Stage.PREPARED


def _must_go(pod: core.Pod, state: PodState) -> bool:
    return state.is_gone or pod.is_finished or bool(pod.metadata.deletion_timestamp)


def _admitted(state: PodState, now_s: float, patience_s: float) -> Deed:
    if not state.lacking:
        return List()
    if not state.is_unlisted:
        return Unlist()  # what was about to be prepared is not, any more
    if state.is_barred:
        return Refuse()
    complains_s = state.seen_s + patience_s
    if now_s >= complains_s and state.explained != state.lacking:
        return Explain(CLAIMS_NOT_READY, state.lacking)
    moments = [] if state.retry_s is None else [state.retry_s]
    if now_s < complains_s:
        moments.append(complains_s)
    return Wait(min(moments)) if moments else Rest()


def _listed(state: PodState, now_s: float) -> Deed:
    """What was told is not taken back for a failure: drivers are told again, which has the effect of once."""
    if state.retry_s is None or now_s >= state.retry_s:
        return Prepare()
    if state.trouble != state.explained:
        return Explain(CLAIMS_NOT_READY, state.trouble)
    return Wait(state.retry_s)


def _running(pod: core.Pod, state: PodState) -> Deed:
    if _must_go(pod, state):
        return _look(state) if state.is_fresh else Stop(_grace_s(pod, state))
    if state.is_fresh and (state.observed.seen != state.reported or state.is_doubted):
        return Report()
    return _look(state)


def _look(state: PodState) -> Deed:
    """At the machine: once for whatever was heard, and again when it is time."""
    if not state.is_fresh:
        return Run()
    return Rest() if state.observed.again_s is None else Wait(state.observed.again_s)


def _grace_s(pod: core.Pod, state: PodState) -> float:
    if state.is_gone or pod.is_finished:
        return 0.0
    grace_s = pod.metadata.deletion_grace_period_seconds
    return GRACE_S if grace_s is None else float(grace_s)


def _reported(pod: core.Pod, state: PodState) -> Deed:
    goes = state.is_gone or bool(pod.metadata.deletion_timestamp)
    if state.is_there and (goes or not state.is_kept):
        return Remove()
    # At 0 it is only held by finalizers.
    is_due = pod.metadata.deletion_timestamp and pod.metadata.deletion_grace_period_seconds != 0
    return Delete() if is_due and not state.is_gone else Rest()
