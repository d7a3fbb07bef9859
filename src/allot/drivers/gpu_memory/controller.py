"""The half in the control plane: cuts cards, as nodes publish them.

The handle says which card, how much, and what the administrator wants to have run first; so the node
needs neither parameters nor class. What is taken follows from the claims' handles and is kept nowhere else:
a claim that was deleted by force is not among them when the driver begins anew.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from allot.api import Object
from allot.driver import controller as kit

from .cards import Card, Cards, Share
from .parameters import INIT, NODE_GPUS, REQUIREMENTS, Asked, asked, cards, size

NAME: Final = "gpu.example.com"
COUNT_LABEL: Final = f"{NAME}/cards"
MEMORY_LABEL: Final = f"{NAME}/memory"
SEGMENT_LABEL: Final = f"{NAME}/segment"
"""What a node of a kind that does not exist yet would have."""


class Handle(msgspec.Struct, frozen=True, omit_defaults=True):
    node: str
    card: str = ""
    memory: int = 0  # bytes; none where it was optional
    init: tuple[str, ...] = ()


class GpuMemory:
    def __init__(self) -> None:
        self._cards = Cards()

    @property
    def controller(self) -> kit.Controller:
        return kit.Controller(
            NAME,
            self.allocate,
            self.deallocate,
            self.unsuitable_nodes,
            self.begin,
            {NODE_GPUS: self.follow},
            snapshot=lambda: Imagined(self._cards.copy()),
            node_ready=self._cards.__contains__,
            class_kinds=frozenset((INIT,)),
            claim_kinds=frozenset((REQUIREMENTS,)),
        )

    def begin(self, claims: Sequence[kit.Claim]) -> None:
        for uid in list(self._cards.shares):
            self._cards.release(uid)
        for claim in claims:
            if claim.handle:
                handle = msgspec.json.decode(claim.handle, type=Handle)
                self._cards.hold(claim.uid, Share(handle.node, handle.card, handle.memory))

    def follow(self, objects: Sequence[Object]) -> None:
        self._cards.put(cards(objects))

    def allocate(self, asks: Sequence[kit.Ask], node: str | None) -> kit.Answers:
        return allocate(self._cards, asked(asks), node)

    def deallocate(self, claim: kit.Claim) -> None:
        self._cards.release(claim.uid)

    def unsuitable_nodes(self, asks: Sequence[kit.Ask], nodes: Sequence[str]) -> kit.Unsuitable:
        return unsuitable(self._cards, asked(asks), nodes)


class Imagined:
    """For autoscalers: a copy of who has what, and nodes that have what their labels say."""

    def __init__(self, copied: Cards) -> None:
        self._cards = copied

    def unsuitable_nodes(self, asks: Sequence[kit.Ask], nodes: Sequence[Any]) -> kit.Unsuitable:
        for node in nodes:
            self._imagine(node.name, node.labels)
        return unsuitable(self._cards, asked(asks), [node.name for node in nodes])

    def allocate(self, asks: Sequence[kit.Ask], node: Any) -> kit.Answers:
        self._imagine(node.name, node.labels)
        return allocate(self._cards, asked(asks), node.name)

    def _imagine(self, name: str, labels: Mapping[str, str]) -> None:
        count = labels.get(COUNT_LABEL, "")
        if name in self._cards or not count.isdecimal():
            return
        try:
            memory = size(labels.get(MEMORY_LABEL, ""), MEMORY_LABEL)
            segment = size(labels.get(SEGMENT_LABEL, "1"), SEGMENT_LABEL)
        except kit.NotUsable:
            return
        self._cards.add([Card(name, f"gpu-{at}", memory, segment) for at in range(min(int(count), 64))])


def allocate(of: Cards, wanted: Sequence[Asked], node: str | None) -> kit.Answers:
    if node is None:
        why = kit.Refused("memory is cut where a pod will be: use WaitForFirstConsumer")
        return {one.uid: why for one in wanted}
    shares = of.take([one.want for one in wanted], node)
    if shares is None:
        return {one.uid: kit.Refused(f"no card of {node} has so much memory free") for one in wanted}
    return {
        one.uid: kit.Allocation(_handle(shares[one.uid], one), kit.on_nodes(node), one.shareable)
        for one in wanted
    }


def unsuitable(of: Cards, wanted: Sequence[Asked], nodes: Sequence[str]) -> kit.Unsuitable:
    """Where all is optional, nodes without are as good as any once no node has it."""
    wants = [one.want for one in wanted]
    needed = [want for want in wants if not want.optional]
    best = [node for node in nodes if of.fits(wants, node)]
    if not best:
        best = [node for node in nodes if of.fits(needed, node)] if len(needed) < len(wants) else []
    bad = [node for node in nodes if node not in best]
    return {want.uid: bad for want in wants}


def _handle(share: Share, one: Asked) -> str:
    return msgspec.json.encode(Handle(share.node, share.card, share.memory, one.init_command)).decode()
