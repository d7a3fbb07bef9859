"""No node gives more devices of a compute resource than it has (D7), whoever binds.

A pod holds what its containers' records say, from the write that gives it a node until it has ended or is
gone. The write that binds it revises the hold record of the node (`api.compute.holds`) in the same
transaction, and makes the node as it was read a condition of it.

A pod that is created on a node, with a record, was decided by its author: its node judges it. It is counted
like all others.
"""

from collections.abc import Callable, Mapping
from functools import partial

from allot.api import Fields, compute, errors
from allot.store import Revise

from ..deciding.context import ServerWriteContext
from ..storing.repository import Found

HOLDS = "/compute-holds/"
FindNode = Callable[[str], Found]
"""A node by name, at once."""

_ENDED = ("Succeeded", "Failed")


class ComputeGuard:
    def __init__(self, find_node: FindNode) -> None:
        self._find_node = find_node

    def __call__(self, old: Fields | None, new: Fields | None, context: ServerWriteContext) -> None:
        before, after = _held(old), _held(new)
        if before == after:
            return  # most pods hold nothing, and most writes are about something else
        metadata = (new or old or {})["metadata"]
        uid, name = metadata["uid"], metadata["name"]
        for node in sorted({one[0] for one in (before, after) if one is not None}):
            wanted = after[1] if after is not None and after[0] == node else {}
            has = self._has(node, context) if wanted and old is not None else None
            context.extra_writes.append(Revise(f"{HOLDS}{node}", partial(_moved, uid, name, wanted, has)))

    def _has(self, node: str, context: ServerWriteContext) -> Mapping[str, int]:
        found = context.join(self._find_node(node))
        status = (found.fields.get("status") or {}) if found is not None else {}
        return {
            one.get("name") or "": len(one.get("allocatableDevices") or ())
            for one in status.get("computeResources") or ()
        }


def _held(pod: Fields | None) -> tuple[str, Mapping[str, int]] | None:
    if pod is None:
        return None
    node = (pod.get("spec") or {}).get("nodeName")
    if not node or (pod.get("status") or {}).get("phase") in _ENDED:
        return None
    held = compute.records.held_by_fields(pod)
    return (node, held) if held else None


def _moved(
    uid: str, name: str, wanted: Mapping[str, int], has: Mapping[str, int] | None, stored: bytes | None
) -> bytes | None:
    """What the record becomes. Raises Conflict; `has` is None where nobody asks."""
    record = compute.holds.read(stored)
    wrong = compute.holds.excess(record, uid, wanted, has) if has is not None else ""
    if wrong:
        raise errors.Conflict(
            f'Operation cannot be fulfilled on pods/binding "{name}": {wrong}', kind="pods", name=name
        )
    return compute.holds.write(compute.holds.hold(record, uid, wanted))
