"""How near the best node comes, for each name that compute resources are to serve."""

from ...framework import Sentence
from ...node import NodeInfo
from ...snapshot import Snapshot
from .asking import Ask, ComputeAsk


def tell(asked: ComputeAsk) -> Sentence:
    """Worked out when it is written."""
    wanted: dict[tuple[str, str], int] = {}
    for ask in asked.asks:
        key = (ask.name, ask.class_name)
        wanted[key] = wanted.get(key, 0) + ask.amount

    def words(snapshot: Snapshot) -> str:
        told = [
            _told(Ask(0, name, class_name, amount), snapshot) for (name, class_name), amount in wanted.items()
        ]
        return f"{'; '.join(told)}."

    return words


def _told(ask: Ask, snapshot: Snapshot) -> str:
    best = total = nodes = 0
    for node in snapshot.nodes():
        if node.compute and (found := _matching(ask, node, snapshot)):
            nodes += 1
            total += sum(count for count, _ in found)
            best = max(best, sum(max(0, count - used) for count, used in found))
    if not nodes:
        return f"no node has compute resources of {ask.name}"
    where = "1 node" if nodes == 1 else f"{nodes} nodes"
    known = snapshot.compute.classes.get(ask.class_name)
    of = "; of devices for its groups " if known is not None and known.spec.members else ", "
    return f"{ask.name}: {ask.amount} wanted{of}at most {best} free on a node, of {total} on {where}"


def _matching(ask: Ask, node: NodeInfo, snapshot: Snapshot) -> list[tuple[int, int]]:
    """Devices there are and that are used, of each compute resource that the name stands for."""
    return [
        (one.count, node.used.get(one.held_as, 0))
        for one in node.compute
        if (snapshot.compute.serves(ask.class_name, (one,)) if ask.class_name else one.raw == ask.name)
    ]
