"""Hearing of pods and claims at the price of a file: what the server says is kept as it
was said, and read again when everything is over.

The measured time pays for one watch of each, and for finding out which pods are bound.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from allot.api import Object, errors
from allot.client import Client
from allot.sim import recording

_WATCH_S = 3600
_BUFFER_BYTES = 1 << 20  # so that the disk, which others are waiting for, is asked seldom
_ON_A_NODE = b'"nodeName":"'  # as the server writes it; owners of the field have `"f:nodeName":{}`


class _Metadata(msgspec.Struct):
    name: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = _Spec()


class _PodEvent(msgspec.Struct):
    type: str
    object: _Pod


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_pod_event = msgspec.json.Decoder(_PodEvent)
_event = msgspec.json.Decoder(_Event)

Line = Callable[[bytes], None]


class Follower:
    """Watches one resource into a file. `lost` says why, should the server end it."""

    def __init__(self, client: Client, path: str, plural: str, file: Path, tell: Line | None = None) -> None:
        self._client = client
        self._path = path
        self.plural = plural
        self._file = file
        self._tell = tell
        self._task: asyncio.Task[None] | None = None
        self.lost = ""

    async def start(self) -> None:
        """Returns when it listens to everything that happens from now on."""
        response = await self._client.send("GET", self._path, {"limit": "1"})
        revision = Object(response.body).resource_version
        query = {"watch": "true", "resourceVersion": revision, "timeoutSeconds": str(_WATCH_S)}
        watch = await self._client.send("GET", self._path, query)
        assert watch.stream is not None
        self._task = asyncio.create_task(self._follow(watch.stream), name=f"follow {self.plural}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _follow(self, stream: AsyncIterator[bytes]) -> None:
        rest = b""
        with self._file.open("wb", buffering=_BUFFER_BYTES) as file:
            try:
                async for chunk in stream:
                    rest = self._take(rest + chunk if rest else chunk, file)
                self.lost = f"the watch of {self.plural} ended"
            except errors.ApiError as error:
                self.lost = f"the watch of {self.plural} ended: {error}"

    def _take(self, chunk: bytes, file: BinaryIO) -> bytes:
        """Keep the whole lines of a chunk; returns what follows them."""
        end = chunk.rfind(b"\n") + 1
        whole = chunk[:end] if end < len(chunk) else chunk
        file.write(whole)
        if self._tell is not None:
            for line in whole.splitlines():
                self._tell(line)
        return chunk[end:]

    def seen(self) -> Iterator[recording.Seen]:
        """Everything that was said, in order."""
        with self._file.open("rb") as file:
            for line in file:
                event = _event.decode(line)
                if event.type in ("ADDED", "MODIFIED", "DELETED"):
                    object = Object(bytes(event.object))
                    yield recording.Seen(int(object.resource_version), self.plural, event.type, object)


def bound_pod(line: bytes) -> str:
    """The name of the pod that the event shows on a node; "" for every other event."""
    if _ON_A_NODE not in line:
        return ""  # two of three events, and what measures should not weigh
    event = _pod_event.decode(line)
    if event.type in ("ADDED", "MODIFIED") and event.object.spec.node_name:
        return event.object.metadata.name
    return ""
