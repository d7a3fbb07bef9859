"""Evict pods to make room for another: told, marked, deleted.

Where the server has transactions that is one request: no victim goes for a pod that the server does not
know to be waiting for its room, and none is left when the others have gone.
"""

import logging
from collections.abc import Sequence
from typing import Any

from allot.api import age, errors
from allot.base import Clock
from allot.client import Client, Patch, Write
from allot.informers import NORMAL, Events

from .claiming import UNKNOWN
from .pod import PodInfo

log = logging.getLogger(__name__)

TOGETHER_MAX = 24
"""Victims of one transaction: two writes each."""


class Evictor:
    def __init__(self, client: Client, clock: Clock, events: Events) -> None:
        self._client = client
        self._pods = client.resource("", "v1", "pods")
        self._clock = clock
        self._events = events

    async def evict(self, pod: PodInfo, node: str, victims: Sequence[PodInfo]) -> None:
        """The pod is nominated first, so that whoever looks knows whose room it will be."""
        if await self._evict_at_once(pod, node, victims):
            return
        await self._patch_status(pod, _nominated(pod, node))
        for victim in victims:
            try:
                await self._patch_status(victim, self._mark(pod, victim))
                await self._pods.delete(victim.key.name, victim.key.namespace, uid=victim.uid)
            except (errors.NotFound, errors.Conflict, errors.Invalid):
                continue  # gone already, or another pod by now
            self._say(pod, victim)

    async def _evict_at_once(self, pod: PodInfo, node: str, victims: Sequence[PodInfo]) -> bool:
        """False, and nothing written, where it has to be done one after the other: no transactions, more
        victims than one of them takes, or one of the pods is not what it was."""
        if not self._client.has_transactions or len(victims) > TOGETHER_MAX:
            return False
        writes = [self._status_write(pod, _nominated(pod, node))]
        for victim in victims:
            writes.append(self._status_write(victim, self._mark(pod, victim)))
            writes.append(self._pods.writes.delete(victim.key.name, victim.key.namespace, uid=victim.uid))
        try:
            await self._client.together(writes)
        except UNKNOWN:
            raise
        except errors.ApiError as refused:
            log.debug("room for %s is made one write after the other: %s", pod.key, refused)
            return False
        for victim in victims:
            self._say(pod, victim)
        return True

    def _say(self, pod: PodInfo, victim: PodInfo) -> None:
        self._events.record(victim.object, NORMAL, "Preempted", f"Preempted by {_said(pod, victim)}")

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

    def _status_write(self, pod: PodInfo, patch: dict[str, Any]) -> Write:
        return self._pods.writes.patch(
            pod.key.name, patch, pod.key.namespace, type=Patch.STRATEGIC, subresource="status"
        )

    async def _patch_status(self, pod: PodInfo, patch: dict[str, Any]) -> None:
        await self._pods.patch(
            pod.key.name, patch, pod.key.namespace, type=Patch.STRATEGIC, subresource="status"
        )


def _nominated(pod: PodInfo, node: str) -> dict[str, Any]:
    return {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}


def _said(pod: PodInfo, victim: PodInfo) -> str:
    """Another namespace's pods are not named to the victim's owner."""
    if pod.key.namespace == victim.key.namespace:
        return f"pod {pod.key.name}"
    return f"a pod of priority {pod.priority}"
