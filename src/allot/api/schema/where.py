"""Where in a body something is, put into words only when somebody reads them.

A walk over a body makes one step a member. To write the path out at each of them
would cost the length of all keys above it each time: a body with one long key
and many members below would take the square of its size. A `Where` is a step and
what is above it, and costs the same wherever it is.
"""

from typing import Final, NamedTuple

PATH_LENGTH_MAX: Final = 256
"""Longer paths are cut: they are read by people, in headers and messages."""

NOTED_MAX: Final = 100
"""More fields than this are not named in one answer, as upstream has it."""


class Where(NamedTuple):
    above: "Where | None"
    step: str | int  # the key of a member, or its place in a list


def written(where: Where | None) -> str:
    """The path as messages have it, e.g. spec.containers[0].image."""
    steps = []
    while where is not None:
        above, step = where
        steps.append(f"[{step}]" if type(step) is int else f".{step[:PATH_LENGTH_MAX]}")  # type: ignore[index]
        where = above
    path = "".join(reversed(steps)).removeprefix(".")
    return path if len(path) <= PATH_LENGTH_MAX else f"{path[:PATH_LENGTH_MAX]}..."
