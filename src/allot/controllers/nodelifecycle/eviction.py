"""When a pod must leave a node. Pure."""

from datetime import datetime

from allot.api import Object, age, core


def leaves_in_s(pod: Object, node: Object, now: datetime) -> float | None:
    """None if it may stay; 0 or less if it must leave now.

    A taint counts from the moment it was put on, so that a new leader does not begin anew.
    """
    view = pod.view(core.Pod)
    if view.is_finished or pod.metadata.deletion_timestamp is not None:
        return None
    waits = [
        _stays_s(taint, view.spec.tolerations, now)
        for taint in node.view(core.Node).spec.taints
        if taint.effect == "NoExecute"
    ]
    return min((one for one in waits if one is not None), default=None)


def _stays_s(taint: core.Taint, tolerations: tuple[core.Toleration, ...], now: datetime) -> float | None:
    """How long the pod may still stay under one taint; None means for ever."""
    fitting = [one for one in tolerations if taint.is_tolerated_by(one)]
    if not fitting:
        return 0.0
    limits = [one.toleration_seconds for one in fitting if one.toleration_seconds is not None]
    if not limits:
        return None
    since = age.moment(taint.time_added) or now
    return max(0, min(limits)) - (now - since).total_seconds()
