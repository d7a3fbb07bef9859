"""Completed indexes as the API writes them: `0,2-4`."""

from collections.abc import Iterable


def parse(text: str) -> set[int]:
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
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
