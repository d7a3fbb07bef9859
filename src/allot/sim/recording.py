"""Everything that happened, in the order in which it happened, as the API told it.

A recorder watches some resources through the API with a client that has no faults.
Afterwards its events, sorted by revision, are the history of the world: a checker
reads them one by one and sees every state that any watcher could have seen.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from allot.api import Object
from allot.client import Client, EventType, Resource


class Seen(NamedTuple):
    revision: int
    resource: str
    type: str  # ADDED, MODIFIED or DELETED
    object: Object

    @property
    def fields(self) -> Mapping[str, Any]:
        return self.object.fields


@dataclass(frozen=True, slots=True)
class Followed:
    group: str
    version: str
    plural: str
    namespaced: bool = True


FOLLOWED = (
    Followed("resource.k8s.io", "v1", "resourceclaims"),
    Followed("", "v1", "pods"),
)


class Recorder:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._seen: list[Seen] = []
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        for followed in FOLLOWED:
            resource = self._client.resource(
                followed.group, followed.version, followed.plural, namespaced=followed.namespaced
            )
            name = f"record {followed.plural}"
            self._tasks.append(asyncio.create_task(self._follow(followed.plural, resource), name=name))

    async def stop(self) -> Sequence[Seen]:
        """The history so far, in order."""
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        return sorted(self._seen, key=lambda seen: seen.revision)

    async def _follow(self, plural: str, resource: Resource) -> None:
        revision = "1"
        while True:  # a watch ends when its time is up
            async for event in resource.watch(resource_version=revision):
                revision = event.object.resource_version
                if event.type is not EventType.BOOKMARK:
                    self._seen.append(Seen(int(revision), plural, event.type.value, event.object))
