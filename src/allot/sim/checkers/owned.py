"""What owns what: garbage goes, and nothing else does.

OWNED1  Once things are quiet, nothing is left whose owners are all gone, and nothing names an owner that is
        gone.
OWNED2  What nobody deletes goes only after its last owner, or with its namespace.
OWNED3  An owner that is deleted in the foreground goes after those that hold it back.
OWNED4  What an owner leaves behind (orphans) stays.

Caches may be minutes old, and what they do not show yet cannot be waited for or set free:
OWNED3 and OWNED4 speak of dependents that are older than that.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import Fields, is_leaving, name_of, others_listed, owners

KEPT = "sim.allot.dev/kept"
OLD_S = 300.0


class Owned:
    follows = (
        "namespaces",
        "nodes",
        "pods",
        "configmaps",
        "resourceclaims",
        "deployments",
        "replicasets",
        "daemonsets",
        "statefulsets",
        "controllerrevisions",
        "jobs",
        "cronjobs",
    )

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)
        self._since_s: dict[str, float] = {}
        self._orphans: dict[str, str] = {}  # uid -> name of the owner that left it

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        uid, fields = seen.object.uid, seen.fields
        self._since_s.setdefault(uid, seen.at_s)
        if seen.type != "DELETED":
            return
        if (fields["metadata"].get("labels") or {}).get(KEPT) and self._has_reason_to_stay(before or fields):
            yield f"OWNED2: {seen.resource} {seen.object.name} went, and nobody deleted it"
        if uid in self._orphans and not self._is_ending(fields) and seen.resource == "configmaps":
            yield f"OWNED4: {seen.resource} {seen.object.name} went, an orphan of {self._orphans[uid]}"
        finalizers = (before or fields)["metadata"].get("finalizers") or ()
        for one in self._dependents(uid):
            old = seen.at_s - self._since_s[one["metadata"]["uid"]] > OLD_S
            blocks = any(ref["uid"] == uid and ref.get("blockOwnerDeletion") for ref in owners(one))
            if "foregroundDeletion" in finalizers and blocks and old:
                went = f"{seen.resource} {seen.object.name}"
                yield f"OWNED3: {went} went before {name_of(one)}, which held it back"
            if "orphan" in finalizers and old:
                self._orphans[one["metadata"]["uid"]] = seen.object.name

    def rest(self) -> Iterator[str]:
        for one in self._now:
            gone = [ref["name"] for ref in owners(one) if not self._now.has(ref["uid"])]
            if is_leaving(one) and others_listed(one):
                continue  # it is told to go, and does when those who use it have left (C12)
            if gone and len(gone) == len(owners(one)):
                yield f"OWNED1: {name_of(one)} is left, and its owners are gone: {', '.join(gone)}"
            elif gone:
                yield f"OWNED1: {name_of(one)} still names owners that are gone: {', '.join(gone)}"

    def _dependents(self, uid: str) -> list[Fields]:
        return [one for one in self._now if any(ref["uid"] == uid for ref in owners(one))]

    def _has_reason_to_stay(self, fields: Fields) -> bool:
        named = owners(fields)
        has_owner = not named or any(self._now.has(ref["uid"]) for ref in named)
        return has_owner and not self._is_ending(fields)

    def _is_ending(self, fields: Fields) -> bool:
        home = self._now.named("namespaces", fields["metadata"].get("namespace", ""))
        return home is None or is_leaving(home)
