"""What TALK6 comes to: a pod that waits for a node does not keep a classic claim reserved for long.

Another pod may wait for the claim. A driver lists the pod in the write that allocates, and then its scheduler
binds it or gives everything back. Between the two a leader may die and another take over, and servers may not
answer for a while. Pods of a scheduler that remembers nothing keep what they have, and are not judged.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import Fields, is_classic, is_finished, is_leaving, name_of, node_of, reserved

LONG_S = 300.0
OTHERS = "forgetful-scheduler"


class KeptClaims:
    follows = ("pods", "resourceclaims")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)
        self._since_s: dict[tuple[str, str], float] = {}  # claim, pod
        self.longest_s = 0.0

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        uid = seen.object.uid
        if seen.resource == "pods":
            if seen.type == "DELETED" or not _waits(seen.fields):
                self._since_s = {key: at_s for key, at_s in self._since_s.items() if key[1] != uid}
            return
        users = {one["uid"] for one in reserved(seen.fields)} if seen.type != "DELETED" else set()
        for key in [key for key in self._since_s if key[0] == uid and key[1] not in users]:
            yield from self._judged(seen, *key)
        for user in users if is_classic(seen.fields) else ():
            pod = self._now.get("pods", user)
            if pod is not None and _waits(pod):
                self._since_s.setdefault((uid, user), seen.at_s)

    def _judged(self, seen: Seen, claim: str, user: str) -> Iterator[str]:
        kept_s = seen.at_s - self._since_s.pop((claim, user))
        self.longest_s = max(self.longest_s, kept_s)
        pod = self._now.get("pods", user)
        if kept_s > LONG_S and pod is not None:
            yield f"TALK6: pod {name_of(pod)} waited for {kept_s:.0f} s and kept claim {seen.object.name}"

    def rest(self) -> Iterator[str]:
        yield from ()


def _waits(pod: Fields) -> bool:
    is_ours = pod["spec"].get("schedulerName") != OTHERS
    return is_ours and not (node_of(pod) or is_finished(pod) or is_leaving(pod))
