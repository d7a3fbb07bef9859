"""The end of a pod that somebody else than its owner decides on: told first, then deleted."""

from typing import Any

from allot.api import Object, age, errors
from allot.base import Clock
from allot.client import Resource

from .pods import view_of


async def disrupt(
    pods: Resource, pod: Object, clock: Clock, reason: str, message: str, *, at_once: bool = False
) -> bool:
    """Say in the pod's conditions why it goes, then delete it. `at_once`: no node will end it.
    False if it was gone already."""
    try:
        if not view_of(pod).is_finished:
            why = _disrupted_status(pod, age.timestamp(clock.now()), reason, message, at_once)
            await pods.patch(pod.name, why, pod.namespace, subresource="status")
        await pods.delete(pod.name, pod.namespace, uid=pod.uid, grace_period_s=0 if at_once else None)
    except errors.NotFound:
        return False
    return True


def _disrupted_status(pod: Object, now: str, reason: str, message: str, is_over: bool) -> dict[str, Any]:
    before = (pod.fields.get("status") or {}).get("conditions") or []
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": now,
    }
    conditions = [*(one for one in before if one.get("type") != "DisruptionTarget"), target]
    status: dict[str, Any] = {"conditions": conditions}
    if is_over:
        status["phase"] = "Failed"
    return {"metadata": {"uid": pod.uid, "resourceVersion": pod.resource_version}, "status": status}
