"""What a cluster's process and that of its API server say to each other, over a pair of sockets.

    cluster   Begin     serve with these options
              Shown     the metrics of the cluster's parts, since they were asked for
              Stop      let everything go, and end
    server    Answers   it does, and this is where
              Failed    it could not start, and this is why
              Lost      what it knows is worth nothing any more, and this is why
              Asked     a signal says that it is time to end: it is the cluster that ends, and in order
              Show      what do the cluster's metrics say?

One JSON object a line. The end of a line of talk is the end of a process, however it ended: CONTROL1.

    CONTROL1  A server's process does not outlive that of its cluster, not even when the cluster is killed.
    CONTROL2  It ends by itself only when its store is lost; a signal to either process is one to both.
"""

import asyncio
import os
import pickle
import select
import socket
import threading

import msgspec

from allot.apiserver import ServingOptions

_LINE_BYTES_MAX = 64 * 1024 * 1024


class Begin(msgspec.Struct, frozen=True, tag=True):
    pickled: bytes
    log_level: int
    log_format: str

    @classmethod
    def of(cls, options: ServingOptions, log_level: int, log_format: str) -> "Begin":
        return cls(pickle.dumps(options), log_level, log_format)

    @property
    def options(self) -> ServingOptions:
        """Unpickled: it comes from the process that started us, and nobody else has the other socket."""
        found: ServingOptions = pickle.loads(self.pickled)
        return found


class Shown(msgspec.Struct, frozen=True, tag=True):
    text: str


class Stop(msgspec.Struct, frozen=True, tag=True):
    pass


class Answers(msgspec.Struct, frozen=True, tag=True):
    url: str
    kubeconfig: str
    socket: str
    authority: str  # the certificate that vouches for it, as PEM


class Failed(msgspec.Struct, frozen=True, tag=True):
    why: str


class Lost(msgspec.Struct, frozen=True, tag=True):
    why: str


class Asked(msgspec.Struct, frozen=True, tag=True):
    pass


class Show(msgspec.Struct, frozen=True, tag=True):
    pass


ToServer = Begin | Shown | Stop
ToCluster = Answers | Failed | Lost | Asked | Show

_to_server = msgspec.json.Decoder(ToServer)
_to_cluster = msgspec.json.Decoder(ToCluster)
_line = msgspec.json.Encoder()


class Channel:
    """One end of the pair."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, end: socket.socket) -> "Channel":
        return cls(*await asyncio.open_unix_connection(sock=end, limit=_LINE_BYTES_MAX))

    def say(self, words: ToServer | ToCluster) -> None:
        """Nothing happens where the other process has ended: whoever listens hears of that."""
        if not self._writer.is_closing():
            self._writer.write(_line.encode(words) + b"\n")

    async def heard_by_server(self) -> ToServer | None:
        """None: the other process has ended."""
        line = await self._read()
        return _to_server.decode(line) if line else None

    async def heard_by_cluster(self) -> ToCluster | None:
        line = await self._read()
        return _to_cluster.decode(line) if line else None

    async def _read(self) -> bytes:
        try:
            line = await self._reader.readline()
        except ConnectionError:
            return b""
        return line if line.endswith(b"\n") else b""

    def close(self) -> None:
        self._writer.close()


def end_with(other: socket.socket) -> None:
    """This process ends at once when the one with the other socket has ended (CONTROL1): as if both had been
    killed together. In a thread, for the event loop may be busy, and the data directory is wanted again."""

    ours = os.dup(other.fileno())  # never closed: closing the last of ours would look like an end of theirs

    def watch() -> None:
        hangup = select.poll()
        hangup.register(ours, select.POLLRDHUP | select.POLLHUP)
        hangup.poll()
        os._exit(1)

    threading.Thread(target=watch, name="the cluster's process", daemon=True).start()
