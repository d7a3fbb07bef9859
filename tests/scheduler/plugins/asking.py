"""Asks one plugin about one pod and one node, as the cycle does."""

from collections.abc import Iterable
from datetime import UTC, datetime

from allot.allocation import Features
from allot.scheduler.framework import CycleState, FilterPlugin, Rating, Rejection, ScorePlugin
from allot.scheduler.node import NodeInfo
from allot.scheduler.pod import PodInfo
from allot.scheduler.snapshot import Snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def state_of(pod: PodInfo) -> CycleState:
    return CycleState(pod, NOW)


def cluster(*nodes: NodeInfo) -> Snapshot:
    snapshot = Snapshot(Features())
    for node in nodes:
        snapshot.put_node(node)
    return snapshot


def rejection(
    plugin: FilterPlugin, pod: PodInfo, node: NodeInfo, snapshot: Snapshot | None = None
) -> Rejection | None:
    checks = plugin.pre_filter(state_of(pod), snapshot or cluster(node))
    return None if checks is None else checks.check(node)


def reason(
    plugin: FilterPlugin, pod: PodInfo, node: NodeInfo, snapshot: Snapshot | None = None
) -> str | None:
    found = rejection(plugin, pod, node, snapshot)
    return None if found is None else found.reason


def rating(plugin: ScorePlugin, pod: PodInfo, node: NodeInfo) -> Rating | None:
    rate = plugin.pre_score(state_of(pod), cluster(node))
    return None if rate is None else rate(node)


def best_first(plugin: ScorePlugin, pod: PodInfo, nodes: Iterable[NodeInfo]) -> list[str]:
    rate = plugin.pre_score(state_of(pod), cluster(*nodes))
    assert rate is not None
    return [node.name for node in sorted(nodes, key=lambda node: (rate(node), node.name))]
