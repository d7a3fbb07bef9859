"""What was made or deleted and the cache does not show yet, so that nothing is done twice.

Exact, by uid: what was made or adopted counts until the cache shows it as the owner's,
and what was deleted or released counts as gone until the cache shows that. A minute later the cache
is believed again: the object may have come and gone while nobody watched. Losing this
memory is safe: a new term begins with caches that were read anew.
"""

from collections.abc import Iterable

from allot.api import Object
from allot.informers import Change, Deleted, controller_of

REMEMBERED_S = 60.0


class Unseen:
    def __init__(self) -> None:
        self._came: dict[str, tuple[str, Object, float]] = {}  # uid -> owner's uid, what, when
        self._left: dict[str, tuple[str, float]] = {}  # uid -> owner's uid, when

    def came(self, object: Object, owner_uid: str, now_s: float) -> None:
        """It was made or adopted."""
        self._left.pop(object.uid, None)
        self._came[object.uid] = (owner_uid, object, now_s)

    def left(self, uid: str, owner_uid: str, now_s: float) -> None:
        """It was deleted or released."""
        self._came.pop(uid, None)
        self._left[uid] = (owner_uid, now_s)

    def hear(self, change: Change) -> None:
        """A handler: what the cache shows need not be remembered."""
        object = change.object
        controller = None if isinstance(change, Deleted) else controller_of(object)
        shown = controller.uid if controller is not None else ""
        ends = isinstance(change, Deleted) or object.metadata.deletion_timestamp is not None
        if ends or self._came.get(object.uid, ("",))[0] == shown:
            self._came.pop(object.uid, None)
        if ends or self._left.get(object.uid, (shown,))[0] != shown:
            self._left.pop(object.uid, None)

    def complete(self, owner_uid: str, cached: Iterable[Object], now_s: float) -> list[Object]:
        """What the owner really has."""
        self._forget_old(now_s)
        found = {one.uid: one for one in cached}
        for uid, (owner, object, _) in self._came.items():
            if owner == owner_uid:
                found.setdefault(uid, object)
        return [one for uid, one in found.items() if self._left.get(uid, ("",))[0] != owner_uid]

    def _forget_old(self, now_s: float) -> None:
        """Both are kept in the order of time, so only the oldest are looked at."""
        while self._came and next(iter(self._came.values()))[2] < now_s - REMEMBERED_S:
            del self._came[next(iter(self._came))]
        while self._left and next(iter(self._left.values()))[1] < now_s - REMEMBERED_S:
            del self._left[next(iter(self._left))]
