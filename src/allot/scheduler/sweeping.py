"""What a talk leaves behind: a PodScheduling whose pod has its node, or has ended, goes (P5).

A binding removes it itself, most often together with the binding. One that died in between, or another
scheduler that did, leaves it, and its owner would keep it for as long as the pod lives.
"""

from collections.abc import Collection

from allot.api import errors
from allot.base import Clock
from allot.client import Client
from allot.informers import Key, Reconciler, Telemetry

from .negotiation_writes import TalkWriter
from .pod import PodInfo
from .snapshot import Snapshot
from .talk import Talk

AFTER_S = 5.0
"""The news that it is gone may be on its way."""


class Sweeping:
    def __init__(
        self, client: Client, snapshot: Snapshot, names: Collection[str], clock: Clock, telemetry: Telemetry
    ) -> None:
        """Of pods of the schedulers of these `names`."""
        self._pods = client.resource("", "v1", "pods")
        self._talks = TalkWriter(client)
        self._snapshot = snapshot
        self._names = frozenset(names)
        self._work: Reconciler[Key] = Reconciler(
            "scheduler_podschedulings", self._sweep, clock, telemetry, workers=2
        )

    def add(self, key: Key) -> None:
        self._work.add_after(key, AFTER_S)

    async def run(self) -> None:
        await self._work.run()

    async def _sweep(self, key: Key) -> None:
        talk = self._snapshot.talk_at(key)
        pod = await self._pod_of(talk) if talk is not None else None
        if talk is None or pod is None or pod.scheduler not in self._names:
            return  # where the pod is gone, its owner's end takes it along
        if pod.spec.node_name or pod.view.is_finished:
            await self._talks.end(talk)

    async def _pod_of(self, talk: Talk) -> PodInfo | None:
        """Those that have ended are not in the snapshot: the server knows."""
        known = self._snapshot.pod(talk.pod)
        if known is not None:
            return known
        try:
            found = await self._pods.get(talk.key.name, talk.key.namespace)
        except errors.NotFound:
            return None
        return PodInfo.of(found) if found.uid == talk.pod else None
