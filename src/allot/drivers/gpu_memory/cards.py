"""Who has how much memory of which card. Pure, and cheap to copy.

CARDS1  What is taken of a card is at most what it has, in whole segments.
CARDS2  The same claim asks again: it gets the same again, and nothing more is taken.
CARDS3  Of the cards that have enough, the one with the least left is cut, so that large requests keep
            their chance.
CARDS4  What was allocated stays, also when the card is not published for a while.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class Card(NamedTuple):
    node: str
    name: str
    memory: int  # bytes
    segment: int = 1  # what it is cut in


class Want(NamedTuple):
    uid: str
    memory: int
    optional: bool = False


class Share(NamedTuple):
    """What a claim has of a card; nothing at all where it was optional."""

    node: str
    card: str = ""
    memory: int = 0


class Cards:
    def __init__(self, cards: Iterable[Card] = (), shares: Mapping[str, Share] | None = None) -> None:
        self._by_node: dict[str, tuple[Card, ...]] = {}
        self._shares = dict(shares or {})
        self._taken: Counter[tuple[str, str]] = Counter()
        for share in self._shares.values():
            self._taken[share.node, share.card] += share.memory
        self.put(cards)

    def copy(self) -> "Cards":
        return Cards((card for cards in self._by_node.values() for card in cards), self._shares)

    def put(self, cards: Iterable[Card]) -> None:
        """These and no others are there now (CARDS4)."""
        found: dict[str, list[Card]] = {}
        for card in cards:
            found.setdefault(card.node, []).append(card)
        self._by_node = {node: tuple(cards) for node, cards in found.items()}

    def add(self, cards: Sequence[Card]) -> None:
        """A node that was not there before."""
        for card in cards:
            self._by_node[card.node] = (*self._by_node.get(card.node, ()), card)

    def __contains__(self, node: str) -> bool:
        return node in self._by_node

    @property
    def shares(self) -> Mapping[str, Share]:
        return self._shares

    def free(self, card: Card) -> int:
        return card.memory - self._taken[card.node, card.name]

    def fits(self, wants: Sequence[Want], node: str) -> bool:
        """Whether the node has all of it, what is optional too."""
        return self._placed(wants, node) is not None

    def take(self, wants: Sequence[Want], node: str) -> Mapping[str, Share] | None:
        """What each gets on the node; None, and nothing is taken, where that is not enough for all."""
        placed = self._placed(wants, node)
        if placed is None:
            needed = [want for want in wants if not want.optional]
            placed = self._placed(needed, node)
            if placed is None:
                return None
            placed |= {want.uid: Share(node) for want in wants if want.optional}
        for uid, share in placed.items():
            self.hold(uid, share)
        return placed

    def hold(self, uid: str, share: Share) -> None:
        self.release(uid)
        self._shares[uid] = share
        self._taken[share.node, share.card] += share.memory

    def release(self, uid: str) -> None:
        share = self._shares.pop(uid, None)
        if share is not None:
            self._taken[share.node, share.card] -= share.memory

    def _placed(self, wants: Sequence[Want], node: str) -> dict[str, Share] | None:
        """Largest first, each on the card with the least left that has enough (CARDS3)."""
        found: dict[str, Share] = {}
        free = {card: self.free(card) for card in self._by_node.get(node, ())}
        for want in sorted(wants, key=lambda want: -want.memory):
            had = self._shares.get(want.uid)
            if had is not None and had.node == node:  # CARDS2
                found[want.uid] = had
                continue
            enough = [card for card, left in free.items() if rounded(want.memory, card.segment) <= left]
            if not enough:
                return None
            card = min(enough, key=lambda card: (free[card], card.name))
            size = rounded(want.memory, card.segment)
            free[card] -= size
            found[want.uid] = Share(node, card.name, size)
        return found


def rounded(memory: int, segment: int) -> int:
    return -(-memory // segment) * segment
