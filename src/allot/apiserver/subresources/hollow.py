"""What is answered for pods on hollow nodes, where nothing runs: so much in words, or what the pod says.

    hollow.allot.dev/logs     what `kubectl logs` shows of the pod, whatever the container
    hollow.allot.dev/exec     what every command prints that is run in it; it ends with exit code 0

With these annotations a demo, or the test of a tool, sees output where there is no machine.
"""

import asyncio
from collections.abc import Mapping

from allot.api import Duplex, Fields, Response, Talk, errors, streams

from .reaching import hollow_pod

LOGS, EXEC = "hollow.allot.dev/logs", "hollow.allot.dev/exec"
_GOODBYE_S = 5.0


def logs_of(pod: Fields, node: str) -> Response:
    """Raises BadRequest."""
    said = _annotation(pod, LOGS)
    if said is None:
        raise hollow_pod(pod["metadata"]["name"], node, f"it has no logs (annotation {LOGS} would be shown)")
    return Response(200, said.encode() + (b"" if said.endswith("\n") else b"\n"), "text/plain")


def says_what_it_prints(pod: Fields) -> bool:
    return _annotation(pod, EXEC) is not None


def run_in(pod: Fields, headers: Mapping[str, str]) -> Response:
    """As if a command had been run. Raises BadRequest."""
    said = _annotation(pod, EXEC) or ""
    try:
        agreed = streams.websocket.accept(headers, streams.channels.PROTOCOLS)
    except streams.websocket.Broken as wrong:
        raise errors.BadRequest(str(wrong)) from None
    printed = said if said.endswith("\n") or not said else f"{said}\n"
    return Response(101, headers=agreed, talk=_printing(printed.encode()))


def _printing(text: bytes) -> Talk:
    async def talk(link: Duplex) -> None:
        channels = streams.channels
        await link.write(channels.message(channels.STDOUT, text))
        await link.write(channels.ended(0) + streams.websocket.closing())
        try:
            async with asyncio.timeout(_GOODBYE_S):
                while await link.read():
                    pass
        except TimeoutError:
            pass

    return talk


def _annotation(pod: Fields, name: str) -> str | None:
    return (pod["metadata"].get("annotations") or {}).get(name)
