"""One HTTP request over a connection that is there, and whether the answer is a good one."""

import asyncio

from .dialing import Streams
from .probes import Outcome
from .views import HttpGet

_USER_AGENT = "kube-probe/1.37"


class BadAnswer(Exception):
    """It is no HTTP."""


async def get(asked: HttpGet, host: str, port: int, streams: Streams) -> Outcome:
    """Any status from 200 to 399 is good. Raises BadAnswer, and OSError."""
    reader, writer = streams
    writer.write(request(asked, host, port))
    await writer.drain()
    status = await _status(reader)
    if 200 <= status < 400:
        return Outcome(True)
    return Outcome(False, f"HTTP probe failed with statuscode: {status}")


def request(asked: HttpGet, host: str, port: int) -> bytes:
    own = {one.name.lower(): one.value for one in asked.http_headers}
    named = f"[{host}]" if ":" in host else host
    usual = {"Host": f"{named}:{port}", "User-Agent": _USER_AGENT, "Accept": "*/*"}
    headers = [
        *(f"{name}: {value}" for name, value in usual.items() if name.lower() not in own),
        *(f"{one.name}: {one.value}" for one in asked.http_headers),
        "Connection: close",
    ]
    path = asked.path if asked.path.startswith("/") else f"/{asked.path}"
    return "\r\n".join([f"GET {path} HTTP/1.1", *headers, "", ""]).encode()


async def _status(reader: asyncio.StreamReader) -> int:
    try:
        line = await reader.readline()
    except ValueError:
        raise BadAnswer("malformed HTTP response: its first line has no end") from None
    version, _, rest = line.partition(b" ")
    if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
        raise BadAnswer(f"malformed HTTP response {line[:60]!r}")
    return int(rest[:3])
