"""The oldest part of a record, folded: whatever is folded, the rest is decided as before."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from allot.replay import read, replayed, telling
from allot.replay.folding import Fold
from allot.replay.lines import AnyLine, Decided, decoded, encoded

from .recorded import tell
from .stories import come_and_go


def folded(lines: list[AnyLine], at: int) -> Iterator[AnyLine]:
    fold = Fold()
    for line in lines[:at]:
        fold.add(line, encoded(line))
    for raw in fold.lines():
        yield decoded(raw)
    yield from lines[at:]


@pytest.mark.parametrize("seed", [11, 12])
def test_wherever_a_record_is_folded_the_rest_is_decided_as_before(tmp_path: Path, seed: int):
    """At every few lines of a busy record: between a decision and its writes, between a binding and the news
    of it, while somebody is evicted. And folding what was folded changes nothing."""
    tell(tmp_path / "record", come_and_go(seed), seed=seed, transactions=seed % 2 == 0)
    lines = list(read(tmp_path / "record"))
    total, standing = sum(isinstance(one, Decided) for one in lines), 0
    for at in range(1, len(lines), 7):
        now = list(folded(lines, at))
        found = replayed(now)
        assert not found.differences, f"folded at {at}: {telling.text(found)}"
        left = sum(isinstance(one, Decided) for one in lines[at:])
        assert found.decisions == left and not found.unknown and not found.overlaps
        standing += sum(isinstance(one, Decided) and one.folded for one in now)
        assert list(folded(now, len(now) - (len(lines) - at))) == now
    assert total >= 40 and standing >= 5
