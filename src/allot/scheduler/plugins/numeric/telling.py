"""What is missing where, for conditions, events and `allot explain`."""

from collections.abc import Iterable

from allot.numeric import Lacking

from ...framework import Rejection, Sentence
from ...snapshot import Snapshot
from .asking import NAME
from .checking import NumericCheck


def tell(check: NumericCheck, rejections: Iterable[tuple[str, Rejection]]) -> Sentence | None:
    """The nearest miss: its words are kept, not the nodes."""
    best: tuple[float, str, Lacking] | None = None
    for node, why in rejections:
        missed = check.missed.get(node) if why.plugin == NAME else None
        if missed is not None and missed.text and (best is None or (missed.by, node) < best[:2]):
            best = missed.by, node, missed
    if best is None:
        return None
    _, node, missed = best

    def words(snapshot: Snapshot) -> str:
        return f"the best node, {node}: {missed.text}."

    return words
