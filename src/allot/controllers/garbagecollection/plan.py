"""What becomes of an object, once it is known how its owners stand. Pure.

    an owner is there, others are gone      the references to those go
    every owner is gone                     the object goes
    no owner stays, one waits for it        the object goes, its own dependents first

An owner whose state cannot be known counts as one that is there: keeping garbage
for a while does less harm than deleting what somebody needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from allot.api import Object
from allot.client import Propagation

from .graph import FOREGROUND, ORPHAN, Member


class OwnerState(Enum):
    THERE = "there"
    GONE = "gone"  # the server has said so, of this uid
    WAITING = "waiting"  # it is being deleted and waits for its dependents
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Nothing:
    pass


@dataclass(frozen=True, slots=True)
class Disown:
    """Take the references to these owners away."""

    uids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    propagation: Propagation
    unblocks: bool = False
    """First stop holding owners back: a dependent waits as well, and it may wait for us."""


Action = Nothing | Disown | Delete


def decide(member: Member, states: Sequence[OwnerState], dependents: Sequence[Member]) -> Action:
    """`states` go with `member.owners`, one by one."""
    if member.is_deleting or not member.owners:
        return Nothing()
    leaving = tuple(
        owner.uid
        for owner, state in zip(member.owners, states, strict=True)
        if state in (OwnerState.GONE, OwnerState.WAITING)
    )
    if len(leaving) < len(member.owners):
        return Disown(leaving) if leaving else Nothing()
    if OwnerState.WAITING in states and dependents:
        return Delete(Propagation.FOREGROUND, any(one.is_waiting for one in dependents))
    return Delete(_own_wish(member))


def _own_wish(member: Member) -> Propagation:
    """A finalizer that is there already says how the object is to go."""
    if ORPHAN in member.finalizers:
        return Propagation.ORPHAN
    return Propagation.FOREGROUND if FOREGROUND in member.finalizers else Propagation.BACKGROUND


# -- what to write ------------------------------------------------------------------------------
# Merge patches, which every resource takes. They name the version they were made from, because a
# merge patch replaces lists as a whole.


def without_owners(object: Object, uids: Sequence[str]) -> dict[str, Any] | None:
    """The patch that removes references to these owners; None if there are none."""
    references = _references(object)
    kept = [one for one in references if one.get("uid") not in uids]
    if len(kept) == len(references):
        return None
    return _patch(object, {"ownerReferences": kept or None})


def unblocked(object: Object) -> dict[str, Any]:
    references = [{**one, "blockOwnerDeletion": False} for one in _references(object)]
    return _patch(object, {"ownerReferences": references})


def without_finalizer(object: Object, finalizer: str) -> dict[str, Any] | None:
    finalizers = object.metadata.finalizers or []
    if finalizer not in finalizers:
        return None
    return _patch(object, {"finalizers": [one for one in finalizers if one != finalizer] or None})


def _references(object: Object) -> list[dict[str, Any]]:
    return list((object.fields.get("metadata") or {}).get("ownerReferences") or ())


def _patch(object: Object, metadata: dict[str, Any]) -> dict[str, Any]:
    same = {"uid": object.uid, "resourceVersion": object.resource_version}
    return {"metadata": {**same, **metadata}}
