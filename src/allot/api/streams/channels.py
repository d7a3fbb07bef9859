"""exec and attach as messages of a WebSocket: the first byte of each is its channel.

    0  to the container's input          3  from the server: how it ended, a Status
    1  from its output                   4  to its terminal: {"Width": 80, "Height": 24}
    2  from its error output           255  to the server: the channel in the next byte has ended (v5)

`v5.channel.k8s.io` is what kubectl speaks; `v4.channel.k8s.io` is the same without 255, for other clients.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from . import websocket

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
PROTOCOLS = (V5, V4)
STDIN, STDOUT, STDERR, ERROR, RESIZE, ENDED = 0, 1, 2, 3, 4, 255
RESIZE_BYTES_MAX = 1024


class Input(NamedTuple):
    data: bytes


class InputEnded(NamedTuple):
    pass


class Resized(NamedTuple):
    columns: int
    rows: int


Said = Input | InputEnded | Resized


class _Size(msgspec.Struct, rename="pascal"):
    width: int = 0
    height: int = 0


class Reading:
    """What a client says, of the pieces in which its messages arrive."""

    def __init__(self) -> None:
        self._channel: int | None = None  # of the message that is arriving
        self._held = bytearray()  # of a message that makes sense only as a whole

    def take(self, piece: websocket.Piece) -> Iterator[Said]:
        """Raises Broken."""
        data = piece.data
        if piece.begins:
            self._channel = None
            self._held.clear()
        if self._channel is None and data:
            self._channel, data = data[0], data[1:]
        if self._channel is None:
            return  # nothing of it has come yet, or it is empty
        if self._channel == STDIN:
            if data:
                yield Input(data)
        elif self._channel in (RESIZE, ENDED):
            self._held += data
            if len(self._held) > RESIZE_BYTES_MAX:
                raise websocket.Broken(f"a message on channel {self._channel} is too long")
            if piece.ends:
                yield from self._whole()
        else:
            raise websocket.Broken(f"a client says nothing on channel {self._channel}")

    def _whole(self) -> Iterator[Said]:
        if self._channel == ENDED:
            if self._held[:1] == bytes((STDIN,)):
                yield InputEnded()
            return
        try:
            size = msgspec.json.decode(bytes(self._held), type=_Size)
        except msgspec.DecodeError:
            raise websocket.Broken('the size of a terminal is not {"Width": …, "Height": …}') from None
        if 0 < size.width < 1 << 16 and 0 < size.height < 1 << 16:
            yield Resized(size.width, size.height)


def message(channel: int, data: bytes) -> bytes:
    """A frame from the server."""
    return websocket.frame(websocket.BINARY, bytes((channel,)) + data)


def ended(exit_code: int) -> bytes:
    """The last message: how the command ended. Clients parse the cause."""
    if exit_code == 0:
        status: dict[str, object] = {"metadata": {}, "status": "Success"}
    else:
        status = {
            "metadata": {},
            "status": "Failure",
            "message": f"command terminated with non-zero exit code: exit status {exit_code}",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": str(exit_code)}]},
        }
    return message(ERROR, msgspec.json.encode(status))


def failed(why: str) -> bytes:
    """The last message, where nothing could be run or it was cut off."""
    status = {"metadata": {}, "status": "Failure", "message": why, "reason": "InternalError", "code": 500}
    return message(ERROR, msgspec.json.encode(status))
