"""What happens to a pod next: one deed, from how the pod stands and the time. Pure.

`Standing` is what a node knows of a pod beside the pod itself. All of it can be read again from
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
class Standing:
    seen_s: float
    refusal: Refusal | None = None
    is_gone: bool = False  # from the API
    # its claims
    needs: tuple[ClaimRef, ...] = ()
    lacking: str = ""  # what they still lack to be the pod's (N1), as far as the cache shows
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


def plan(pod: core.Pod, standing: Standing, now_s: float, patience_s: float = PATIENCE_S) -> Deed:
    """The next deed, always one of the row's (`stages.TABLE`)."""
    stage = stage_of(pod, standing)
    match stage:
        case Stage.SEEN:
            return Refuse()
        case Stage.ADMITTED:
            return _admitted(standing, now_s, patience_s)
        case Stage.LISTED:
            return _listed(standing, now_s)
        case Stage.PREPARED:
            return Unprepare() if standing.lacking else _look(standing)  # N1: nothing has started yet
        case Stage.RUNNING:
            return _running(pod, standing)
        case Stage.ENDED:
            return Unprepare()
        case Stage.UNPREPARED:
            return Unlist()
        case Stage.UNLISTED:
            return Report()
        case Stage.REPORTED:
            return _reported(pod, standing)
        case _:
            assert_never(stage)


def stage_of(pod: core.Pod, standing: Standing) -> Stage:
    """The last row whose evidence is there."""
    has_containers = bool(standing.observed.containers)
    if has_containers and standing.observed.has_ended:
        has_ended = True  # by itself, or because it was stopped
    else:
        has_ended = _must_go(pod, standing) and not (has_containers and standing.observed.runs)
    if has_ended:
        if standing.devices is not None or standing.is_told:
            return Stage.ENDED
        if not standing.is_unlisted:
            return Stage.UNPREPARED
        return Stage.REPORTED if standing.is_gone or pod.is_finished else Stage.UNLISTED
    if has_containers:
        return Stage.RUNNING
    if standing.refusal is not None:
        return Stage.SEEN
    if standing.devices is not None or (standing.is_told and standing.lacking):
        return Stage.PREPARED
    if standing.lacking or (standing.needs and not standing.is_listed):
        return Stage.ADMITTED
    return Stage.LISTED if standing.needs else Stage.PREPARED


def _must_go(pod: core.Pod, standing: Standing) -> bool:
    return standing.is_gone or pod.is_finished or bool(pod.metadata.deletion_timestamp)


def _admitted(standing: Standing, now_s: float, patience_s: float) -> Deed:
    if not standing.lacking:
        return List()
    if not standing.is_unlisted:
        return Unlist()  # what was about to be prepared is not, any more
    complains_s = standing.seen_s + patience_s
    if now_s >= complains_s and standing.explained != standing.lacking:
        return Explain(CLAIMS_NOT_READY, standing.lacking)
    moments = [] if standing.retry_s is None else [standing.retry_s]
    if now_s < complains_s:
        moments.append(complains_s)
    return Wait(min(moments)) if moments else Rest()


def _listed(standing: Standing, now_s: float) -> Deed:
    """What was told is not taken back for a failure: drivers are told again, which has the effect of once."""
    if standing.retry_s is None or now_s >= standing.retry_s:
        return Prepare()
    if standing.trouble != standing.explained:
        return Explain(CLAIMS_NOT_READY, standing.trouble)
    return Wait(standing.retry_s)


def _running(pod: core.Pod, standing: Standing) -> Deed:
    if _must_go(pod, standing):
        return _look(standing) if standing.is_fresh else Stop(_grace_s(pod, standing))
    if standing.is_fresh and (standing.observed.seen != standing.reported or standing.is_doubted):
        return Report()
    return _look(standing)


def _look(standing: Standing) -> Deed:
    """At the machine: once for whatever was heard, and again when it is time."""
    if not standing.is_fresh:
        return Run()
    return Rest() if standing.observed.again_s is None else Wait(standing.observed.again_s)


def _grace_s(pod: core.Pod, standing: Standing) -> float:
    if standing.is_gone or pod.is_finished:
        return 0.0
    grace_s = pod.metadata.deletion_grace_period_seconds
    return GRACE_S if grace_s is None else float(grace_s)


def _reported(pod: core.Pod, standing: Standing) -> Deed:
    if standing.is_there:
        return Remove()
    # At 0 it is only held by finalizers.
    is_due = pod.metadata.deletion_timestamp and pod.metadata.deletion_grace_period_seconds != 0
    return Delete() if is_due and not standing.is_gone else Rest()
