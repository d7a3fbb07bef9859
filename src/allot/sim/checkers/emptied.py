"""What an autoscaler takes away nobody needs.

Y2     A node is told to go only while its pods would all find a place elsewhere, and removed when they have
       gone. Of a pod that nobody makes anew there is no other place.
IDLE1  Once things are quiet no node of a group is left that nobody needed for longer than the settings say.
"""

from collections.abc import Iterator, Sequence

from ..recording import Seen
from .groups import Groups, cpu_of, group_of, is_daemon, is_waiting, marked
from .reading import allocation, controller, name_of, node_of, reserved

BINDING_S = 1.0
"""A pod may come in the very moment at which a node goes."""
SLACK_S = 150.0
"""For whoever leads to notice, mark, and have it removed."""


class Emptied:
    follows = Groups.follows

    def __init__(self, behind_s: Sequence[float] = ()) -> None:
        self._groups = Groups(behind_s)
        self._used_s: dict[str, float] = {}  # when a pod was last on a node, by name
        self._grown_s = float("-inf")

    def see(self, seen: Seen) -> Iterator[str]:
        if seen.resource == "provider":
            if seen.type == "REMOVE":
                yield from self._removed(seen)
            elif seen.type in ("BEGUN", "RESIZE", "TERM"):
                self._grown_s = seen.at_s
        before = self._groups.see(seen)
        if seen.resource == "pods":
            for name in {node_of(seen.fields), node_of(before or {})} - {""}:
                if not is_daemon(seen.fields):
                    self._used_s[name] = seen.at_s
            if is_waiting(seen.fields) and not is_daemon(seen.fields):
                self._grown_s = max(self._grown_s, seen.at_s)
        if seen.resource == "nodes":
            if seen.type == "ADDED":
                self._used_s[seen.object.name] = seen.at_s
            if before is not None and marked(seen.fields) and not marked(before):
                yield from self._told_to_go(seen)

    def _removed(self, seen: Seen) -> Iterator[str]:
        node = seen.fields["node"]
        for pod in self._groups.on(node):
            if seen.at_s - self._groups.bound_s.get(pod["metadata"]["uid"], 0.0) > BINDING_S:
                yield f"Y2: node {node} was removed with pod {name_of(pod)} on it"

    def _told_to_go(self, seen: Seen) -> Iterator[str]:
        groups, name = self._groups, seen.object.name
        since_s = seen.at_s - groups.lag_s(seen.at_s)
        there = [pod for pod in groups.on(name) if groups.bound_s[pod["metadata"]["uid"]] < since_s]
        for pod in there:
            if not controller(pod):
                yield f"Y2: node {name} is to go, and nobody makes pod {name_of(pod)} anew"
        others = [one for other, one in groups.members.items() if other != name]
        others += [one for gone_s, one in groups.gone if gone_s >= since_s]  # it was decided before that
        rooms = [one.most_room(since_s) for one in others]
        movers = [pod for pod in there if controller(pod) and groups.need(pod, seen.at_s) is not None]
        for pod in movers:
            if cpu_of(pod) > max(rooms, default=0):
                yield f"Y2: node {name} is to go, and pod {name_of(pod)} fits on no other"
        if sum(map(cpu_of, movers)) > sum(rooms):
            yield f"Y2: node {name} is to go, and its {len(movers)} pods do not fit on all others together"

    def rest(self) -> Iterator[str]:
        groups = self._groups
        if groups.still_s is None:
            return
        sizes: dict[str, int] = {}
        for node in groups.now.all("nodes"):
            sizes[group_of(node)] = sizes.get(group_of(node), 0) + 1
        for node in groups.now.all("nodes"):
            name, group = name_of(node), group_of(node)
            if not group or [*groups.on(name)] or sizes[group] <= groups.kinds[group]["least"]:
                continue
            since_s = groups.still_s - max(self._used_s[name], self._grown_s)
            patience_s = groups.settings["unneeded_s"] + groups.settings["after_growth_s"] + SLACK_S
            if since_s > patience_s and not self._keeps(name):
                yield f"IDLE1: nobody has needed node {name} for {since_s:.0f} s, and it is there"

    def _keeps(self, node: str) -> bool:
        """A claim that stays allocated there, whoever uses it."""
        for claim in self._groups.now.all("resourceclaims"):
            terms = ((allocation(claim) or {}).get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
            named = [
                one for term in terms for field in term.get("matchFields") or () for one in field["values"]
            ]
            if node in named and not reserved(claim):
                return True
        return False
