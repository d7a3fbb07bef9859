"""D1: at every revision a device is held by at most one claim, admin access aside."""

from collections.abc import Iterator

from ..recording import Seen
from .reading import results

Device = tuple[str, str, str]


class OneHolder:
    follows = ("resourceclaims",)

    def __init__(self) -> None:
        self._held: dict[str, list[Device]] = {}  # claim uid -> devices
        self._holder: dict[Device, str] = {}

    def see(self, seen: Seen) -> Iterator[str]:
        uid = seen.object.uid
        for device in self._held.pop(uid, []):
            if self._holder.get(device) == uid:
                del self._holder[device]
        if seen.type == "DELETED":
            return
        for result in results(seen.fields):
            if result.get("adminAccess") or result.get("shareID"):
                continue
            device = (result["driver"], result["pool"], result["device"])
            other = self._holder.setdefault(device, uid)
            if other != uid:
                yield f"D1: device {'/'.join(device)} is held by claims {other} and {uid}"
            self._held.setdefault(uid, []).append(device)

    def rest(self) -> Iterator[str]:
        yield from ()
