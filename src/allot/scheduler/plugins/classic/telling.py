"""Who refused what, and who has not answered: for conditions, events and `allot explain`."""

from collections import Counter
from collections.abc import Iterable

from ...framework import Rejection, Sentence
from ...negotiating import Want, unanswered
from ...snapshot import Snapshot
from .asking import NAME, ClassicAsk

UNANSWERED = Rejection(NAME, "node(s) that a driver has not answered for", unanswered=True)
UNASKED = Rejection(NAME, "node(s) that drivers have not been asked about", unanswered=True)


def refused(want: Want) -> Rejection:
    """Vetoed nodes are not `resolvable`: fewer pods would not change a driver's mind."""
    return Rejection(NAME, f"node(s) refused by driver {want.driver} for claim {want.claim.key.name}")


def tell(ask: ClassicAsk, rejections: Iterable[tuple[str, Rejection]]) -> Sentence | None:
    """The nodes are counted at once: the sentence may lie about for long."""
    counts: Counter[str] = Counter()
    nodes = 0
    for _, why in rejections:
        nodes += 1
        counts[why.reason] += why.plugin == NAME
    silent = unanswered(ask.talk, ask.wants) if len(ask.wants) > 1 else ()
    refusing = [(one, counts[refused(one).reason]) for one in ask.wants]
    if not silent and not any(count for _, count in refusing):
        return None

    def words(snapshot: Snapshot) -> str:
        told = [
            f"driver {want.driver} refused claim {want.claim.key.name} on {count} of {nodes} nodes"
            for want, count in refusing
            if count
        ]
        told += [f"driver {one.driver} has not answered for claim {one.claim.key.name}" for one in silent]
        return f"{'; '.join(told)}."

    return words
