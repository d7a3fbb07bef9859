"""What an answer warns about, as headers that every client can read.

Clients give up on answers with very many or very long headers: Python's takes a
hundred of them, others take a few kilobytes. So both are bounded, and what had to
be left out is counted in the last one.
"""

from collections.abc import Sequence
from typing import Final

WARNINGS_MAX: Final = 32
WARNING_LENGTH_MAX: Final = 512
WARNINGS_BYTES_MAX: Final = 4096

Headers = tuple[tuple[str, str], ...]


def warning_headers(warnings: Sequence[str]) -> Headers:
    shown: list[str] = []
    left = WARNINGS_BYTES_MAX
    for text in warnings:
        quoted = _quoted(text)
        left -= len(quoted.encode())
        if left < 0 or len(shown) == WARNINGS_MAX:
            shown.append(f"{len(warnings) - len(shown)} more warnings are not shown")
            break
        shown.append(quoted)
    return tuple(("Warning", f'299 - "{text}"') for text in shown)


def _quoted(text: str) -> str:
    if len(text) > WARNING_LENGTH_MAX:
        text = f"{text[:WARNING_LENGTH_MAX]}..."
    if not text.isprintable():  # a line break would begin another header
        text = "".join(one if one.isprintable() else " " for one in text)
    return text.replace("\\", "\\\\").replace('"', '\\"')
