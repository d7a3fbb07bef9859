"""Who owns whom: uids, the references between them, and whose turn it is after each change.

Where it sits
    Handlers tell it what the caches hold; each telling returns the uids to look at.
    It never awaits and decides nothing: `plan` does, on what the server says now.

What it promises
    GC1  A reference counts only where it fits: the kind, the name and the namespace that it
         gives are those of the object with that uid. An object cannot be held back or kept
         alive from another namespace.
    GC2  Whatever could have become garbage, or could have stopped holding its owner back,
         by a change is among the uids that the change returns.
    GC3  Telling the same twice returns only what is still to be done, and changes nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from allot.api import Object, meta
from allot.base import require
from allot.informers import ResourceId, owners

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


@dataclass(frozen=True, slots=True)
class Member:
    """What garbage collection needs to know of one object."""

    uid: str
    what: ResourceId
    kind: str
    namespace: str
    name: str
    owners: tuple[meta.OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    is_deleting: bool = False

    @classmethod
    def of(cls, object: Object, what: ResourceId, kind: str) -> "Member":
        known = object.metadata
        return cls(
            known.uid,
            what,
            kind,
            known.namespace,
            known.name,
            owners(object),
            tuple(known.finalizers or ()),
            known.deletion_timestamp is not None,
        )

    @property
    def is_waiting(self) -> bool:
        """It goes once its dependents are gone."""
        return self.is_deleting and FOREGROUND in self.finalizers

    @property
    def is_orphaning(self) -> bool:
        """It goes once its dependents no longer name it."""
        return self.is_deleting and ORPHAN in self.finalizers

    def fits(self, reference: meta.OwnerReference, dependent: "Member") -> bool:
        """Does a reference of that dependent mean this object? (GC1)"""
        return (
            reference.uid == self.uid
            and reference.name == self.name
            and reference.kind == self.kind
            and reference.api_version.rpartition("/")[0] == self.what.group
            and (not self.what.namespaced or self.namespace == dependent.namespace)
        )

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.what.plural} {where}"


class Graph:
    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self._dependents: dict[str, dict[str, None]] = {}  # of owners that are not known, too

    # -- being told -----------------------------------------------------------------------------

    def observe(self, member: Member) -> tuple[str, ...]:
        """An object is there, in this state. Returns whom to look at."""
        old = self._members.get(member.uid)
        self._members[member.uid] = member
        self._link(member, old)
        due: dict[str, None] = {}
        if self._needs_a_look(member):
            due[member.uid] = None
        if old is not None and old.owners != member.owners:
            due.update(self._waiting_owners(old))
        return tuple(due)

    def forget(self, uid: str) -> tuple[str, ...]:
        """An object is gone. Returns whom to look at."""
        member = self._members.pop(uid, None)
        if member is None:
            return ()
        for owner in member.owners:
            self._unlink(owner.uid, uid)
        return tuple({**self._dependents.get(uid, {}), **self._waiting_owners(member)})

    # -- being asked ----------------------------------------------------------------------------

    def get(self, uid: str) -> Member | None:
        return self._members.get(uid)

    def owner(self, reference: meta.OwnerReference, dependent: Member) -> Member | None:
        """The object that a reference means, if it is known."""
        found = self._members.get(reference.uid)
        return found if found is not None and found.fits(reference, dependent) else None

    def dependents(self, uid: str) -> tuple[Member, ...]:
        """Those whose reference fits."""
        owner = self._members.get(uid)
        if owner is None:
            return ()
        found = (self._members[one] for one in self._dependents.get(uid, ()))
        return tuple(one for one in found if any(owner.fits(ref, one) for ref in one.owners))

    def blocking(self, uid: str) -> tuple[Member, ...]:
        """The dependents that must be gone before their owner may go. One that itself waits for the
        owner to go holds it back no more: in a circle, nobody would ever be first."""
        owner = self._members.get(uid)
        if owner is None:
            return ()
        waiting = self._held_back_by(owner)
        return tuple(
            one
            for one in self.dependents(uid)
            if one.uid not in waiting
            and any(ref.block_owner_deletion and owner.fits(ref, one) for ref in one.owners)
        )

    def _held_back_by(self, member: Member) -> set[str]:
        """Who waits for this one to go, or for one that waits for it."""
        found: set[str] = set()
        look = [member]
        while look:
            one = look.pop()
            for reference in one.owners:
                owner = self.owner(reference, one) if reference.block_owner_deletion else None
                if owner is not None and owner.is_waiting and owner.uid not in found:
                    found.add(owner.uid)
                    look.append(owner)
        return found

    def of(self, what: ResourceId) -> tuple[str, ...]:
        return tuple(uid for uid, member in self._members.items() if member.what == what)

    def unresolved(self) -> Iterator[str]:
        """Those of which an owner is not known."""
        for member in tuple(self._members.values()):
            if not self.is_settled(member):
                yield member.uid

    def is_settled(self, member: Member) -> bool:
        """Every owner is known to be there, and none waits for its dependents to go."""
        known = (self.owner(reference, member) for reference in member.owners)
        return all(owner is not None and not owner.is_waiting for owner in known)

    def __len__(self) -> int:
        return len(self._members)

    def check(self) -> None:
        """GC2 rests on this. For tests and the simulator."""
        for uid, dependents in self._dependents.items():
            for one in dependents:
                names = [owner.uid for owner in self._members[one].owners]
                require(uid in names, f"GC2: {one} is kept as a dependent of {uid} and does not name it")
        for uid, member in self._members.items():
            for owner in member.owners:
                require(uid in self._dependents.get(owner.uid, ()), f"GC2: {uid} is lost to {owner.uid}")

    # -- keeping it so --------------------------------------------------------------------------

    def _needs_a_look(self, member: Member) -> bool:
        if member.is_deleting:
            return member.is_waiting or member.is_orphaning
        return not self.is_settled(member)

    def _waiting_owners(self, member: Member) -> dict[str, None]:
        found = (self._members.get(owner.uid) for owner in member.owners)
        return {owner.uid: None for owner in found if owner is not None and owner.is_waiting}

    def _link(self, member: Member, old: Member | None) -> None:
        now = {owner.uid for owner in member.owners}
        for owner in old.owners if old is not None else ():
            if owner.uid not in now:
                self._unlink(owner.uid, member.uid)
        for owner in member.owners:
            self._dependents.setdefault(owner.uid, {})[member.uid] = None

    def _unlink(self, owner: str, dependent: str) -> None:
        dependents = self._dependents.get(owner)
        if dependents is not None:
            dependents.pop(dependent, None)
            if not dependents:
                del self._dependents[owner]
