"""D7 on machines: who has which card.

D7  A card is in one container at a time, whatever its pod asked for by and whatever its plugin says of it
    meanwhile; and a container has as many cards as its record says.
"""

from collections.abc import Iterator

from ..recording import Seen
from .compute_held import record_of
from .on_machines import MACHINES, Machines, container
from .reading import name_of

Which = tuple[str, str, int]


class LentOnce:
    follows = ("pods", MACHINES)

    def __init__(self) -> None:
        self._machines = Machines()
        self._cards: dict[tuple[str, Which], list[str]] = {}  # by node and container, whether it runs or not

    def see(self, seen: Seen) -> Iterator[str]:
        if seen.resource == MACHINES and seen.type == "STARTED":
            yield from self._started(seen)
        self._machines.see(seen)

    def _started(self, seen: Seen) -> Iterator[str]:
        node, which, cards = seen.object.name, container(seen.fields), seen.fields.get("cards") or []
        self._cards[node, which] = cards
        pod = self._machines.pods.get(which[0])
        if pod is not None:
            recorded = sum(sum(counts.values()) for counts in record_of(pod).values())
            if len(cards) != recorded:
                yield f"D7: pod {name_of(pod)} has cards {cards}, and its record says {recorded}"
        known = self._machines.nodes.get(node)
        for other in known.running if known is not None else ():
            twice = set(cards) & set(self._cards.get((node, other), ()))
            if other[:2] != which[:2] and twice:
                yield f"D7: {sorted(twice)} of {node} are in {which[:2]} and in {other[:2]}, which runs"

    def rest(self) -> Iterator[str]:
        yield from ()
