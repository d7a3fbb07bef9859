"""Which groups there are and which nodes are in them: what the file and labels say, or a provider that knows.

Where a provider knows, its word counts and not a label's: nodes are seen as if they had the label of the
group that it names, and get it. While it does not answer, groups are what they last were and none of them
changes.

A provider counts the nodes that it is still making. What it is making and nobody remembers having asked for,
because the autoscaler was begun anew, is coming all the same, until patience is over.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from allot.api import Object, encode

from .deciding import View
from .groups import LABEL, Broken, Group, GroupEntry, Offer
from .memory import Late, Memory
from .providers import Cloud, ProviderFailed, Survey
from .templates import group_of

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Surveying:
    entries: dict[str, GroupEntry]  # by name
    cloud: Cloud | None = None
    offers: dict[str, Offer] = field(default_factory=dict)
    away: str = ""  # what is wrong with the provider
    _last: Survey = field(default_factory=Survey)
    _given_up: Counter[str] = field(default_factory=Counter)  # nodes that it still speaks of, by group
    _broken: set[str] = field(default_factory=set)  # machines that were dealt with

    async def look(self, view: View) -> View:
        """The view, with nodes in the groups that they are in."""
        if self.cloud is None:
            return view
        try:
            self._last, self.away = await self.cloud.survey(view.nodes), ""
        except ProviderFailed as failed:
            if str(failed) != self.away:
                log.warning("the provider does not answer: %s", failed)
            self.away = str(failed)
        why = f"the provider does not answer: {self.away}" if self.away else ""
        self.offers = {one.entry.name: replace(one, closed=why or one.closed) for one in self._last.offers}
        self.entries = {name: one.entry for name, one in self.offers.items()}
        return replace(view, nodes=regrouped(view.nodes, self._last))

    def mislabelled(self, nodes: Mapping[str, Object]) -> dict[str, str]:
        """Nodes whose label is to be another one, or none."""
        if self.cloud is None or self.away:
            return {}
        return mislabelled(nodes, self._last)

    def expect(self, groups: Iterable[Group], memory: Memory, now_s: float) -> None:
        """What the provider is making is coming, whoever asked for it."""
        for group in groups:
            offer = self.offers.get(group.name)
            if offer is None or group.template is None or self.away:
                continue
            making = min(offer.target, group.most) - group.size - memory.coming(group.name)
            self._given_up[group.name] = min(self._given_up[group.name], max(0, making))
            unknown = making - self._given_up[group.name]
            if unknown > 0:
                log.info("%d nodes of group %s are being made already", unknown, group.name)
                memory.order(group, unknown, now_s)

    def newly_broken(self) -> list[tuple[GroupEntry, Broken]]:
        """Machines that will be no nodes, each told once."""
        if self.away:
            return []
        found = [(offer.entry, one) for offer in self.offers.values() for one in offer.broken]
        told = [(entry, one) for entry, one in found if one.instance not in self._broken]
        self._broken = {one.instance for _, one in found}
        return told

    async def discard(self, entry: GroupEntry, one: Broken) -> None:
        self._given_up[entry.name] += 1
        if self.cloud is not None:
            try:
                await self.cloud.discard(entry, one.instance)
            except ProviderFailed as failed:
                log.warning("machine %s of group %s stays: %s", one.instance, entry.name, failed)

    async def forgo(self, late: Sequence[Late]) -> None:
        """Nodes that have not come are not waited for by the provider either."""
        if self.cloud is None:
            return
        for name, count in Counter(one.group for one in late if one.node is None).items():
            self._given_up[name] += count
            entry = self.entries.get(name)
            if entry is None:
                continue
            try:
                await self.cloud.forgo(entry, count)
            except ProviderFailed as failed:
                log.warning("group %s keeps waiting for %d nodes: %s", name, count, failed)


def regrouped(nodes: Mapping[str, Object], survey: Survey) -> dict[str, Object]:
    """The nodes as their provider sees them."""
    wrong = mislabelled(nodes, survey)
    return {**nodes, **{name: labelled(nodes[name], group) for name, group in wrong.items()}}


def mislabelled(nodes: Mapping[str, Object], survey: Survey) -> dict[str, str]:
    said = {name: survey.members.get(name, "") for name in nodes}
    return {name: group for name, group in said.items() if group_of(nodes[name]) != group}


def labelled(node: Object, group: str) -> Object:
    """The node as its provider sees it."""
    labels = {**(node.metadata.labels or {})}
    labels.pop(LABEL, None)
    if group:
        labels[LABEL] = group
    fields = node.fresh()
    fields["metadata"] = {**fields["metadata"], "labels": labels}
    return Object(encode(fields))
