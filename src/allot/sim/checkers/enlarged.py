"""What an autoscaler asks for is needed.

Y1     Every node that is asked for takes a pod: one that waits, and for which there is no room on the nodes
       that are there or coming.
Y3     With unchanged demand a group is not enlarged after it was reduced, nor reduced soon after something
       was added.
PACK1: no group grows beyond its bound.
"""

from collections.abc import Iterator, Sequence

from ..recording import Seen
from .groups import BEHIND_S, Groups, is_helped_by_none, marked
from .reading import Fields, controller, name_of, node_of

UNCHANGED_S = 300.0
"""How long after a reduction whoever was moved must not be a reason to grow."""


class Enlarged:
    follows = (*Groups.follows, "replicasets")

    def __init__(self, behind_s: Sequence[float] = ()) -> None:
        self._groups = Groups(behind_s)
        self._grown_s = float("-inf")
        self._reduced_s: dict[str, float] = {}  # by group
        self._moved: dict[str, float] = {}  # controllers whose pods had to move, since when
        self._changed_s = float("-inf")  # demand, or what there is

    def see(self, seen: Seen) -> Iterator[str]:
        if seen.resource == "replicasets":
            self._changed_s = seen.at_s
            return
        if seen.resource == "provider":
            if seen.type == "RESIZE":
                yield from self._judge(seen)
            elif seen.type == "REMOVE":
                self._reduced_s[seen.object.name] = seen.at_s
            elif seen.type == "VANISHED":
                self._changed_s = seen.at_s
        before = self._groups.see(seen)
        if seen.resource == "pods":
            self._note_pod(seen, before)
        if seen.resource == "nodes" and seen.type == "MODIFIED":
            yield from self._marked(seen, before)

    def _note_pod(self, seen: Seen, before: Fields | None) -> None:
        owner = controller(seen.fields)
        if seen.type == "ADDED" and seen.at_s - self._moved.get(owner, float("-inf")) > UNCHANGED_S:
            self._changed_s = seen.at_s
        if seen.type == "DELETED" and owner:
            node = self._groups.now.named("nodes", node_of(before or seen.fields))
            if node is not None and marked(node):
                self._moved[owner] = seen.at_s

    def _judge(self, seen: Seen) -> Iterator[str]:
        groups, now_s, group = self._groups, seen.at_s, seen.object.name
        wanted, had, kind = seen.fields["wanted"], seen.fields["had"], groups.kinds[group]
        if wanted > kind["most"]:
            yield f"PACK1: {wanted} nodes of group {group} were asked for, which has {kind['most']} at most"
        extra = min(wanted, kind["most"]) - had
        if extra <= 0 or wanted <= kind["least"]:
            return
        self._grown_s = now_s
        waiting = [*groups.waiting(now_s - groups.lag_s(now_s))]
        reasons = [pod for pod in waiting if not is_helped_by_none(pod)]
        needed = self._left(reasons, now_s)
        if extra > needed:
            names = ", ".join(sorted(map(name_of, reasons))) or "nobody"
            yield (f"Y1: {extra} more of group {group} were asked for, and {needed} would do: {names} waited")
        yield from self._again(group, reasons, now_s)

    def _left(self, pods: list[Fields], now_s: float) -> int:
        """How many find no room on what is there or coming; pods of which little is known find none."""
        groups, lag_s = self._groups, self._groups.lag_s(now_s)
        rooms = [
            [one.least_room(now_s - lag_s), 0]
            for one in groups.members.values()
            if one.complete_s is not None
        ]
        for _, one in groups.coming(now_s):
            kind = groups.kinds[one.group]
            rooms.append([kind["cpu"], kind["devices"]])
        left = 0
        needs = [groups.need(pod, now_s) for pod in pods]
        for need in sorted(
            (one for one in needs if one is not None), key=lambda one: (-one.cpu, -one.devices)
        ):
            room = next((one for one in rooms if one[0] >= need.cpu and one[1] >= need.devices), None)
            if room is None:
                left += 1
            else:
                room[0] -= need.cpu
                room[1] -= need.devices
        return left + sum(one is None for one in needs)

    def _again(self, group: str, reasons: list[Fields], now_s: float) -> Iterator[str]:
        reduced_s = self._reduced_s.get(group, float("-inf"))
        if now_s - reduced_s > UNCHANGED_S or self._changed_s > reduced_s - BEHIND_S or not reasons:
            return
        if all(controller(pod) in self._moved for pod in reasons):
            yield f"Y3: group {group} grows for pods that had to move {now_s - reduced_s:.0f} s ago"

    def _marked(self, seen: Seen, before: Fields | None) -> Iterator[str]:
        if before is None or marked(before) or not marked(seen.fields):
            return
        since_s = seen.at_s - self._grown_s
        is_soon = since_s < self._groups.settings["after_growth_s"] - 5
        if is_soon and self._groups.lag_s(seen.at_s) < BEHIND_S:
            yield f"Y3: node {seen.object.name} is to go {since_s:.0f} s after a group was enlarged"

    def rest(self) -> Iterator[str]:
        yield from ()
