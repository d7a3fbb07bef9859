"""What the loop has done or seen and the caches may not show.

Small memories, all bounded, all only there to save work or to prevent doing things
twice. They are lost with the leadership, and then the caches are read anew.
"""

from collections import OrderedDict

from allot.api import Object, errors

GONE_MAX = 5000
UNANSWERED_MAX = 5000
HALF_DONE_MAX = 5000
DOUBTFUL_S = 60.0
FORGOTTEN_S = 3600.0

UNANSWERED = (errors.Timeout, errors.Unavailable, errors.Internal, errors.TooManyRequests)
"""What says nothing of whether a write was carried out, or may be tried as it was."""


class Gone:
    """Pods that are known to be no more, by uid, and the node each ran on. A uid never comes back."""

    def __init__(self) -> None:
        self._nodes: OrderedDict[str, str] = OrderedDict()

    def add(self, uid: str, node: str = "") -> None:
        self._nodes[uid] = node or self._nodes.get(uid, "")
        self._nodes.move_to_end(uid)
        while len(self._nodes) > GONE_MAX:
            self._nodes.popitem(last=False)

    def __contains__(self, uid: str) -> bool:
        return uid in self._nodes

    def node_of(self, uid: str) -> str:
        return self._nodes.get(uid, "")


class Made:
    """Claims that were created and that the cache does not show yet.

    After a minute one is doubtful, for it may have gone before the cache showed it: the
    server has to be asked. The cache cannot be believed, however long it shows nothing. It
    and that of the pods may both be behind, and then a pod that runs with the claim would
    get another in its place. What nobody asked about for an hour was of a pod that is gone.
    """

    def __init__(self) -> None:
        self._pods: OrderedDict[str, tuple[str, float]] = OrderedDict()  # claim uid -> pod uid, since when
        self._claims: dict[str, dict[str, Object]] = {}  # pod uid -> claim uid -> claim

    def add(self, claim: Object, pod_uid: str, now_s: float) -> None:
        self._forget_before(now_s - FORGOTTEN_S)
        self._pods[claim.uid] = (pod_uid, now_s)
        self._claims.setdefault(pod_uid, {})[claim.uid] = claim

    def forget(self, uid: str) -> None:
        found = self._pods.pop(uid, None)
        if found is not None:
            claims = self._claims[found[0]]
            del claims[uid]
            if not claims:
                del self._claims[found[0]]

    def of(self, pod_uid: str) -> tuple[Object, ...]:
        return tuple(self._claims.get(pod_uid, {}).values())

    def doubtful(self, pod_uid: str, now_s: float) -> tuple[Object, ...]:
        return tuple(one for one in self.of(pod_uid) if self._pods[one.uid][1] < now_s - DOUBTFUL_S)

    def _forget_before(self, then_s: float) -> None:
        while self._pods:
            uid, (_, since_s) = next(iter(self._pods.items()))
            if since_s >= then_s:
                break
            self.forget(uid)


class Unanswered:
    """Names of claims that were to be created, where nobody knows whether they were."""

    def __init__(self) -> None:
        self._names: OrderedDict[tuple[str, str], str] = OrderedDict()  # by pod uid and entry

    def add(self, pod_uid: str, entry: str, name: str) -> None:
        self._names[pod_uid, entry] = name
        while len(self._names) > UNANSWERED_MAX:
            self._names.popitem(last=False)

    def take(self, pod_uid: str, entry: str) -> str | None:
        """The name to try again, so that a claim that was made after all is found and not made twice."""
        return self._names.pop((pod_uid, entry), None)


class HalfDone:
    """Claims that look as if somebody were about to do the next write, and since when each looks so. Whoever
    does it writes the claim: one that has not changed for long was left like that."""

    def __init__(self) -> None:
        self._since_s: OrderedDict[tuple[str, str], float] = OrderedDict()  # by uid and version

    def for_s(self, claim: Object, now_s: float) -> float:
        """How long it is known to be as it is."""
        since_s = self._since_s.setdefault((claim.uid, claim.resource_version), now_s)
        while len(self._since_s) > HALF_DONE_MAX:
            self._since_s.popitem(last=False)
        return now_s - since_s
