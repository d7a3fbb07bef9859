"""What templates of groups promise, and whom an autoscaler helps.

Y4  A template that promised what a new node did not publish is reported, and not relied on again until it is
    corrected.
P2  Once things are quiet, no pod waits that a node of a group would take.
"""

import re
from collections.abc import Iterator, Sequence

from ..recording import Seen
from .groups import BEHIND_S, Groups, is_waiting
from .reading import Fields, allocation, claim_names, controller, is_leaving, name_of, place_of

ABOUT = re.compile(r"the template of group (\S+) promises")
SLACK_S = 150.0
"""For whoever leads to notice and to say so."""


class Promised:
    follows = Groups.follows

    def __init__(self, behind_s: Sequence[float] = ()) -> None:
        self._groups = Groups(behind_s)
        self._reported: dict[str, float] = {}  # groups, since when
        self._spoken_of: set[str] = set()  # nodes, by uid
        self._came_s: dict[str, float] = {}  # nodes that were asked for, by uid
        self._waits_s: dict[str, float] = {}  # pods, by uid, since when
        self._terms_s: list[float] = []

    def see(self, seen: Seen) -> Iterator[str]:
        if seen.resource == "provider":
            if seen.type == "RESIZE":
                yield from self._relied_on(seen)
            elif seen.type == "TERM":
                self._terms_s.append(seen.at_s)
            elif seen.type == "CORRECTED":
                self._reported.pop(seen.object.name, None)
        self._groups.see(seen)
        if seen.resource == "events" and seen.fields.get("reason") == "TemplateBroken":
            self._spoken_of.add(seen.fields["involvedObject"]["uid"])
            about = ABOUT.search(seen.fields.get("message") or "")
            if about is not None:
                self._reported.setdefault(about[1], seen.at_s)
        elif seen.resource == "nodes" and seen.type == "ADDED" and seen.object.name in self._groups.members:
            self._came_s[seen.object.uid] = seen.at_s
        elif seen.resource == "pods" and is_waiting(seen.fields):
            self._waits_s.setdefault(seen.object.uid, seen.at_s)

    def _relied_on(self, seen: Seen) -> Iterator[str]:
        group, kind = seen.object.name, self._groups.kinds[seen.object.name]
        since_s = seen.at_s - self._reported.get(group, seen.at_s)
        if seen.fields["wanted"] <= seen.fields["had"] or not kind["is_given"]:
            return
        if since_s > 0 and self._groups.lag_s(seen.at_s) < BEHIND_S:
            yield f"Y4: group {group} grows {since_s:.0f} s after its template was found to promise too much"

    def rest(self) -> Iterator[str]:
        groups = self._groups
        if groups.still_s is None:
            return
        for node in groups.now.all("nodes"):
            yield from self._told(node, groups.still_s)
        for pod in groups.now.all("pods"):
            group = self._helping(pod, groups.still_s) if is_waiting(pod) else ""
            if group:
                yield f"P2: pod {name_of(pod)} waits, and a node of group {group} would take it"

    def _told(self, node: Fields, still_s: float) -> Iterator[str]:
        """Who asked for a node, and leads until it should be complete, notices what it lacks. A later leader
        does not know by which template it was asked for."""
        uid, name, arrival_s = node["metadata"]["uid"], name_of(node), self._groups.settings["arrival_s"]
        member = self._groups.members.get(name)
        if member is None or uid not in self._came_s or not self._groups.kinds[member.group]["is_given"]:
            return
        came_s = self._came_s[uid]
        due_s = came_s + arrival_s + SLACK_S
        if any(member.begun_s < at_s < due_s for at_s in self._terms_s):
            return
        is_judged = member.complete_s is None and due_s < still_s and self._groups.lag_s(due_s) < BEHIND_S
        if is_judged and uid not in self._spoken_of:
            yield f"Y4: node {name} has published {self._groups.lacks(name)}, and nobody said so"

    def _helping(self, pod: Fields, still_s: float) -> str:
        groups, settings = self._groups, self._groups.settings
        need = groups.need(pod, still_s)
        patient_s = settings["arrival_s"] + settings["backoff_s"] + SLACK_S + groups.lag_s(still_s)
        if need is None or still_s - self._waits_s[pod["metadata"]["uid"]] < patient_s:
            return ""
        if not self._has_claims(pod):
            return ""
        for name, kind in groups.kinds.items():
            size = sum(one.group == name for one in groups.members.values())
            if name in self._reported or size >= kind["most"]:
                continue
            if need.cpu <= kind["cpu"] and need.devices <= kind["devices"]:
                return name
        return ""

    def _has_claims(self, pod: Fields) -> bool:
        """Its claims are there, its own, and not allocated."""
        namespace, _ = place_of(pod)
        for _, name in claim_names(pod):
            claim = self._groups.now.named("resourceclaims", name, namespace) if name else None
            if claim is None or is_leaving(claim) or controller(claim) != pod["metadata"]["uid"]:
                return False
            if allocation(claim) is not None:
                return False
        return True
