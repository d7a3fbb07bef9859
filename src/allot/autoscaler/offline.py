"""`allot plan`: which nodes to add to a cluster that was read, for pods that wait and pods to come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from allot.planning import Apply, Cluster, future, manifests
from allot.scheduler import SLICES, Cycle, Plugin, PodInfo, Simulation

from .classic import NOBODY, Asked, enlarged, needs_drivers, place_classic
from .groups import Configuration, GroupEntry, Offer
from .packing import grow, importance
from .providers import Survey
from .surveying import regrouped
from .templates import groups_of


@dataclass(frozen=True, slots=True)
class Plan:
    nodes: Mapping[str, tuple[tuple[str, ...], ...]]  # the pods of each node to add, by group
    price: float
    placed: Mapping[str, str]  # pods that need no new node, by name
    helpless: Mapping[str, str]  # pods that no node would help, and why
    refused: Mapping[str, str] = field(default_factory=dict)  # what would not be admitted, and why

    def as_json(self) -> dict[str, Any]:
        return {
            "add": {group: [list(pods) for pods in nodes] for group, nodes in self.nodes.items()},
            "price": self.price,
            "placed": dict(self.placed),
            "helpless": dict(self.helpless),
            "refused": dict(self.refused),
        }

    def text(self) -> str:
        lines = []
        for group, nodes in self.nodes.items():
            lines.append(f"add {len(nodes)} of {group}")
            lines += [f"    for {_few(pods)}" for pods in nodes]
        if self.nodes:
            lines.append(f"for {self.price:g} in all")
        lines += [f"{pod} fits on {node} as things are" for pod, node in self.placed.items()]
        lines += [f"{pod} would not be helped: {why}" for pod, why in self.helpless.items()]
        lines += [f"{what} would be refused: {why}" for what, why in self.refused.items()]
        return "\n".join(lines or ["no pod waits"])


async def plan(
    cluster: Cluster,
    more: Sequence[manifests.Manifest],
    configuration: Configuration,
    plugins: Sequence[Plugin],
    now: datetime,
    survey: Survey | None = None,
    extenders: Mapping[str, Asked] = NOBODY,
) -> Plan:
    """With a survey, of the groups that a provider named. Drivers of classic claims are asked about pods that
    wait: of those to come they know no claims. Raises BadChange."""
    to_come = future.made(cluster, [Apply(tuple(more))] if more else [])
    snapshot = to_come.reading.snapshot
    nodes = cluster.nodes
    slices = list(cluster.objects.get(SLICES, {}).values())
    entries: Sequence[GroupEntry] = configuration.groups
    offers: Mapping[str, Offer] = {}
    if survey is not None:
        nodes, offers = regrouped(nodes, survey), {one.entry.name: one for one in survey.offers}
        entries = [one.entry for one in survey.offers]
    groups = groups_of(entries, nodes, slices, snapshot, offers=offers)
    cycle = Cycle(plugins)
    pods = {pod.uid: pod for pod in (*cluster.waiting, *to_come.coming)}

    def hosts(pod: PodInfo) -> Sequence[str]:
        return cycle.fitting(pod, now, snapshot)

    simulation = Simulation(snapshot, plugins, now)
    asking = [pod for pod in cluster.waiting if needs_drivers(pod, snapshot)] if extenders else []
    classic = await place_classic(simulation, sorted(asking, key=importance), groups, nodes, extenders, hosts)
    served = {*classic.placed, *classic.helpless, *(p.uid for n in classic.nodes.values() for p in n.pods)}
    left = [pod for uid, pod in pods.items() if uid not in served]
    growth = grow(simulation, left, enlarged(groups, classic), hosts, [*classic.nodes])
    placed = {**classic.placed, **growth.placed}
    helpless = {**growth.blocked, **classic.helpless, **growth.helpless}
    added: dict[str, list[tuple[str, ...]]] = {}
    for node in (*classic.nodes.values(), *growth.nodes):
        guests = (pods[uid] for uid, name in growth.placed.items() if name == node.name)
        added.setdefault(node.group, []).append(tuple(str(pod.key) for pod in (*node.pods, *guests)))
    prices = {group.name: group.price for group in groups}
    return Plan(
        {group: tuple(found) for group, found in added.items()},
        sum(prices[group] * len(found) for group, found in added.items()),
        {str(pods[uid].key): node for uid, node in placed.items() if node not in classic.nodes},
        {str(pods[uid].key): why for uid, why in helpless.items()},
        to_come.refused,
    )


def _few(pods: Sequence[str]) -> str:
    shown = ", ".join(pods[:4])
    return f"{shown} and {len(pods) - 4} more" if len(pods) > 4 else shown
