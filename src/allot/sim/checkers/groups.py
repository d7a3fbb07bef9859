"""What checkers of an autoscaler read: the API, what the provider of nodes was asked for, and what was said.

An autoscaler sees the world a little later than it is, and much later after some faults. So it is judged by
all that was so at some moment of the time before (`Groups.lag_s`): it may decide by any of these moments.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..recording import Seen
from .live import LiveObjects
from .reading import (
    Fields,
    asks_for_cards,
    asks_for_extended,
    is_finished,
    is_leaving,
    node_of,
    owners,
)

GROUP = "autoscaler.allot.dev/group"
LEAVING = "autoscaler.allot.dev/leaving"
POOL = "sim.allot.dev/pool"
DRIVER, PLAIN = "gpu.example.com", "one-gpu"
LAG_S, BEHIND_S = 60.0, 420.0
"""How old what an autoscaler sees may be: on most days, and after faults that make it late."""


@dataclass(slots=True)
class Member:
    """A node of a group, from the moment at which the provider begins it."""

    group: str
    begun_s: float
    is_expected: bool  # by whoever asked for it
    came_s: float | None = None
    complete_s: float | None = None
    rooms: list[tuple[float, int]] = field(default_factory=list)  # processors that are free, since when

    def least_room(self, since_s: float) -> int:
        return min(self._rooms(since_s), default=0)

    def most_room(self, since_s: float) -> int:
        return max(self._rooms(since_s), default=0)

    def _rooms(self, since_s: float) -> list[int]:
        later = [room for at_s, room in self.rooms if at_s >= since_s]
        before = [room for at_s, room in self.rooms if at_s < since_s]
        return [*(before[-1:] if before else [0]), *later]


@dataclass(frozen=True, slots=True)
class Need:
    """What a pod needs of a node of a group."""

    cpu: int
    devices: int


class Groups:
    follows = ("provider", "pods", "nodes", "resourceslices", "resourceclaims", "devicetaintrules", "events")

    def __init__(self, behind_s: Sequence[float] = ()) -> None:
        """At `behind_s` something struck that makes an autoscaler see late."""
        self.now = LiveObjects(*self.follows[1:])
        self._behind_s = behind_s
        self.kinds: dict[str, Fields] = {}
        self.settings: Fields = {}
        self.members: dict[str, Member] = {}  # by name
        self.gone: list[tuple[float, Member]] = []  # those that went lately, and when
        self.still_s: float | None = None
        self.waited: list[tuple[float, Fields]] = []  # pods that wait no more, since when
        self.bound_s: dict[str, float] = {}  # by uid of pods
        self.tainted_s = float("-inf")

    def lag_s(self, now_s: float) -> float:
        is_behind = any(now_s - BEHIND_S <= at_s <= now_s for at_s in self._behind_s)
        return BEHIND_S if is_behind else LAG_S

    # -- listening ------------------------------------------------------------------------------

    def see(self, seen: Seen) -> Fields | None:
        """Returns what the object was before."""
        if seen.resource == "provider":
            self._asked(seen)
            return None
        before = self.now.see(seen)
        match seen.resource:
            case "pods":
                self._pod(seen, before)
            case "nodes":
                self._node(seen)
            case "resourceslices":
                self._published(seen)
            case "devicetaintrules":
                self.tainted_s = seen.at_s
        return before

    def _asked(self, seen: Seen) -> None:
        name, of = seen.object.name, seen.fields
        match seen.type:
            case "GROUP":
                self.kinds[name] = of
            case "CORRECTED":
                self.kinds[name] = {**self.kinds[name], "devices": of["devices"]}
            case "SETTINGS":
                self.settings = of
            case "TERM":
                for one in self.members.values():
                    one.is_expected = False
            case "BEGUN":
                self.members[of["node"]] = Member(name, seen.at_s, of["is_expected"])
            case "FAILED":
                for one in self.members.values():
                    if one.group == name and one.came_s is None and seen.at_s - one.begun_s < 5:
                        one.is_expected = False
            case "STILL":
                self.still_s = seen.at_s

    def _pod(self, seen: Seen, before: Fields | None) -> None:
        waits = seen.type != "DELETED" and is_waiting(seen.fields)
        if before is not None and is_waiting(before) and not waits:
            self.waited.append((seen.at_s, before))
        if node_of(seen.fields) and not node_of(before or {}):
            self.bound_s[seen.object.uid] = seen.at_s
        for name in {node_of(seen.fields), node_of(before or {})}:
            self._count(name, seen.at_s)

    def _node(self, seen: Seen) -> None:
        member = self.members.get(seen.object.name)
        if member is None:
            return
        if seen.type == "DELETED":
            if member.came_s is not None:  # else it is another of that name, on its way
                self.gone = [one for one in self.gone if seen.at_s - one[0] <= BEHIND_S]
                self.gone.append((seen.at_s, self.members.pop(seen.object.name)))
            return
        if member.came_s is None:
            member.came_s = seen.at_s
        self._published(seen)
        self._count(seen.object.name, seen.at_s)

    def _published(self, seen: Seen) -> None:
        for name, member in self.members.items():
            if member.came_s is not None and member.complete_s is None and not self.lacks(name):
                member.complete_s = seen.at_s
                self._count(name, seen.at_s)

    def _count(self, name: str, at_s: float) -> None:
        member = self.members.get(name)
        node = self.now.named("nodes", name) if member is not None else None
        if member is None or node is None:
            return
        is_open = not (node.get("spec") or {}).get("taints")
        taken = sum(cpu_of(pod) for pod in self.on(name))
        room = int(node["status"]["allocatable"]["cpu"]) - taken if is_open else 0
        if not member.rooms or member.rooms[-1][1] != room:
            member.rooms.append((at_s, room))

    # -- how things stand -----------------------------------------------------------------------

    def lacks(self, name: str) -> str:
        """What its group's template promises and the node has not published."""
        published = [one["spec"] for one in self.now.all("resourceslices")]
        own = [one for one in published if one["nodeName"] == name and one["driver"] == DRIVER]
        newest = max((one["pool"]["generation"] for one in own), default=0)
        current = [one for one in own if one["pool"]["generation"] == newest]
        has = sum(len(one.get("devices") or ()) for one in current)
        wanted = self.kinds[self.members[name].group]["devices"]
        return f"{has} of {wanted} devices" if has < wanted else ""

    def on(self, node: str) -> Iterator[Fields]:
        """Pods that are on a node and have not ended, but those that belong to it."""
        for pod in self.now.all("pods"):
            if node_of(pod) == node and not is_finished(pod) and not is_daemon(pod):
                yield pod

    def waiting(self, since_s: float) -> Iterator[Fields]:
        """Pods that wait, or waited at some moment since then."""
        self.waited = [(at_s, pod) for at_s, pod in self.waited if at_s >= since_s - BEHIND_S]
        now = [pod for pod in self.now.all("pods") if is_waiting(pod)]
        uids = {pod["metadata"]["uid"] for pod in now}
        yield from now
        for at_s, pod in self.waited:
            if at_s >= since_s and pod["metadata"]["uid"] not in uids:
                uids.add(pod["metadata"]["uid"])
                yield pod

    def coming(self, now_s: float) -> Iterator[tuple[str, Member]]:
        """Nodes that whoever leads must know to be coming: it asked for them, or they are there."""
        for name, one in self.members.items():
            since_s = one.begun_s if one.came_s is None else one.came_s
            is_known = one.is_expected or one.came_s is not None
            is_young = now_s - since_s < self.settings["arrival_s"] - LAG_S / 2
            if is_known and is_young and one.complete_s is None:
                yield name, one

    def need(self, pod: Fields, now_s: float) -> Need | None:
        """What a pod needs that fits on nodes of groups alone; None of others, and of those of which this
        cannot be told here."""
        if (pod["spec"].get("nodeSelector") or {}).get(POOL) is None:
            return None
        entries = pod["spec"].get("resourceClaims") or ()
        if any(one.get("resourceClaimTemplateName") != PLAIN for one in entries):
            return None
        if entries and ([*self.now.all("devicetaintrules")] or now_s - self.tainted_s < BEHIND_S):
            return None
        return Need(cpu_of(pod), len(entries))


def is_waiting(pod: Fields) -> bool:
    return not node_of(pod) and not is_finished(pod) and not is_leaving(pod)


def is_daemon(pod: Fields) -> bool:
    return any(one["kind"] == "DaemonSet" for one in owners(pod) if one.get("controller"))


def cpu_of(pod: Fields) -> int:
    asked = ((one.get("resources") or {}).get("requests") or {} for one in pod["spec"]["containers"])
    return sum(int(one.get("cpu", "0")) for one in asked)


def is_helped_by_none(pod: Fields) -> bool:
    """It is made for a node that is there, or it fits on any."""
    if pod["spec"].get("affinity"):
        return True
    asks = pod["spec"].get("resourceClaims") or pod["spec"].get("nodeSelector") or cpu_of(pod)
    return not asks and not asks_for_extended(pod) and not asks_for_cards(pod)


def marked(node: Fields) -> bool:
    return any(one["key"] == LEAVING for one in (node.get("spec") or {}).get("taints") or ())


def group_of(node: Fields) -> str:
    return str((node["metadata"].get("labels") or {}).get(GROUP, ""))
