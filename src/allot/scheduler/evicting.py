"""Evict pods to make room for another: told, marked, deleted."""

import logging
from collections.abc import Sequence
from typing import Any

from allot.api import age, errors
from allot.base import Clock
from allot.client import Client, Patch
from allot.informers import NORMAL, Events

from .pod import PodInfo

log = logging.getLogger(__name__)


class Evictor:
    def __init__(self, client: Client, clock: Clock, events: Events) -> None:
        self._pods = client.resource("", "v1", "pods")
        self._clock = clock
        self._events = events

    async def evict(self, pod: PodInfo, node: str, victims: Sequence[PodInfo]) -> None:
        """The pod is nominated first, so that whoever looks knows whose room it will be."""
        nominated = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
        await self._patch_status(pod, nominated)
        for victim in victims:
            try:
                await self._patch_status(victim, self._mark(pod, victim))
                await self._pods.delete(victim.key.name, victim.key.namespace, uid=victim.uid)
                self._events.record(victim.object, NORMAL, "Preempted", f"Preempted by {_said(pod, victim)}")
            except (errors.NotFound, errors.Conflict, errors.Invalid):
                pass  # gone already, or another pod by now

    async def withdraw(self, pod: PodInfo, node: str) -> None:
        """No room is made for the pod on this node any more; on another one perhaps. If that cannot be said
        now, it is after the next attempt."""
        nominated = "/status/nominatedNodeName"
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": pod.uid},
            {"op": "test", "path": nominated, "value": node},
            {"op": "remove", "path": nominated},
        ]
        try:
            await self._pods.patch(
                pod.key.name, patch, pod.key.namespace, type=Patch.JSON, subresource="status"
            )
        except errors.ApiError as refused:
            log.debug("pod %s is not nominated to %s, or still is: %s", pod.key, node, refused)

    def _mark(self, pod: PodInfo, victim: PodInfo) -> dict[str, Any]:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{pod.scheduler}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": age.timestamp(self._clock.now()),
        }
        return {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}

    async def _patch_status(self, pod: PodInfo, patch: dict[str, Any]) -> None:
        await self._pods.patch(
            pod.key.name, patch, pod.key.namespace, type=Patch.STRATEGIC, subresource="status"
        )


def _said(pod: PodInfo, victim: PodInfo) -> str:
    """Another namespace's pods are not named to the victim's owner."""
    if pod.key.namespace == victim.key.namespace:
        return f"pod {pod.key.name}"
    return f"a pod of priority {pod.priority}"
