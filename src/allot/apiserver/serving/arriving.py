"""How much a client may send before its request is complete.

A parser keeps what it cannot hand over yet: a header without an end, a trailer without an end. So
bytes are counted as they come off the wire, and not as the parser tells of them.

    head       the request line and the headers, until they are complete
    body       what the request says beyond its head
    dressing   whatever else comes with a body: lengths of chunks, their extensions, trailers. It may
               outweigh the body by DRESSING_BYTES_MAX, so that chunks of single bytes, of which each
               costs as much as a large one, do not go on for ever.
"""

from enum import Enum

HEAD_BYTES_MAX = 128 * 1024
HEADERS_MAX = 1000
DRESSING_BYTES_MAX = 64 * 1024
UNWANTED_BYTES_MAX = 256 * 1024
"""Of a body that is still being sent although its request has been answered."""
PIPELINED_MAX = 64
"""Requests that are sent before the first of them is answered."""


class Excess(Enum):
    """What there was too much of: a status, and what it means."""

    HEAD = (431, f"the head of the request is longer than {HEAD_BYTES_MAX} bytes")
    HEADERS = (431, f"the request has more than {HEADERS_MAX} headers")
    DRESSING = (400, "the chunks of the body carry more trailers and lengths than body")
    UNWANTED = (400, "the request was answered before its body had arrived, and more of it came")
    PIPELINED = (400, f"more than {PIPELINED_MAX} requests were sent before the first was answered")

    @property
    def status(self) -> int:
        return self.value[0]

    @property
    def text(self) -> str:
        return self.value[1]


class TooMuch(Exception):
    """The connection cannot go on."""

    def __init__(self, excess: Excess) -> None:
        super().__init__(excess.text)
        self.excess = excess


class Arrival:
    """Counts what has come of the request that is arriving on one connection."""

    __slots__ = (
        "_body",
        "_dressing",
        "_head",
        "_headers",
        "_in_head",
        "_new_body",
        "_told",
        "_turned",
        "_unwanted",
    )

    def __init__(self) -> None:
        self._in_head = True
        self._head = 0  # bytes that came before the head was complete
        self._told = 0  # bytes of the head that the parser has told of
        self._headers = 0
        self._body = 0
        self._dressing = 0
        self._unwanted = 0
        self._new_body = 0  # of the bytes that were received last
        self._turned = False  # whether a head, or a request, became complete among those

    def received(self, size: int) -> None:
        """So many bytes came off the wire, and the parser has told what it made of them."""
        if self._turned:
            # How many of them belong to what came next is not known: those few are let pass.
            self._turned = False
        elif self._in_head:
            self._head += size
            if self._head > HEAD_BYTES_MAX:
                raise TooMuch(Excess.HEAD)
        else:
            self._dressing += size - self._new_body
            if self._dressing > self._body + DRESSING_BYTES_MAX:
                raise TooMuch(Excess.DRESSING)
        self._new_body = 0

    def url(self, size: int) -> None:
        self._told += size
        if self._told > HEAD_BYTES_MAX:  # a whole head may come at once
            raise TooMuch(Excess.HEAD)

    def header(self, size: int) -> bool:
        """Whether it is one: what follows the body is a trailer, and nobody asked for it."""
        if not self._in_head:
            return False
        self._told += size
        self._headers += 1
        if self._told > HEAD_BYTES_MAX or self._headers > HEADERS_MAX:
            raise TooMuch(Excess.HEAD if self._told > HEAD_BYTES_MAX else Excess.HEADERS)
        return True

    def head_complete(self) -> None:
        self._in_head = False
        self._turned = True
        self._body = self._dressing = self._unwanted = 0

    def body(self, size: int, *, is_wanted: bool) -> None:
        self._body += size
        self._new_body += size
        if not is_wanted:
            self._unwanted += size
            if self._unwanted > UNWANTED_BYTES_MAX:
                raise TooMuch(Excess.UNWANTED)

    def complete(self) -> None:
        """The request is there. What comes next begins another one."""
        self._in_head = True
        self._turned = True
        self._head = self._told = self._headers = 0
