"""Completed indexes as the API writes them: `0,2-4`."""

import re
from collections.abc import Iterable
from typing import Final

_RUN = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?")


UNFOLDED_MAX: Final = 1_000_000
"""Whoever may write a status may write `0-2000000000` there; no job of ours gets so far."""


def parse(text: str, below: int = UNFOLDED_MAX) -> set[int]:
    """The indexes that a status names, of those from 0 up to `below`. What is no index counts for nothing:
    the status is a note, and a pod that ran twice does less harm than a job that nobody looks after."""
    found: set[int] = set()
    for part in text.split(","):
        if run := _RUN.fullmatch(part):
            start = int(run[1])
            end = min(int(run[2] or run[1]) + 1, below)
            found.update(range(start, min(end, start + UNFOLDED_MAX - len(found))))
    return found


def show(indexes: Iterable[int]) -> str:
    """Runs of three and more are written as their ends; a run of two as both."""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][-1] == index - 1:
            parts[-1].append(index)
        else:
            parts.append([index])
    shown = []
    for run in parts:
        shown += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(one) for one in run]
    return ",".join(shown)
