"""Writing a pod's PodScheduling: made, changed, ended. Each write until its outcome is known.

What it promises
    TALK3  Only the spec is written, and only where it differs: what drivers said stays.
    TALK4  An object of another pod of the same name goes first, by its uid, and is never changed (P5).
    TALK5  Whoever else removes it meanwhile is welcome to: a talk that is gone has ended.
    TALK8  A node is selected for several claims only in an object that has an answer for each (P6), also
           where the first try met another object than was heard of.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from allot.api import Object, classic, errors, resource
from allot.client import Client, Write

from .claiming import CONFLICTS_MAX, RETRY_FIRST_S, RETRY_LONGEST_S, UNKNOWN, Outdated, insist
from .negotiating import Want, unanswered
from .pod import PodInfo
from .talk import Talk

log = logging.getLogger(__name__)

limits = classic.limits


class TalkWriter:
    def __init__(self, client: Client) -> None:
        self._talks = client.resource(resource.limits.GROUP, limits.VERSION, "podschedulings")

    async def ask(
        self,
        pod: PodInfo,
        known: Talk | None,
        nodes: tuple[str, ...],
        selected: str = "",
        wants: Sequence[Want] = (),
    ) -> Talk:
        """See to it that the object says so. `known` is what was last heard of it, and may be old. `wants`:
        the claims that a node is selected for. Raises Refusal, or an ApiError."""
        spec = _spec(nodes, selected)
        wait_s, conflicts, now = RETRY_FIRST_S, 0, known
        while True:
            own = now if now is not None and now.pod == pod.uid else None
            if len(wants) > 1 and unanswered(own, wants):
                raise Outdated("what drivers have answered is gone: they are asked again")
            try:
                return Talk.of(await self._attempt(pod, now, spec))
            except (errors.Conflict, errors.NotFound):  # AlreadyExists is a conflict
                conflicts += 1
                if conflicts > CONFLICTS_MAX:
                    raise
            except UNKNOWN:
                await asyncio.sleep(wait_s)
                wait_s = min(wait_s * 2, RETRY_LONGEST_S)
            now = await self.read(pod)

    async def read(self, pod: PodInfo) -> Talk | None:
        """What is there and cannot be read as one is nobody's, and goes: its pod would wait for ever (P5)."""
        name, namespace = pod.key.name, pod.key.namespace
        try:
            found = await insist(lambda: self._talks.get(name, namespace))
            try:
                return Talk.of(found)
            except msgspec.ValidationError as wrong:
                log.warning("podscheduling %s cannot be read, and is made anew: %s", pod.key, wrong)
                await insist(lambda: self._talks.delete(name, namespace, uid=found.uid))
        except (errors.NotFound, errors.Conflict):
            pass
        return None

    async def end(self, talk: Talk) -> None:
        """It is not needed any more, or was another pod's. One that was made since stays (TALK5)."""
        try:
            await insist(lambda: self._talks.delete(talk.key.name, talk.key.namespace, uid=talk.uid))
        except (errors.NotFound, errors.Conflict):
            return

    def ending(self, talk: Talk) -> Write:
        """The same as a value, for a placement that is written as a whole."""
        return self._talks.writes.delete(talk.key.name, talk.key.namespace, uid=talk.uid)

    async def _attempt(self, pod: PodInfo, now: Talk | None, spec: dict[str, Any]) -> Object:
        if now is not None and now.pod != pod.uid:
            await self.end(now)
            now = None
        if now is None:
            return await self._talks.create(_body(pod, spec), pod.key.namespace)
        if _spec(now.nodes, now.selected) == spec:
            return now.object
        return await self._talks.update({**now.object.fields, "spec": spec})


def _spec(nodes: tuple[str, ...], selected: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"selectedNode": selected} if selected else {}
    return {**spec, "potentialNodes": list(nodes)} if nodes else spec


def _body(pod: PodInfo, spec: dict[str, Any]) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.key.name, "uid": pod.uid, "controller": True}
    metadata = {"name": pod.key.name, "namespace": pod.key.namespace, "ownerReferences": [owner]}
    return {
        "apiVersion": limits.API_VERSION,
        "kind": "PodScheduling",
        "metadata": metadata,
        "spec": spec,
    }
