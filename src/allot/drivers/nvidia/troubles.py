"""What is wrong with which GPU, from what befell it. Pure.

A critical error (XID) says that the hardware or its driver is in doubt, and stays until the driver of these
devices is started anew, as it is after a reset. Errors that a program causes by itself are that program's
and not the GPU's. A GPU that is lost stays lost until somebody says that it is well.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from allot.driver import Taint

from .backend import Event, Lost, Well, Xid
from .published import DRIVER

OF_PROGRAMS: Final = frozenset({13, 31, 43, 45, 68, 109})
"""Exceptions of a kernel, page faults, a channel that was stopped or cleaned up, video, a slow context
switch."""


def after(known: Mapping[str, Event], events: Iterable[Event]) -> dict[str, Event]:
    """By uuid. What is worse is kept: an error says nothing new of a GPU that is lost."""
    found = dict(known)
    for event in events:
        match event:
            case Well():
                found.pop(event.uuid, None)
            case Xid() if event.number in OF_PROGRAMS or isinstance(found.get(event.uuid), Lost):
                pass
            case _:
                found[event.uuid] = event
    return found


def taints(known: Mapping[str, Event]) -> dict[str, Taint]:
    return {uuid: _taint(event) for uuid, event in known.items()}


def message(event: Event) -> str:
    return f"critical error XID {event.number}" if isinstance(event, Xid) else "the GPU does not answer"


def _taint(event: Event) -> Taint:
    if isinstance(event, Xid):
        return Taint(f"{DRIVER}/xid", "NoSchedule", str(event.number))
    return Taint(f"{DRIVER}/lost", "NoExecute")
