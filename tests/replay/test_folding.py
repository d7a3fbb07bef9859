"""The oldest part of a record, folded: whatever is folded, the rest is decided as before."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.structs import replace

from allot.api import Gates, encode
from allot.informers import ResourceId
from allot.replay import read, replayed, telling
from allot.replay.folding import Fold
from allot.replay.keeping import term_of
from allot.replay.lines import (
    AnyLine,
    Decided,
    Ended,
    Flight,
    Gone,
    Knows,
    Set,
    Told,
    Verdict,
    Wrote,
    decoded,
    encoded,
)
from allot.scheduler import CLAIMS, Settings

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


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def term() -> AnyLine:
    return term_of(Settings(), Gates(), NOW)


def claim(version: int, holder: str = "") -> Raw:
    metadata = {"name": "c", "namespace": "default", "uid": "c", "resourceVersion": str(version)}
    status = {"reservedFor": [{"resource": "pods", "name": holder, "uid": holder}]} if holder else {}
    return Raw(encode({"metadata": metadata, "spec": {}, "status": status}))


def in_short(*lines: AnyLine) -> list[AnyLine]:
    return list(folded([*lines], len(lines)))


def test_who_begins_anew_knows_nothing_of_before():
    heard = Set(CLAIMS, claim(1))
    assert in_short(term(), heard, term()) == [term()]


def test_news_that_are_older_than_what_the_server_answered_are_passed_over():
    """SNAP4: the answer to our own write came before the watch told of the write before it."""
    wrote = Wrote(claim(7, "p"))
    assert in_short(term(), Set(CLAIMS, claim(5)), wrote, Set(CLAIMS, claim(6))) == [
        term(),
        Set(CLAIMS, claim(7, "p")),
    ]


def test_what_went_lately_is_known_to_have_been_there():
    there, gone = Set(CLAIMS, claim(5)), Gone(CLAIMS, claim(6))
    assert in_short(term(), there, gone) == [term(), there, gone]
    assert in_short(term(), gone) == [term()]


def test_a_binding_that_failed_holds_nothing_and_one_that_is_not_heard_of_yet_does():
    decided = Decided("p", "default/p", NOW, Verdict("a", (Flight("made-up", ""),)))
    kept = replace(decided, folded=True)
    assert in_short(term(), decided, Ended("p")) == [term()]
    assert in_short(term(), decided) == [term(), kept]
    assert in_short(term(), decided, Ended("p", bound=True)) == [term(), kept, Ended("p", bound=True)]
    named = replace(kept, verdict=Verdict("a", (Flight("c", ""),)))
    assert in_short(term(), decided, Wrote(claim(1), "made-up")) == [term(), Set(CLAIMS, claim(1)), named]


def test_what_is_known_adds_up():
    first = Knows(nominated={"p": "a", "q": "b"}, evicted={"v": NOW}, looked_at=3)
    then = Knows(nominated={"p": None}, looked_at=9)
    assert in_short(term(), first, then) == [
        term(),
        Knows(nominated={"q": "b"}, evicted={"v": NOW}, looked_at=9),
    ]


def test_parameters_of_a_kind_that_no_class_names_any_more_are_forgotten():
    what = ResourceId("frob.example.com", "v1", "frobs")
    told = Told("frob.example.com", "v1", "Frob", what)
    object = Set(what, claim(1), parameters=True)
    assert in_short(term(), told, object) == [term(), told, object]
    assert in_short(term(), told, object, Gone(what, claim(1), parameters=True)) == [term(), told]
    assert in_short(term(), told, object, replace(told, what=None, wanted=False)) == [term()]
