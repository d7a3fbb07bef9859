"""Why the devices of so many nodes do not do, in a sentence: for conditions and events.

Counts over nodes and devices, from the allocator's own explanation of each node, and no
names of holders: other namespaces' claims are nobody's business here. The whole tree, with
what would help, is what `allot explain` recomputes with the rights of whoever asks.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from allot.allocation import Attempt, NoFit, Undecided, explain

from ...extended import Lacking
from ...framework import CycleState
from ...node import NodeInfo
from ...snapshot import Snapshot
from .checking import NAME, DeviceCheck

NODES_MAX = 32
REQUESTS_MAX = 3


def attempts(
    state: CycleState, snapshot: Snapshot, nodes: Iterable[NodeInfo]
) -> Iterator[tuple[Attempt, NoFit | Undecided]]:
    """The nodes that were asked for devices in vain, each with all that the answer depends on."""
    check: DeviceCheck | None = state.made.get(NAME)
    if check is None:
        return
    for node in nodes:
        delegation = check.asked.delegation(node)
        claims = () if isinstance(delegation, Lacking) else check.asked.claims(delegation)
        if isinstance(delegation, Lacking) or not isinstance(claims, tuple) or not claims:
            continue
        answer = check.answer(node, delegation)
        if isinstance(answer, NoFit | Undecided):
            yield Attempt(node.place, snapshot.inventory, snapshot.ledger, claims, snapshot.classes), answer


def told(state: CycleState, snapshot: Snapshot, nodes: Iterable[NodeInfo]) -> str:
    """Empty where devices are not the trouble."""
    found: dict[str, Counter[str]] = {}
    wanted: dict[str, str] = {}
    looked_at = 0
    for attempt, answer in islice(attempts(state, snapshot, nodes), NODES_MAX):
        looked_at += 1
        for report in explain(attempt, answer, suggest=False).requests:
            counts = found.setdefault(report.request, Counter())
            wanted[report.request] = "all" if report.wanted is None else str(report.wanted)
            for group in report.groups:
                counts[group.reason.value] += group.devices
    if not found:
        return ""
    parts = [
        f"request {request} wants {wanted[request]}, and of {_devices(sum(counts.values()))} "
        f"{', '.join(f'{count} {why}' for why, count in counts.most_common()) or 'none is offered'}"
        for request, counts in islice(found.items(), REQUESTS_MAX)
    ]
    more = [f"and {len(found) - REQUESTS_MAX} more requests"] if len(found) > REQUESTS_MAX else []
    where = f"on the {looked_at} nodes looked at" if looked_at > 1 else "on the node looked at"
    return f"Devices {where}: {'; '.join([*parts, *more])}."


def _devices(count: int) -> str:
    return f"{count} device{'' if count == 1 else 's'}"
