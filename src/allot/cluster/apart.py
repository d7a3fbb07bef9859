"""The API server of a cluster in a process of its own, reached over its socket: two cores, two event loops.

A client of the cluster no longer waits while a controller or the scheduler thinks, and they think while
the server writes.
"""

import asyncio
import logging
from pathlib import Path

from allot.api import Transport, User
from allot.apiserver import ServingOptions
from allot.base import Metrics, logs
from allot.client import Socket

from .control import Answers, Asked, Begin, Channel, Failed, Lost, Show, Shown, Stop
from .spawning import ServerProcess

_END_S = 30.0
"""For a server to put everything away. It takes a second at most, unless its disk is slow."""


class CannotServe(Exception):
    """The server's process could not start; the message says why."""


class ServerApart:
    """Make one with `start`. One that is closed has ended."""

    def __init__(self, process: ServerProcess, channel: Channel) -> None:
        self._process = process
        self._channel = channel
        loop = asyncio.get_running_loop()
        self._answers: asyncio.Future[Answers] = loop.create_future()
        self._over: asyncio.Future[str] = loop.create_future()
        self._listening = loop.create_task(self._listen(), name="the API server's process")
        self.metrics = Metrics()

    @classmethod
    async def start(cls, process: ServerProcess, options: ServingOptions) -> "ServerApart":
        """Return once it answers. Raises CannotServe."""
        server = cls(process, await Channel.open(process.end))
        try:
            server._channel.say(Begin.of(options, *logs.begun()))
            await server._until_it_answers()
        except BaseException:
            await server.close()
            raise
        return server

    async def _until_it_answers(self) -> None:
        await asyncio.wait((self._answers, self._over), return_when=asyncio.FIRST_COMPLETED)
        if not self._answers.done():
            raise CannotServe(self._over.result())
        where = self._answers.result()
        self.url, self.kubeconfig, self.authority = where.url, Path(where.kubeconfig), where.authority
        # A server whose store is away says so in the same log; one that is gone ends the cluster.
        self._socket = Socket(Path(where.socket), outage_level=logging.DEBUG)

    def transport(self, user: User) -> Transport:
        return self._socket.transport(user)

    def passing(self, user: User) -> Transport:
        return self._socket.passing(user)

    async def over(self) -> str:
        return await asyncio.shield(self._over)

    async def close(self) -> None:
        """Let it put everything away, and wait for that."""
        self._channel.say(Stop())
        await asyncio.to_thread(self._process.ended, _END_S)
        await self._listening
        self._channel.close()

    async def _listen(self) -> None:
        """Until the other process has ended, which is the end of what it says."""
        why: str | None = None
        while (words := await self._channel.heard_by_cluster()) is not None:
            match words:
                case Answers():
                    self._answers.set_result(words)
                case Failed() | Lost():
                    why = words.why
                case Asked():
                    self._is_over("")
                case Show():
                    self._channel.say(Shown(self.metrics.text()))
        how = await asyncio.to_thread(self._process.ended, _END_S)
        self._is_over(f"the API server's process {self._process.pid} {how}" if why is None else why)

    def _is_over(self, why: str) -> None:
        if not self._over.done():
            self._over.set_result(why)
