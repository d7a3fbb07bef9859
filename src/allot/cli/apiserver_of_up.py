"""The API server of `allot up`, in a process of its own: begun by it, told by it what to do, gone with it."""

import asyncio
import signal
import socket
import sys
from collections import deque

from allot.api import errors
from allot.apiserver import Serving, serve
from allot.base import logs
from allot.cluster import control
from allot.store import StoreError

from .apiserver import run_loop
from .wording import plain

_SHOWN_WITHIN_S = 5.0


def main() -> int:
    cluster = socket.socket(fileno=sys.stdin.fileno())
    control.end_with(cluster)
    return run_loop(_serve(cluster))


async def _serve(cluster: socket.socket) -> int:
    channel = await control.Channel.open(cluster)
    begin = await channel.heard_by_server()
    if not isinstance(begin, control.Begin):
        return 1
    logs.begin(begin.log_level, begin.log_format)
    beside = _Beside(channel)
    working = asyncio.create_task(_work(begin, channel, beside))
    listening = asyncio.create_task(_listen(channel, working, beside))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, channel.say, control.Asked())
    try:
        return await working
    except asyncio.CancelledError:
        return 0
    finally:
        listening.cancel()


async def _work(begin: control.Begin, channel: control.Channel, beside: "_Beside") -> int:
    """Until cancelled, or until there is nothing to serve."""
    try:
        serving = await serve(begin.options)
    except (OSError, StoreError, ValueError, errors.ApiError) as wrong:
        channel.say(control.Failed(plain(wrong)))
        return 1
    try:
        serving.api.metrics_beside = beside.metrics
        channel.say(_where(serving))
        channel.say(control.Lost(await serving.lost()))
        return 1
    finally:
        await serving.close()


def _where(serving: Serving) -> control.Answers:
    authority = serving.authority.ca.certificate.decode()
    return control.Answers(serving.url, str(serving.kubeconfig), str(serving.socket), authority)


async def _listen(channel: control.Channel, working: "asyncio.Task[int]", beside: "_Beside") -> None:
    while (words := await channel.heard_by_server()) is not None:
        match words:
            case control.Stop():
                working.cancel()
            case control.Shown(text):
                beside.shown(text)
            case control.Begin():
                pass  # it has begun


class _Beside:
    """What the parts of the cluster count, over there."""

    def __init__(self, channel: control.Channel) -> None:
        self._channel = channel
        self._asked: deque[asyncio.Future[str]] = deque()

    async def metrics(self) -> str:
        """Nothing of them where they are too busy to say."""
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        self._channel.say(control.Show())
        try:
            async with asyncio.timeout(_SHOWN_WITHIN_S):
                return await answer
        except TimeoutError:
            return ""

    def shown(self, text: str) -> None:
        answer = self._asked.popleft()
        if not answer.done():
            answer.set_result(text)


if __name__ == "__main__":
    sys.exit(main())
