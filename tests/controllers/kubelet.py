"""A kubelet of few words: pods become ready, and pods that are deleted go."""

import asyncio
import contextlib
from typing import Any

from allot.api import errors
from allot.client import Client

NS = "default"


def ready_status(since: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    return {"phase": "Running", "conditions": [condition]}


async def make_ready(client: Client, name: str, namespace: str = NS) -> None:
    pods = client.resource("", "v1", "pods")
    await pods.patch(name, {"status": ready_status()}, namespace, subresource="status")


class Kubelet:
    """Makes every pod of a namespace ready that `accepts` likes, until it is stopped."""

    def __init__(self, client: Client, accepts=lambda pod: True) -> None:
        self._client = client
        self._accepts = accepts
        self._task: asyncio.Task[None] | None = None
        self.most_pods = 0
        self.least_ready = 10**9

    async def __aenter__(self) -> "Kubelet":
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *unused: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def forget(self) -> None:
        self.most_pods, self.least_ready = 0, 10**9

    async def _run(self) -> None:
        pods = self._client.resource("", "v1", "pods")
        while True:
            found = (await pods.list(NS)).objects
            phase = {pod.uid: (pod.fields.get("status") or {}).get("phase") for pod in found}
            ready = [pod for pod in found if phase[pod.uid] == "Running"]
            self.most_pods = max(self.most_pods, len(found))
            self.least_ready = min(self.least_ready, len(ready))
            for pod in found:
                if phase[pod.uid] == "Pending" and self._accepts(pod):
                    with contextlib.suppress(errors.NotFound, errors.Conflict):
                        await make_ready(self._client, pod.name)
            await asyncio.sleep(0.01)
