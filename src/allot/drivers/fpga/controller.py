"""The half in the control plane: a card for each claim, for a chosen node or for any."""

from collections.abc import Sequence
from typing import Final

import msgspec

from allot.api import Object
from allot.driver import controller as kit

from .pipeline import GROUP, INVENTORY, PIPELINE, Card, Pipeline, cards, pipeline

NAME: Final = GROUP


class Handle(msgspec.Struct, frozen=True):
    node: str
    card: str
    pipeline: Pipeline


class Fpga:
    def __init__(self) -> None:
        self._cards: tuple[Card, ...] = ()
        self._held: dict[str, Handle] = {}  # by claim

    @property
    def controller(self) -> kit.Controller:
        return kit.Controller(
            NAME,
            self.allocate,
            self.deallocate,
            self.unsuitable_nodes,
            self.begin,
            {INVENTORY: self.follow},
            class_kinds=frozenset(),
            claim_kinds=frozenset((PIPELINE,)),
        )

    def begin(self, claims: Sequence[kit.Claim]) -> None:
        self._held = {
            claim.uid: msgspec.json.decode(claim.handle, type=Handle) for claim in claims if claim.handle
        }

    def follow(self, objects: Sequence[Object]) -> None:
        self._cards = tuple(sorted(cards(objects)))

    def allocate(self, asks: Sequence[kit.Ask], node: str | None) -> kit.Answers:
        found: dict[str, kit.Allocation | kit.Refused] = {}
        for ask in asks:
            uid, wanted = ask.claim.uid, pipeline(ask)
            had = self._held.get(uid)
            if had is None:
                card = next(iter(self._free(wanted, node)), None)
                if card is None:
                    found[uid] = kit.Refused(self._why_not(wanted, node))
                    continue
                had = self._held[uid] = Handle(card.node, card.name, wanted)
            found[uid] = kit.Allocation(msgspec.json.encode(had).decode(), kit.on_nodes(had.node))
        return found

    def deallocate(self, claim: kit.Claim) -> None:
        self._held.pop(claim.uid, None)

    def unsuitable_nodes(self, asks: Sequence[kit.Ask], nodes: Sequence[str]) -> kit.Unsuitable:
        wanted = [pipeline(ask) for ask in asks]
        bad = [node for node in nodes if not self._has_all(wanted, node)]
        return {ask.claim.uid: bad for ask in asks}

    def _has_all(self, wanted: Sequence[Pipeline], node: str) -> bool:
        """A card for each, the one with fewest functions first."""
        free = sorted(
            (card for card in self._cards if card.node == node and not self._is_held(card)),
            key=lambda card: (card.has_signal_processor, card.network_interfaces),
        )
        for one in sorted(wanted, key=lambda one: (one.signal_processor is None, -one.network_interfaces)):
            card = next((card for card in free if not card.lacks(one)), None)
            if card is None:
                return False
            free.remove(card)
        return True

    def _free(self, wanted: Pipeline, node: str | None) -> list[Card]:
        return [
            card
            for card in self._cards
            if node in (None, card.node) and not card.lacks(wanted) and not self._is_held(card)
        ]

    def _is_held(self, card: Card) -> bool:
        return any((one.node, one.card) == (card.node, card.name) for one in self._held.values())

    def _why_not(self, wanted: Pipeline, node: str | None) -> str:
        there = [card for card in self._cards if node in (None, card.node)]
        lacking = sorted({f"{card.name}: {lacks}" for card in there if (lacks := card.lacks(wanted))})
        return "; ".join(lacking) or ("all cards are in use" if there else "there is no card")
