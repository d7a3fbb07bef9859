"""A what-if answer for people: what happens, pod by pod, and a table of the nodes that differ."""

from collections.abc import Iterable, Mapping
from typing import Final

from .whatif import Answer, Line

SHOWN_MAX: Final = 200
"""Lines of one sort: whoever wants them all asks for JSON."""


def text(answer: Answer) -> str:
    lines: list[str] = []
    lines += _shown(
        f"evicted  {one.pod}  from {one.node}: {one.why}"
        + ("" if one.comes_back else "; nobody makes it anew")
        for one in answer.evicted
    )
    lines += _shown(f"placed   {pod}  on {node}" for pod, node in answer.placed.items())
    lines += _shown(f"placed   {pod}  on {node}, with or without it" for pod, node in answer.anyway.items())
    lines += _shown(f"waits    {pod}{_as_before(pod, answer)}: {why}" for pod, why in answer.waiting.items())
    lines += _shown(f"stays    {pod}: {why}" for pod, why in answer.held.items())
    lines += _shown(f"refused  {what}: {why}" for what, why in answer.refused.items())
    lines += [f"note     {note}" for note in (*answer.notes, *answer.unread)]
    return "\n".join([*(lines or ["nothing changes for any pod"]), "", *_table(answer)])


def _as_before(pod: str, answer: Answer) -> str:
    return ", as it does now" if pod in answer.waited else ""


def _shown(lines: Iterable[str]) -> list[str]:
    found = list(lines)
    more = len(found) - SHOWN_MAX
    return found if more <= 0 else [*found[:SHOWN_MAX], f"         and {more} more"]


def _table(answer: Answer) -> list[str]:
    rows = [("NODE", "PODS", "", "DEVICES", "")]
    rows += [(name, *_row(*pair)) for name, pair in _first(answer.nodes).items()]
    rows.append(("all nodes", str(answer.pods[0]), str(answer.pods[1]), "", ""))
    rows.append(("no node", str(len(answer.waited)), str(len(answer.waiting)), "", ""))
    width = max(len(row[0]) for row in rows)
    return [
        f"{name:<{width}}  {before:>7}{_to(after):<11}{devices:>9}{_to(later)}".rstrip()
        for name, before, after, devices, later in rows
    ]


def _to(after: str) -> str:
    return f" -> {after}" if after else ""


def _row(before: Line, after: Line) -> tuple[str, str, str, str]:
    return (
        str(before.pods) if before.is_there else "-",
        str(after.pods) if after.is_there else "-",
        str(before.devices) if before.is_there else "-",
        str(after.devices) if after.is_there else "-",
    )


def _first(nodes: Mapping[str, tuple[Line, Line]]) -> dict[str, tuple[Line, Line]]:
    return dict(sorted(nodes.items())[:SHOWN_MAX])
